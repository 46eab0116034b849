"""E3CS: Exp3 with multiple plays and a fairness floor (the paper's Algorithm 1).

    K num_clients, k cohort_size, sigma_t floor = quota(t) k/K, R_t = k - K sigma_t spare,
    eta rate, log w log_weights, S_t capped, theta_t cap, x success, p inclusion, beta share

Line numbers in the comments are those of Algorithm 1.

`update="paper"` adds gains x/p to the clients asked and freezes capped clients. Its exponents
have no bound when sigma_t = 0: one success at a tiny p makes a client a favourite for
thousands of rounds.

`update="robust"` is ours. It stores capped weights, charges failures (1 - x)/p, and leaves
every client a small share. While everyone is available, log-weights stay within
[log(beta/K), 0]: the regret bound needs no floor, and a client that changes is noticed.

A client that was asked, but not waited for (`Outcome.censored`), gets neither gain nor charge. So
where rounds close early, a gain means "answered among the first", which is what such rounds use;
only a client that missed the deadline or sent something useless is charged.
"""

from collections.abc import Mapping
from math import log
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, State, pick
from fedcohort.checks import check_choice, check_range
from fedcohort.rng import RngLike
from fedcohort.selection.allocation import LARGEST_LOG, Allocation, allocate_present, log_sum
from fedcohort.selection.availability import count_present, present_mask, reachable_size
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.paper_update import add_gains
from fedcohort.selection.protocol import Cohort, Outcome
from fedcohort.selection.quotas import Quota, choose_rate, constant
from fedcohort.selection.sampling import EXACT_SAMPLERS, SAMPLERS
from fedcohort.selection.state import (
    Bounds,
    check_close,
    check_config,
    check_log_cap,
    check_present,
    read_arrays,
)
from fedcohort.selection.weight_store import WeightStore, check_algorithm, resolve_algorithm

UPDATES = ("paper", "robust")


class E3CS(BaseSelector):
    """Ask those who answered before, and guarantee everyone a floor.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        quota: Fraction of a fair share k/K that every client is guaranteed: a number in
            [0, 1] or a function of the round.
        eta: Learning rate, or "auto" for the rate that minimises the bound of Theorem 1.
        horizon: Number of rounds; needed where `eta` is "auto".
        update: Update rule, "paper" or "robust".
        share: Share of the weight that the robust update spreads over all clients, beta.
        sampler: Name of the function in `SAMPLERS` that draws the cohort. "successive" misses the
            inclusion probabilities, so rules that divide by them are refused.
        algorithm: How a round is computed. "scan" passes over all clients. "tree" keeps sums in
            a tree, so that the cost of a round hardly grows with K; the probabilities are the
            same, but the sampler "systematic" draws other cohorts from the same seed. "auto"
            takes the tree from 50,000 clients on, where the sampler is "systematic". Rounds in
            which not everyone is available are always scanned.

    Attributes:
        log_weights: Logarithms of the weights, shape [..., K].

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = E3CS(100, 20, rng=0, quota=0.5)
        >>> cohort = selector.select(0)
        >>> cohort.clients.shape
        (20,)
        >>> selector.update(Outcome(cohort, success=np.ones(20)))
        >>> int((selector.log_weights > 0).sum())
        20
    """

    has_inclusion = True
    client_arrays = ("log_weights",)
    array_bounds: ClassVar[Bounds] = {"log_weights": (-LARGEST_LOG, LARGEST_LOG)}
    in_flight = ("present", "log_cap")
    present: Bools | None
    log_cap: Floats | None

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        rng: RngLike,
        quota: Quota | float = 0.0,
        eta: float | str = 0.5,
        horizon: int | None = None,
        update: str = "paper",
        share: float = 1e-4,
        sampler: str = "systematic",
        algorithm: str = "auto",
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        if not callable(quota):
            quota = constant(check_range("quota", quota, 0.0, 1.0))
        self.quota = quota
        self.update_rule = check_choice("update", update, UPDATES)
        self.share = check_range("share", share, 0.0, 1.0)
        self.sampler = check_choice("sampler", sampler, SAMPLERS)
        self.draws_exactly = sampler in EXACT_SAMPLERS
        self.algorithm = check_algorithm(algorithm, sampler, self._spread)
        self.eta = choose_rate(eta, horizon, num_clients, cohort_size, self.fraction)
        # Line 1: every weight is 1. The robust weights sum to one.
        start = -log(num_clients) if self.is_robust else 0.0
        self.log_weights = np.full(self.shape, start)

    @property
    def kind(self) -> str:
        """Name of the scheme in states: weights of the two update rules differ in meaning."""
        return f"E3CS {self.update_rule}"

    @property
    def is_robust(self) -> bool:
        """Whether the update rule is the robust one."""
        return self.update_rule == "robust"

    @property
    def log_weights(self) -> Floats:
        """Logarithms of the weights, [..., K].

        Assign a new array to change them, because values derived from them are cached.
        """
        return self._store.logs

    @log_weights.setter
    def log_weights(self, value: npt.ArrayLike) -> None:
        values = np.ascontiguousarray(value, dtype=np.float64)  # `place` needs it contiguous
        if values.shape != self.shape:
            raise ValueError(f"log_weights must have shape {self.shape}, got {values.shape}")
        self._store = WeightStore(values)

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Allocate inclusion probabilities by weight and draw a cohort with them."""
        if size:
            clients, inclusion, log_cap = self._draw(round, size, present)
        else:
            clients = np.empty((*self.batch, 0), dtype=np.int64)
            inclusion = np.empty((*self.batch, 0))
            log_cap = np.full(self.batch, np.inf)
        self.present = present
        self.log_cap = np.asarray(log_cap)
        return clients, inclusion

    def learn(self, outcome: Outcome) -> None:
        """Move the weights of the clients asked by how they did.

        Nothing is learned where everyone present was asked or the floor took all (R_t = 0).
        """
        step = self._step(outcome.cohort)
        if self.log_cap is None or not step.any():
            return
        if self.is_robust:
            self._charge_losses(outcome, step, self.log_cap)
            return
        clients = outcome.cohort.clients
        before = pick(self.log_weights, clients)
        self._store.put(clients, add_gains(before, outcome, step, self.log_cap))

    def state_dict(self) -> State:
        """Return everything that decides the selector's future choices.

        Returns:
            Sizes, log-weights, the generator's state, the cohort in flight and, where the last
            round was drawn from trees, what decides the last bits of their sums.
        """
        state = super().state_dict()
        tree = self._store.tree_state()
        if tree is not None:
            state["tree"] = tree
        return state

    def load_state_dict(self, state: State) -> None:
        """Continue exactly where the state was taken; see `BaseSelector.load_state_dict`."""
        if not isinstance(state, Mapping) or "tree" not in state:
            super().load_state_dict(state)
            return
        others = {name: value for name, value in state.items() if name != "tree"}
        check_config(self, others)
        logs = read_arrays(self, others)["log_weights"]
        store = WeightStore.from_state(state["tree"], logs, self.is_robust)

        super().load_state_dict(others)
        if self._method == "tree":
            self._store = store

    def join(self, count: int = 1) -> None:
        """Add clients at the end, each with the mean weight of the others.

        Args:
            count: Number of clients that join.
        """
        super().join(count)
        if self.is_robust:  # whose weights sum to one
            self.log_weights = self.log_weights - log_sum(self.log_weights)

    def newcomers(self, name: str, count: int) -> Floats:
        """Return the logarithm of the mean weight, once for every client that joins."""
        log_mean = log_sum(self.log_weights) - log(self.num_clients)
        return np.repeat(log_mean, count, axis=-1)

    def allocation(self, round: int, available: npt.ArrayLike | None = None) -> Allocation:
        """Return every client's inclusion probability and who is capped, without a draw.

        Args:
            round: The round, counted from 0.
            available: Who may be asked, as for `select`; the others get 0 and are not capped.

        Returns:
            The allocation [..., K]; zeros where nobody is available.
        """
        present = present_mask(available, self.num_clients, self.batch)
        size = reachable_size(self.cohort_size, present)
        return self._allocate(self.log_weights, round, size, present)

    def check_in_flight(
        self, cohort: Cohort, in_flight: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
    ) -> None:
        """Refuse a mask, a cap or probabilities that the state's weights do not give."""
        present = check_present(self, in_flight["present"], cohort)
        log_cap = check_log_cap(in_flight["log_cap"], self.batch)
        size = cohort.clients.shape[-1]
        if not size:
            return
        own = self._allocate(arrays["log_weights"], cohort.round, size, present)
        check_close("log_cap in the state", log_cap, own.log_cap)
        check_close("inclusion in the state", cohort.inclusion, pick(own.inclusion, cohort.clients))

    def fraction(self, round: int) -> float:
        """Return phi, the fraction of k/K that every client is guaranteed in this round."""
        return check_range(f"quota({round})", self.quota(round), 0.0, 1.0)

    def _draw(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats, Floats]:
        """Return the clients, their inclusion probabilities and log theta_t."""
        if present is None:
            sigma = self.fraction(round) * size / self.num_clients
            if self._method == "tree":
                in_order = self.sampler == "pivotal"
                return self._store.draw_from_trees(size, sigma, self.rng, in_order)
            if self._method == "scan":
                return self._store.draw_by_scan(size, sigma, self.rng)

        # Line 3: p_t, S_t = ProbAlloc(k, sigma_t, w_t).
        allocation = self._allocate(self.log_weights, round, size, present)
        # Line 4: draw A_t; client i is in it with probability p_i if the sampler is exact.
        clients = SAMPLERS[self.sampler](allocation.inclusion, self.rng, size)
        return clients, pick(allocation.inclusion, clients), allocation.log_cap

    @property
    def _method(self) -> str:
        """How rounds with everyone available are computed: "sort", "scan" or "tree"."""
        return resolve_algorithm(self.algorithm, self.num_clients, self.sampler, self._spread)

    @property
    def _spread(self) -> float:
        """Share of the weight that keeps robust weights in the range of trees; 1 for others."""
        return self.share if self.is_robust else 1.0

    def _allocate(
        self, log_weights: Floats, round: int, size: int, present: Bools | None
    ) -> Allocation:
        """Allocate with the floor sigma_t = phi k/K, where K counts the clients present."""
        return allocate_present(log_weights, size, present, self.fraction(round) * size)

    def _step(self, cohort: Cohort) -> Floats:
        """Return eta R_t / K, counted among those present, as [..., 1].

        It is 0 where everyone present was asked.
        """
        size = cohort.clients.shape[-1]
        count = count_present(self.present, self.num_clients)
        spare = size * (1 - self.fraction(cohort.round)) * (count > size)
        return np.asarray(self.eta * spare / np.maximum(count, 1))[..., None]

    def _charge_losses(self, outcome: Outcome, step: Floats, log_cap: Floats) -> None:
        """Update robustly: cap the weights, charge the failures, share out beta."""
        cohort = outcome.cohort
        # A failure costs (1 - x)/p; those who were not asked, or not waited for, lose nothing.
        charge = step * (1 - outcome.success) * outcome.observed / cohort.inclusion
        self._store.charge(cohort.clients, charge, log_cap, self.share, self.present, step > 0)
