"""Age: the longer a client has not been heard of, the likelier it is asked.

The age of a client in round t is t - s, where s is the round of its last success, and t + 1 if
there was none. The cohort is drawn with inclusion probabilities in proportion to the ages,
capped at 1. Being asked in vain does not make a client younger: only an update that arrived does.

All ages grow by one in a round, except those of the clients that were heard of. So in large
federations they are the values -s in a tree, and the round is added to all of them.
"""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick, place
from fedcohort.rng import RngLike
from fedcohort.selection.allocation import Allocation, allocate_present
from fedcohort.selection.drawn import DrawnSelector
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.state import COUNT, Bounds
from fedcohort.selection.tree_runs import TreeRuns
from fedcohort.selection.weight_store import check_algorithm, resolve_algorithm


class Age(DrawnSelector):
    """Ask clients in proportion to how long they have not been heard of.

    A client that joins has never been heard of, so it is asked soon.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        algorithm: How a round is computed: "scan", "tree" or "auto", as for `E3CS`.

    Attributes:
        last_heard: Round of each client's last success, -1 for never, shape [..., K].

    Raises:
        ValueError: If a size is out of bounds.

    Examples:
        >>> selector = Age(4, 2, rng=0)
        >>> cohort = selector.select(0)
        >>> selector.update(Outcome(cohort, success=[1, 1]))
        >>> sorted(selector.inclusion(1).round(3).tolist())
        [0.333, 0.333, 0.667, 0.667]
    """

    client_arrays = ("last_heard",)
    array_bounds: ClassVar[Bounds] = {"last_heard": (-1.0, COUNT[1])}
    newcomer_values: ClassVar[dict[str, float]] = {"last_heard": -1.0}

    def __init__(
        self, num_clients: int, cohort_size: int, *, rng: RngLike, algorithm: str = "auto"
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.algorithm = check_algorithm(algorithm, "systematic")
        self.last_heard = np.full(self.shape, -1.0)

    @property
    def last_heard(self) -> Floats:
        """Round of each client's last success, -1 for never, [..., K].

        Assign a new array to change it, because sums of it are kept.
        """
        return self._last_heard

    @last_heard.setter
    def last_heard(self, value: npt.ArrayLike) -> None:
        self._last_heard = np.ascontiguousarray(value, dtype=np.float64)
        self._newest = float(self._last_heard.max())
        self._trees: TreeRuns | None = None

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Draw with the allocated probabilities, from trees if the federation is large.

        A tree needs everyone available, and nobody heard of in this round or a later one.
        """
        method = resolve_algorithm(self.algorithm, self.num_clients, "systematic")
        if method != "tree" or present is not None or self._newest >= round:
            return super().choose(round, size, present)
        if self._trees is None:
            self._trees = TreeRuns.from_values(-self.last_heard)
        self._trees.set_shift(float(round))
        clients, inclusion, _ = self._trees.draw(None, size, 0.0, self.rng, in_order=False)
        return clients, inclusion

    def allocate(self, round: int, size: int, present: Bools | None) -> Allocation:
        """Return probabilities in proportion to the ages, capped at 1."""
        return allocate_present(np.log(self.ages(round)), size, present)

    def learn(self, outcome: Outcome) -> None:
        """Note the round for the clients whose update arrived; skip a round without clients."""
        clients = outcome.cohort.clients
        if not clients.size:
            return
        before = pick(self.last_heard, clients)
        heard = np.where(outcome.success > 0, float(outcome.cohort.round), before)
        place(self.last_heard, clients, heard)
        self._newest = max(self._newest, float(heard.max()))
        if self._trees is not None:
            self._trees.put(clients, -heard)

    def ages(self, round: int) -> Floats:
        """Return the age of every client in a round, [..., K]: between 1 and round + 1."""
        return np.clip(round - self.last_heard, 1.0, round + 1.0)
