"""Where E3CS keeps its weights: logarithms, and what is derived from them.

Logarithms are the truth until a robust update is done in trees. From then on the trees are, and
logarithms are computed when somebody asks for them.
"""

from typing import Any

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints, State, place
from fedcohort.checks import check_choice
from fedcohort.rng import Uniforms
from fedcohort.selection import large
from fedcohort.selection.robust_update import charge_losses
from fedcohort.selection.tree_runs import SMALLEST_SHARE, TreeRuns

ALGORITHMS = ("auto", "scan", "tree")
TREE_SAMPLERS = ("systematic", "pivotal")


def check_algorithm(algorithm: str, sampler: str, share: float = 1.0) -> str:
    """Return the algorithm, and refuse a tree that cannot draw or hold the weights.

    Args:
        algorithm: One of `ALGORITHMS`.
        sampler: Name of the sampler that draws.
        share: Share of the weight that the robust update spreads; 1 for other weights.

    Raises:
        ValueError: If there is no such algorithm, or it does not fit.
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    if algorithm == "tree":
        check_choice("sampler of algorithm 'tree'", sampler, TREE_SAMPLERS)
        if share < SMALLEST_SHARE:
            raise ValueError(
                f"share must be at least {SMALLEST_SHARE} for algorithm 'tree', got {share}"
            )
    return algorithm


def resolve_algorithm(algorithm: str, num_clients: int, sampler: str, share: float = 1.0) -> str:
    """Return how rounds are computed: "sort" for small federations, "scan" or "tree".

    Args:
        algorithm: One of `ALGORITHMS`.
        num_clients: Number of clients in the federation, K.
        sampler: Name of the sampler that draws.
        share: As for `check_algorithm`.
    """
    if algorithm == "tree":
        return "tree"
    if num_clients < large.LARGE or sampler != "systematic":
        return "sort"
    if algorithm == "auto" and share >= SMALLEST_SHARE:
        return "tree"
    return "scan"


class WeightStore:
    """The log-weights [..., K] of all runs.

    Args:
        logs: The log-weights, shape [..., K]; they are changed in place.
        trees: Trees with the same weights, if there are some.
        trees_know_more: Whether the trees are the truth, and logarithms round it.
    """

    def __init__(
        self, logs: Floats, trees: TreeRuns | None = None, trees_know_more: bool = False
    ) -> None:
        self._logs: Floats | None = None if trees_know_more else logs
        self._trees = trees
        # e^logs, kept between the scans of large federations, where few weights change.
        self._weights: Floats | None = None

    @classmethod
    def from_state(cls, state: Any, logs: Floats, is_robust: bool) -> "WeightStore":
        """Return a store with the trees that `tree_state` described, and these log-weights.

        Args:
            state: The trees.
            logs: The log-weights, [..., K].
            is_robust: Whether the update is the robust one: only its trees have values.

        Raises:
            ValueError: If a value is missing or unknown, or does not fit the log-weights.
        """
        trees = TreeRuns.from_state(state, logs)
        has_values = "values" in state
        if has_values and not is_robust:
            raise ValueError("tree in the state must hold no values after paper updates, got some")
        return cls(logs, trees, trees_know_more=has_values)

    @property
    def logs(self) -> Floats:
        """The log-weights, [..., K]."""
        if self._logs is not None:
            return self._logs
        assert self._trees is not None
        return self._trees.log_weights()

    def tree_state(self) -> State | None:
        """Return what decides the last bits of the trees, or None without trees."""
        if self._trees is None:
            return None
        return self._trees.state(with_values=self._logs is None)

    def draw_by_scan(self, size: int, sigma: float, rng: Uniforms) -> tuple[Ints, Floats, Floats]:
        """Draw in one pass over all clients (see `large.draw`)."""
        logs = self.logs
        if self._weights is None:
            with np.errstate(over="ignore"):
                self._weights = np.exp(logs)
        return large.draw(logs, self._weights, size, sigma, rng)

    def draw_from_trees(
        self, size: int, sigma: float, rng: Uniforms, in_order: bool
    ) -> tuple[Ints, Floats, Floats]:
        """Draw without a pass over all clients (see `TreeRuns.draw`)."""
        if self._trees is None:
            self._trees = TreeRuns.from_logs(self.logs)
        return self._trees.draw(self._logs, size, sigma, rng, in_order)

    def put(self, clients: Ints, logs: Floats) -> None:
        """Set the log-weights [..., n] of some clients [..., n], ascending in each run."""
        assert self._logs is not None
        place(self._logs, clients, logs)
        if self._trees is not None:
            self._trees.put_logs(clients, logs)
        if self._weights is not None:
            with np.errstate(over="ignore"):
                place(self._weights, clients, np.exp(logs))

    def charge(
        self,
        clients: Ints,
        charge: Floats,
        log_cap: Floats,
        share: float,
        present: Bools | None,
        learns: Bools,
    ) -> None:
        """Update robustly: in trees if there are some and everyone was there.

        Args:
            clients: The clients asked, [..., k].
            charge: What each loses, in nats, [..., k].
            log_cap: Logarithm of the cap of each run, [...].
            share: Share of the weight that is spread over all clients.
            present: Who could be asked, [..., K]; None for everyone.
            learns: Which runs learn, [..., 1]; all of them do where everyone was there.
        """
        if self._trees is not None and present is None:
            self._trees.charge(clients, charge, log_cap, share)
            self._logs = None
            return
        logs = self.logs
        learned = charge_losses(logs, clients, charge, log_cap, share, present)
        if present is not None:
            learned = np.where(learns, learned, logs)
        self._logs = learned
        self._trees = None
        self._weights = None
