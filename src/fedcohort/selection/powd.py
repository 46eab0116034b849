"""Power of choice: of d random candidates, ask the k with the highest loss.

`PowD` probes the candidates' losses on the current model (pow-d). `LastLoss` uses the losses
that clients reported when they last trained, and asks those that never reported first
(rpow-d): this needs no extra communication.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick, place
from fedcohort.checks import check_array
from fedcohort.rng import RngLike
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.candidates import check_candidates, choose_lowest
from fedcohort.selection.protocol import Outcome

LossProbe = Callable[[Ints], npt.ArrayLike]


class PowD(BaseSelector):
    """Ask the k candidates with the highest loss on the current model.

    The inclusion probability of a cohort is the chance of being a candidate; no more can be
    said before the losses are known. Rules that divide by inclusion probabilities are refused.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        loss_of: Function that returns the losses of clients [..., d] on the current model.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        candidates: Number of candidates d; by default 2.5 k, rounded up.

    Raises:
        ValueError: If a size is out of bounds.

    Examples:
        >>> losses = np.array([0.3, 0.9, 0.1, 0.7])
        >>> selector = PowD(4, 2, loss_of=lambda clients: losses[clients], rng=0, candidates=4)
        >>> selector.select(0).clients
        array([1, 3])
    """

    probes_losses = True
    ranks_candidates: ClassVar[bool] = True

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        loss_of: LossProbe,
        rng: RngLike,
        candidates: int | None = None,
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.loss_of = loss_of
        self.candidates = check_candidates(candidates, cohort_size, num_clients)

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Draw candidates, probe their losses and take the highest."""
        return choose_lowest(self, size, present, lambda clients: -self._probe(clients))

    def _probe(self, clients: Ints) -> Floats:
        losses = self.loss_of(clients)
        return check_array("loss_of(clients)", losses, clients.shape, -np.inf, np.inf)


class LastLoss(BaseSelector):
    """Ask the k candidates whose last reported loss is highest; first those without one.

    The inclusion probability of a cohort is the chance of being a candidate, as in pow-d.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        candidates: Number of candidates d; by default 2.5 k, rounded up.

    Raises:
        ValueError: If a size is out of bounds.

    Examples:
        >>> selector = LastLoss(4, 2, rng=0, candidates=4)
        >>> first = selector.select(0)
        >>> selector.update(Outcome(first, success=[1, 1], loss=[0.5, 0.7]))
        >>> second = selector.select(1)
        >>> sorted([*first.clients.tolist(), *second.clients.tolist()])
        [0, 1, 2, 3]
    """

    needs_losses = True
    ranks_candidates: ClassVar[bool] = True
    client_arrays = ("last_losses",)
    newcomer_values: ClassVar[dict[str, float]] = {"last_losses": np.inf}

    def __init__(
        self, num_clients: int, cohort_size: int, *, rng: RngLike, candidates: int | None = None
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.candidates = check_candidates(candidates, cohort_size, num_clients)
        self.last_losses: Floats = np.full(self.shape, np.inf)  # inf: never reported

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Draw candidates and take the highest losses among those last reported."""
        return choose_lowest(self, size, present, lambda clients: -pick(self.last_losses, clients))

    def learn(self, outcome: Outcome) -> None:
        """Remember the reported losses, but keep the last one where a client failed."""
        clients = outcome.cohort.clients
        before = pick(self.last_losses, clients)
        reported = np.asarray(outcome.loss)
        place(self.last_losses, clients, np.where(outcome.success > 0, reported, before))
