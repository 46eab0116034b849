"""E3CS: Exp3 with multiple plays and a fairness floor (the paper's Algorithm 1), and a version of it that is robust.

    K num_clients, k cohort_size, sigma_t floor = quota(t) k/K, R_t = k - K sigma_t spare, eta rate, w log_weights,
    S_t capped, theta_t cap, x success, p inclusion, beta share

`update="paper"`: gains x/p for the clients asked, capped clients frozen. Its exponents have no bound when sigma_t = 0: one
success at a tiny p makes a client a favourite for thousands of rounds.
`update="robust"`: weights are stored capped, failures cost (1 - x)/p, and every client keeps a small share. While everyone is
available, log-weights stay within [log(beta/K), 0]; the regret bound needs no floor, and a client that changes is noticed.
"""

from math import log, sqrt

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, State, pick, place
from fedcohort.checks import MAX_COUNT, check_choice, check_int, check_positive, check_range
from fedcohort.rng import RngLike, as_rng, batch_shape
from fedcohort.selection import large
from fedcohort.selection.allocation import Allocation, above_cap, allocate, allocate_among
from fedcohort.selection.protocol import (
    Cohort,
    Outcome,
    answer_to,
    count_present,
    present_mask,
    reachable_size,
    restore,
    snapshot,
)
from fedcohort.selection.quotas import Quota, constant
from fedcohort.selection.sampling import SAMPLERS

UPDATES = ("paper", "robust")


class E3CS:
    """Ask those who answered before, and grant everyone a floor."""

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
    ) -> None:
        self.num_clients = check_int("num_clients", num_clients, 1)
        self.cohort_size = check_int("cohort_size", cohort_size, 1, num_clients)
        self.quota = quota if callable(quota) else constant(check_range("quota", quota, 0.0, 1.0))
        self.update_rule = check_choice("update", update, UPDATES)
        self.kind = f"E3CS {update}"
        self.share = check_range("share", share, 0.0, 1.0)
        self.sampler = check_choice("sampler", sampler, SAMPLERS)
        self.eta = self._rate(eta, horizon)
        self.rng = as_rng(rng, "selection")
        start = -log(num_clients) if update == "robust" else 0.0
        self.log_weights = np.full((*batch_shape(self.rng), num_clients), start)
        self.present: Bools | None = None
        self.log_cap: Floats | None = None
        self.asked: Cohort | None = None

    @property
    def log_weights(self) -> Floats:
        """What is known of the clients, [..., K]; set it as a whole, not in place."""
        return self._log_weights

    @log_weights.setter
    def log_weights(self, value: npt.ArrayLike) -> None:
        given = np.ascontiguousarray(value, dtype=np.float64)  # as `place` needs it
        wanted = (*batch_shape(self.rng), self.num_clients)
        if given.shape != wanted:
            raise ValueError(f"log_weights must have shape {wanted}, got {given.shape}")
        self._log_weights = given
        self._weights: Floats | None = (
            None  # e^log_weights, kept for large federations, where few change in a round
        )

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        """Draw a cohort among the available; if they are fewer than k, ask them all, and if there is none, nobody."""
        check_int("round", round, 0)
        batch = batch_shape(self.rng)
        present = present_mask(available, self.num_clients, batch)
        size = reachable_size(self.cohort_size, present)
        if size:
            clients, inclusion, log_cap = self._draw(self.fraction(round) * size, size, present)
        else:
            clients, inclusion, log_cap = (
                np.empty((*batch, 0), dtype=np.int64),
                np.empty((*batch, 0)),
                np.full(batch, np.inf),
            )
        self.asked, self.present, self.log_cap = (
            Cohort(round, clients, inclusion),
            present,
            np.asarray(log_cap),
        )
        return self.asked

    def update(self, outcome: Outcome) -> None:
        """Learn from who answered; nothing is learnt where everyone present was asked or the floor took all (R = 0)."""
        asked = answer_to(self.asked, outcome)
        step = self._step(asked)
        if self.log_cap is not None and step.any():
            learn = self._add_gains if self.update_rule == "paper" else self._charge_losses
            learn(asked, outcome.success, step, self.log_cap)
        self.asked = self.present = self.log_cap = None

    def join(self, count: int = 1) -> None:
        """Add clients at the end, each with the mean weight of those known; ids of the others stay."""
        count = check_int("count", count, 1)
        mean = _log_sum(self.log_weights) - log(self.num_clients)
        logs = np.concatenate([self.log_weights, np.repeat(mean, count, axis=-1)], axis=-1)
        self.num_clients += count
        self.log_weights = logs - _log_sum(logs) if self.update_rule == "robust" else logs
        self.asked = self.present = self.log_cap = None

    def inclusion(self, round: int, available: npt.ArrayLike | None = None) -> Floats:
        """Return every client's probability [..., K] of being asked, without a draw; 0 for those not available."""
        return self.allocation(round, available).inclusion

    def allocation(self, round: int, available: npt.ArrayLike | None = None) -> Allocation:
        """Return all probabilities and who is capped, without a draw; where nobody is available, zeros and nobody."""
        present = present_mask(available, self.num_clients, batch_shape(self.rng))
        size = reachable_size(self.cohort_size, present)
        if not size:
            shape = self.log_weights.shape
            return Allocation(
                np.zeros(shape), np.zeros(shape, dtype=np.bool_), np.full(shape[:-1], np.inf)
            )
        return self._allocate(self.fraction(round) * size, size, present)

    def fraction(self, round: int) -> float:
        """Return phi, the fraction of k/K that every client is granted in this round."""
        return check_range(f"quota({round})", self.quota(round), 0.0, 1.0)

    def state_dict(self) -> State:
        return snapshot(self, ("log_weights",), in_flight=("present", "log_cap"))

    def load_state_dict(self, state: State) -> None:
        restore(self, state, ("log_weights",), in_flight=("present", "log_cap"))

    def _draw(
        self, granted: float, size: int, present: Bools | None
    ) -> tuple[Ints, Floats, Floats]:
        """Return the clients, their inclusion probabilities and log theta; `granted` is sigma_t times the clients present."""
        if present is None and self.num_clients >= large.LARGE and self.sampler == "systematic":
            if self._weights is None:
                with np.errstate(over="ignore"):
                    self._weights = np.exp(self.log_weights)
            return large.draw(
                self.log_weights, self._weights, size, granted / self.num_clients, self.rng
            )
        allocation = self._allocate(granted, size, present)
        clients = SAMPLERS[self.sampler](allocation.inclusion, self.rng, size)
        return clients, pick(allocation.inclusion, clients), allocation.log_cap

    def _allocate(self, granted: float, size: int, present: Bools | None) -> Allocation:
        if present is None:
            return allocate(self.log_weights, size, granted / self.num_clients)
        return allocate_among(
            present, self.log_weights, size, np.asarray(granted / present.sum(axis=-1))
        )

    def _step(self, cohort: Cohort) -> Floats:
        """Return eta R_t / K as [..., 1], R_t and K counted among those present; 0 where all of them were asked."""
        size = cohort.clients.shape[-1]
        count = count_present(self.present, self.num_clients)
        spare = size * (1 - self.fraction(cohort.round)) * (count > size)
        return np.asarray(self.eta * spare / np.maximum(count, 1))[..., None]

    def _add_gains(self, asked: Cohort, success: Floats, step: Floats, log_cap: Floats) -> None:
        old = pick(self.log_weights, asked.clients)
        gain = success / asked.inclusion  # unbiased for every client, if the sampler is exact
        gain[above_cap(old, log_cap)] = 0.0  # S_t keeps its weight
        new = old + step * gain
        place(self._log_weights, asked.clients, new)
        if self._weights is not None:
            with np.errstate(over="ignore"):
                place(self._weights, asked.clients, np.exp(new))

    def _charge_losses(self, asked: Cohort, success: Floats, step: Floats, log_cap: Floats) -> None:
        present, count = self.present, self.num_clients
        logs = np.minimum(self.log_weights, log_cap[..., None])
        place(
            logs, asked.clients, pick(logs, asked.clients) - step * (1 - success) / asked.inclusion
        )
        if present is not None:
            count = present.sum(axis=-1, keepdims=True)
            logs[~present] = -np.inf
        logs -= _log_sum(logs)
        if self.share:
            shares = np.exp(logs, out=logs)
            shares *= 1 - self.share
            shares += self.share / count
            logs = np.log(shares, out=shares)
        if present is not None:  # those present keep their share of the whole, and so do the absent
            logs += _log_sum(np.where(present, self.log_weights, -np.inf))
            logs = np.where(present & (step > 0), logs, self.log_weights)
        self.log_weights = logs

    def _rate(self, eta: float | str, horizon: int | None) -> float:
        """Return eta, or for "auto" the rate that minimises the bound of Theorem 1, which asks for at most 1."""
        if eta != "auto":
            return check_range(
                "eta", check_positive("eta", eta), 0, MAX_COUNT
            )  # larger ones leave the range of log-weights
        if horizon is None:
            raise ValueError("horizon must be the number of rounds where eta is 'auto', got None")
        spare = self.cohort_size * sum(
            1 - self.fraction(t) for t in range(check_int("horizon", horizon, 1))
        )
        return (
            min(1.0, sqrt(self.num_clients * log(self.num_clients) / spare))
            if spare and self.num_clients > 1
            else 1.0
        )


def _log_sum(logs: Floats) -> Floats:
    """Return log of the sum of exp along the last axis, kept as an axis of length 1."""
    high = logs.max(axis=-1, keepdims=True)
    scaled = logs - high
    total: Floats = high + np.log(np.exp(scaled, out=scaled).sum(axis=-1, keepdims=True))
    return total
