"""FedCS by time: of random candidates, ask the k that are estimated to answer soonest.

The authors add one candidate after the other, always the one that prolongs the round least, as
long as the round ends before the deadline. The server is told seconds alone, clients train and
upload side by side, and a round takes as long as its slowest client; so the order is that of the
estimated times. Places that nobody in time can fill go to the other candidates at random.

The estimate is the seconds waited for a client divided by its number of answers, which takes into
account that a client without an answer would have needed longer. A client that was never asked
counts as instant, and one that never answered as too late.
"""

from typing import ClassVar

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints, pick, place
from fedcohort.checks import check_positive
from fedcohort.rng import RngLike
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.candidates import check_candidates, choose_lowest
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.state import AMOUNT, COUNT, Bounds


class FedCSTime(BaseSelector):
    """Ask the k of d random candidates that are estimated to answer soonest.

    The inclusion probability of a cohort is the chance of being a candidate, as in pow-d. It is
    not the chance of being asked: of the candidates, slow ones seldom are. Rules that divide by
    inclusion probabilities are therefore refused.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        deadline: Seconds after which the server stops waiting.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        candidates: Number of candidates d; by default 2.5 k, rounded up.

    Attributes:
        waited: Seconds that the server waited for each client in all, shape [..., K].
        answers: How often it answered in time, shape [..., K].

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = FedCSTime(3, 1, deadline=10.0, rng=0, candidates=3)
        >>> for client, seconds in enumerate([6.0, 3.0, 4.0]):
        ...     cohort = selector.select(client, available=[client])
        ...     selector.update(Outcome(cohort, success=[1], seconds=[seconds]))
        >>> selector.select(3).clients
        array([1])
    """

    needs_seconds = True
    needs_deadline = True
    ranks_candidates: ClassVar[bool] = True
    client_arrays = ("waited", "answers")
    array_bounds: ClassVar[Bounds] = {"waited": AMOUNT, "answers": COUNT}
    newcomer_values: ClassVar[dict[str, float]] = {"waited": 0.0, "answers": 0.0}

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        deadline: float,
        rng: RngLike,
        candidates: int | None = None,
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.deadline = check_positive("deadline", deadline)
        self.candidates = check_candidates(candidates, cohort_size, num_clients)
        self.waited: Floats = np.zeros(self.shape)
        self.answers: Floats = np.zeros(self.shape)

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Draw candidates and take the quickest; those too late come last, in random order."""
        return choose_lowest(self, size, present, self._seconds_in_time)

    def _seconds_in_time(self, clients: Ints) -> Floats:
        times = pick(self.estimated_seconds(), clients)
        return np.where(times <= self.deadline, times, np.inf)

    def estimated_seconds(self) -> Floats:
        """Return each client's estimated time [..., K]: 0 if unknown, inf without an answer."""
        no_answer = np.where(self.waited > 0, np.inf, 0.0)
        return np.divide(self.waited, self.answers, out=no_answer, where=self.answers > 0)

    def learn(self, outcome: Outcome) -> None:
        """Add the seconds waited, and count the answers."""
        clients = outcome.cohort.clients
        place(self.waited, clients, pick(self.waited, clients) + np.asarray(outcome.seconds))
        place(self.answers, clients, pick(self.answers, clients) + (outcome.success > 0))
