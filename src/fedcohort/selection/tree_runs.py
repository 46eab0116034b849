"""E3CS's weights in trees of sums, one per run: a round costs O(k log K).

The paper's update changes the logarithms of the clients asked. A tree holds e^(log w - centre),
centred anew where the cap would leave the range in which sums of floats are safe.

The robust update is w <- (1 - beta) w / W + beta / K for all, and something else for those asked.
So a tree holds values v with w = scale * v + shift. The shift only grows, and a weight is a
difference of it and the rest, but never below the share of a round, beta / K. Before the shift
exceeds `LARGEST_SHIFT` times that, all values are written anew: so a weight loses at most 3 digits
of 16 to the difference, and an update gives no weight a relative error above 1e-11. With
usual learning rates a few hundred rounds lie between two such passes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

import numpy as np

from fedcohort.arrays import Floats, Ints, State
from fedcohort.rng import Uniforms
from fedcohort.selection.allocation import slots, solve_log_cap
from fedcohort.selection.lazy_weights import SMALLEST_VALUE, LazyWeights
from fedcohort.selection.state import check_close, check_numbers
from fedcohort.selection.tree_draw import draws_needed

SMALLEST_CAP = 1e-50
LARGEST_LOG = 345.0  # of a value: such a client is far above every cap, and its sums are finite
LARGEST_SHIFT = 1000.0
LARGEST_SCALE = 1e100
SMALLEST_SHARE = 1e-100  # with less, robust weights leave the range in which sums are safe
NUMBERS = ("centre", "scale", "shift", "limit")  # of each run, in states


@dataclass(eq=False)
class TreeRun:
    """The weights e^centre (scale * value + shift) of one run."""

    weights: LazyWeights
    centre: float

    def log_weights(self) -> Floats:
        """Return the logarithm of every weight, [K]."""
        weights = self.weights.values()
        weights *= self.weights.scale
        weights += self.weights.shift
        logs = np.log(weights, out=weights)
        logs += self.centre
        return logs

    def draw(
        self, logs: Floats | None, size: int, sigma: float, draws: Floats, in_order: bool
    ) -> tuple[Ints, Floats, float]:
        """Draw a cohort and return the clients, their probabilities and log theta."""
        cap = self.weights.settle(size, sigma)
        if cap < inf and not SMALLEST_CAP <= cap <= 1 / SMALLEST_CAP:
            if logs is None:
                logs = self.log_weights()
            rho = slots(size, logs.size, sigma)
            self.centre = float(solve_log_cap(logs, rho))
            self.weights = LazyWeights(centred(logs, self.centre))
            cap = self.weights.settle(size, sigma)
        clients, inclusion = self.weights.draw(size, sigma, cap, draws, in_order)
        return clients, inclusion, log(cap) + self.centre

    def charge(self, clients: Ints, charge: Floats, log_cap: float, share: float) -> None:
        """Cap and charge the clients asked, norm all weights, and spread the share evenly."""
        weights = self.weights
        own = np.minimum(weights.weights_at(clients), exp(log_cap - self.centre))
        own *= np.exp(-charge)
        weights.put(clients, (own - weights.shift) / weights.scale)
        self.centre = 0.0

        even = share / weights.num_clients
        total = weights.total()  # only rounding is left, of either sign, where all have failed
        factor = (1 - share) / total if total > 0 else inf
        scale = weights.scale * factor
        shift = weights.shift * factor + even
        if shift <= LARGEST_SHIFT * even and 1 / LARGEST_SCALE < scale < LARGEST_SCALE:
            weights.scale = scale
            weights.shift = shift
            return
        values = weights.scale * weights.values() + weights.shift
        values[clients] = own  # not the difference that was put: it may be nothing but rounding
        factor = (1 - share) / float(values.sum())
        limit = (weights.scale * weights.limit + weights.shift) * factor + even
        self.weights = LazyWeights(values * factor + even, limit=limit)


class TreeRuns:
    """The trees of all runs of a selector.

    Args:
        runs: One tree per run.
        batch: Shape of the runs: () for one, (S,) for S.
    """

    def __init__(self, runs: list[TreeRun], batch: tuple[int, ...]) -> None:
        self.runs = runs
        self.batch = batch

    @classmethod
    def from_logs(cls, logs: Floats) -> "TreeRuns":
        """Plant trees of these log-weights [..., K], centred on the largest of each run."""
        runs = []
        for row in _rows(logs):
            centre = float(row.max())
            runs.append(TreeRun(LazyWeights(centred(row, centre)), centre))
        return cls(runs, logs.shape[:-1])

    @classmethod
    def from_values(cls, values: Floats) -> "TreeRuns":
        """Plant trees of these values, [..., K]."""
        runs = []
        for row in _rows(values):
            runs.append(TreeRun(LazyWeights(row), centre=0.0))
        return cls(runs, values.shape[:-1])

    @classmethod
    def from_state(cls, state: Any, logs: Floats) -> "TreeRuns":
        """Plant the trees of a state whose log-weights are these, [..., K].

        Raises:
            ValueError: If a value is missing or unknown, or does not fit the log-weights.
        """
        keys = set(state) if isinstance(state, Mapping) else set()
        if not {*NUMBERS} <= keys <= {*NUMBERS, "values"}:
            raise ValueError(f"tree in the state must hold {', '.join(NUMBERS)}, got {state!r}")
        batch = logs.shape[:-1]
        numbers = {}
        for name in NUMBERS:
            read = check_numbers(f"{name} of the tree in the state", state[name], batch)
            numbers[name] = read.astype(np.float64).reshape(-1).tolist()
        _check_factors(**numbers)

        values: Floats | None = None
        if "values" in keys:
            found = check_numbers("values of the tree in the state", state["values"], logs.shape)
            values = np.ascontiguousarray(found, dtype=np.float64).reshape(-1, logs.shape[-1])
        runs = []
        for index, row in enumerate(_rows(logs)):
            centre, scale, shift, limit = (numbers[name][index] for name in NUMBERS)
            own = centred(row, centre) if values is None else values[index]
            run = TreeRun(LazyWeights(own, scale, shift, limit), centre)
            if values is not None:
                with np.errstate(invalid="ignore", divide="ignore"):
                    own_logs = run.log_weights()
                check_close("values of the tree in the state", own_logs, row)
            runs.append(run)
        return cls(runs, batch)

    def state(self, with_values: bool) -> State:
        """Return what decides the future of the trees beside the log-weights.

        Args:
            with_values: Whether the log-weights alone do not give the values bit by bit.
        """
        state: State = {"centre": self._per_run([run.centre for run in self.runs])}
        for name in NUMBERS[1:]:
            state[name] = self._per_run([getattr(run.weights, name) for run in self.runs])
        if with_values:
            state["values"] = self._per_run([run.weights.values() for run in self.runs])
        return state

    def log_weights(self) -> Floats:
        """Return the log-weights, [..., K]."""
        logs: Floats = self._per_run([run.log_weights() for run in self.runs])
        return logs

    def draw(
        self, logs: Floats | None, size: int, sigma: float, rng: Uniforms, in_order: bool
    ) -> tuple[Ints, Floats, Floats]:
        """Draw a cohort in every run.

        Args:
            logs: The log-weights [..., K], if they are at hand.
            size: Number of clients to draw, k.
            sigma: Smallest inclusion probability.
            rng: Source of uniform numbers.
            in_order: Whether clients lie in the order of their ids (see `draw_pivotal`).

        Returns:
            Client ids [..., k] in ascending order, their inclusion probabilities [..., k] and
            log theta [...].
        """
        needed = draws_needed(self.runs[0].weights.tree, size, in_order)
        draws = rng.random((*self.batch, needed)).reshape(-1, needed)
        rows = None if logs is None else logs.reshape(len(self.runs), -1)
        cohorts = []
        for index, run in enumerate(self.runs):
            own = None if rows is None else rows[index]
            cohorts.append(run.draw(own, size, sigma, draws[index], in_order))
        clients, inclusion, log_cap = zip(*cohorts, strict=True)
        return (
            self._per_run(list(clients)),
            self._per_run(list(inclusion)),
            self._per_run(list(log_cap)),
        )

    def put_logs(self, clients: Ints, logs: Floats) -> None:
        """Set the log-weights [..., n] of some clients [..., n]."""
        rows = zip(self.runs, _rows(clients), _rows(logs), strict=True)
        for run, own, values in rows:
            run.weights.put(own, centred(values, run.centre))

    def put(self, clients: Ints, values: Floats) -> None:
        """Set the values [..., n] of some clients [..., n]."""
        rows = zip(self.runs, _rows(clients), _rows(values), strict=True)
        for run, own, new in rows:
            run.weights.put(own, new)

    def set_shift(self, shift: float) -> None:
        """Set what every weight has beside its value."""
        for run in self.runs:
            run.weights.shift = shift

    def charge(self, clients: Ints, charge: Floats, log_cap: Floats, share: float) -> None:
        """Update every run robustly.

        Args:
            clients: The clients asked, [..., k].
            charge: What each loses, in nats, [..., k].
            log_cap: Logarithm of the cap of each run, [...].
            share: Share of the weight that is spread over all clients, above 0.
        """
        caps = log_cap.reshape(-1).tolist()
        rows = zip(_rows(clients), _rows(charge), caps, strict=True)
        for run, (own, lost, cap) in zip(self.runs, rows, strict=True):
            run.charge(own, lost, cap, share)

    def _per_run(self, parts: list[Any]) -> Any:
        """Return one array of the values of all runs, without an axis of runs for one alone."""
        if self.batch:
            return np.stack(parts)
        return np.asarray(parts[0])


def _rows(values: Any) -> Any:
    """Return the values [..., n] with one axis of runs, [S, n]."""
    return values.reshape(-1, values.shape[-1])


def centred(logs: Floats, centre: float) -> Floats:
    """Return e^(logs - centre) within the range in which sums are safe."""
    values = np.minimum(logs - centre, LARGEST_LOG)
    np.exp(values, out=values)
    return np.maximum(values, SMALLEST_VALUE, out=values)


def _check_factors(**numbers: list[float]) -> None:
    """Refuse factors that no update gives; only the limit may be infinite."""
    for name in ("centre", "scale", "shift"):
        if not np.isfinite(numbers[name]).all():
            raise ValueError(f"{name} of the tree in the state must be finite, got {numbers[name]}")
    if min(numbers["scale"]) <= 0:
        raise ValueError(
            f"scale of the tree in the state must be above 0, got {min(numbers['scale'])}"
        )
    if min(numbers["shift"]) < 0:
        raise ValueError(
            f"shift of the tree in the state must be at least 0, got {min(numbers['shift'])}"
        )
