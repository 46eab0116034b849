"""Replay: what another selector would have got on a recorded deployment.

Round t of the log asked the clients A_t, client i with probability p_it, and saw x_it. Another
selector would ask i with probability q_it. With w_it = q_it / p_it, its answers per round are

    inverse propensity    mean over t of    sum over A_t of w x
    self-normalised       (sum of w x) / (sum of w) times the mean of sum_i q
    doubly robust         mean over t of    sum_i q m_i + sum over A_t of w (x - m_i)

where m_i is the client's rate in the other half of the rounds, shrunk towards the others. The
selector learns from the recorded rounds, so q_it depends on earlier rounds alone, and the first and
the last estimate have no bias. A round's answers must not depend on who else is asked. Selectors
that would learn something else from the recorded cohorts than from their own are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.advice.estimates import (
    Interval,
    block_length,
    bootstrap_weights,
    from_draws,
    plain,
    sum_by,
    widened,
)
from fedcohort.advice.log import FederationLog
from fedcohort.advice.persistence import estimate_persistence
from fedcohort.advice.rates import fit_rates
from fedcohort.advice.selector_play import make_playable
from fedcohort.arrays import Floats
from fedcohort.memory import check_memory
from fedcohort.reports.words import counted
from fedcohort.rng import stream
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Cohort, Outcome
from fedcohort.selection.random import Random
from fedcohort.selection.registry import SELECTORS, Federation

LEAST_EFFECTIVE = 100.0  # answers that the weighted log must be worth
LEAST_ROUNDS = 20
RESAMPLES = 1000
SUPPORT = 0.8  # the weights must add up to this share of the cohort, at least


@dataclass(frozen=True)
class Replayed:
    """What a selector would have got.

    Attributes:
        selector: Its name.
        inverse: Answers per round by inverse propensity.
        normalised: The same, self-normalised.
        robust: The same, doubly robust.
        effective: Number of answers that the weighted log is worth.
        support: Mean sum of the weights over the cohort that the selector would ask; 1 if the
            log asks everyone whom the selector would ask.
    """

    selector: str
    inverse: Interval
    normalised: Interval
    robust: Interval
    effective: float
    support: float

    @property
    def refusal(self) -> str:
        """Why the estimate must not be used; empty if it may."""
        if self.effective < LEAST_EFFECTIVE:
            return (
                f"the effective sample size must be at least {LEAST_EFFECTIVE:.0f} answers, "
                f"got {self.effective:.0f}"
            )
        if not SUPPORT <= self.support <= 2 - SUPPORT:
            return (
                f"the weights must add up to the cohort within {100 * (1 - SUPPORT):.0f} %, got "
                f"{self.support:.2f} of it: the log hardly asks clients that the selector would ask"
            )
        return ""

    def as_dict(self) -> dict[str, object]:
        """Return all numbers as JSON can hold them; no estimates where they are refused."""
        values: dict[str, object] = dict(vars(self))
        refusal = self.refusal
        if refusal:
            for name in ("inverse", "normalised", "robust"):
                values[name] = None
        result: dict[str, object] = plain({**values, "refusal": refusal})
        return result


def replay(log: FederationLog, selectors: Sequence[str], seed: int = 0) -> list[Replayed]:
    """Return what other selectors would have got on a recorded deployment.

    Args:
        log: The log, with inclusion probabilities.
        selectors: Names of selectors that need neither training nor known rates, and learn
            nothing or as E3CS does.
        seed: Seed of selectors and resamples.

    Raises:
        ValueError: If the log has fewer than 20 rounds, no answer or no probabilities, or a
            selector cannot be replayed.

    Examples:
        >>> from fedcohort.advice.played import Description, play_description
        >>> log = play_description(Description(20, 5, (0.3, 0.9), rounds=80))
        >>> (found,) = replay(log, ["random"])
        >>> found.effective, bool(abs(found.inverse.value - log.arrived_in_round.mean()) < 1e-9)
        (400.0, True)
    """
    _check(log)
    persistence = estimate_persistence(log)
    block = block_length(log.num_rounds, persistence.memory)
    weights = bootstrap_weights(log.num_rounds, RESAMPLES, block, stream(seed, "replay", "rounds"))
    rates = _other_half_rates(log, block, stream(seed, "replay", "rates"))
    found = []
    for name in selectors:
        probabilities = asking_probabilities(log, name, seed)
        found.append(_estimate(log, name, probabilities, rates, weights, block))
    return found


def _check(log: FederationLog) -> None:
    if log.num_rounds < LEAST_ROUNDS:
        raise ValueError(
            f"{log.source} must hold at least {LEAST_ROUNDS} rounds to be replayed, "
            f"got {log.num_rounds}"
        )
    if not log.arrived.any():
        raise ValueError(
            f"{log.source} must hold an answer to be replayed, got none to {len(log.arrived)} "
            "requests"
        )
    unknown = int(np.isnan(log.inclusion).sum())
    if unknown:
        raise ValueError(
            f"{log.source} must say with which probability each client was asked, got {unknown} "
            f"of {len(log.inclusion)} requests without one; a CSV says so in the column inclusion, "
            "a folder of compare only for random"
        )
    scheme = SELECTORS.get(log.selector or "")
    if scheme is not None and scheme.selector.ranks_candidates:
        raise ValueError(
            f"{log.source} must come from a selector that knows its probabilities, got "
            f"{log.selector!r}, which records the chance of being a candidate"
        )
    if (log.inclusion >= 1).all() and log.asked_in_round.max() < log.num_clients:
        raise ValueError(
            f"{log.source} must come from a selector that leaves something to chance, got "
            "probability 1 for everyone who was asked: it says nothing about the others"
        )
    check_memory(
        "rounds and clients",
        f"{log.num_rounds} rounds of {log.num_clients} clients",
        needed=24 * log.num_rounds * log.num_clients,
    )


def asking_probabilities(log: FederationLog, name: str, seed: int = 0) -> Floats:
    """Return with which probability a selector would have asked each client, [T, K].

    It learns from what was recorded. A selector that cannot say its probabilities counts with
    those whom it chose.

    Args:
        log: The log.
        name: Name of the selector.
        seed: Its seed.

    Raises:
        ValueError: If the selector needs more than a log has, or learns from who was asked.
    """
    federation = Federation(log.num_clients, log.cohort, rng=seed, horizon=log.num_rounds)
    selector = make_playable(name, federation)
    if not isinstance(selector, BaseSelector):
        raise ValueError(
            f"selectors must be subclasses of BaseSelector to be replayed, got {name!r}"
        )
    if selector.cohort_size != log.cohort:
        raise ValueError(
            f"selectors must ask {counted(log.cohort, 'client')} per round as the log does, "
            f"got {name!r}, which asks {selector.cohort_size}"
        )
    _check_learning(name, selector)

    starts = np.searchsorted(log.round, np.arange(log.num_rounds + 1))
    table = np.zeros((log.num_rounds, log.num_clients))
    for round in range(log.num_rounds):
        present = None if log.available is None else log.available[round]
        cohort = selector.select(round, present)
        if type(selector) is Random:
            everyone = np.ones(log.num_clients) if present is None else present
            table[round] = len(cohort.clients) / max(1.0, float(everyone.sum())) * everyone
        elif selector.has_inclusion:
            table[round] = selector.inclusion(round, present)
        else:
            table[round, cohort.clients] = 1.0
        rows = slice(starts[round], starts[round + 1])
        recorded = Cohort(round, log.client[rows], log.inclusion[rows])
        selector.learn(Outcome(recorded, log.arrived[rows]))
    return table


def _check_learning(name: str, selector: BaseSelector) -> None:
    """Refuse selectors that would learn from whom the log asked, not from whom they ask.

    E3CS divides what it learns by the recorded probabilities, so that on average it learns the same
    whoever asks. Counts of asks and answers, or rounds since the last answer, are those of the
    recorded selector.
    """
    learns = type(selector).learn is not BaseSelector.learn
    if learns and not isinstance(selector, E3CS):
        raise ValueError(
            "selectors must learn nothing, or weight answers by their probabilities as E3CS does, "
            f"to be replayed, got {name!r}: it would learn from the recorded cohorts, not its own"
        )


def _other_half_rates(log: FederationLog, block: int, rng: np.random.Generator) -> Floats:
    """Return each client's rate in the other half of the rounds, [2, K]: even, odd blocks."""
    half = log.round // block % 2
    rates = []
    for own in (0, 1):
        others = half != own
        asked = sum_by(log.client[others], np.ones(others.sum()), log.num_clients)
        arrived = sum_by(log.client[others], log.arrived[others], log.num_clients)
        rates.append(fit_rates(asked, arrived, rng, draws=200).mean)
    return np.stack(rates)


def _estimate(
    log: FederationLog,
    name: str,
    probabilities: Floats,
    rates: Floats,
    resamples: Floats,
    block: int,
) -> Replayed:
    weight = probabilities[log.round, log.client] / log.inclusion
    half = np.arange(log.num_rounds) // block % 2

    def per_round(values: Floats) -> Floats:
        return sum_by(log.round, values, log.num_rounds)

    got = per_round(weight * log.arrived)
    total = per_round(weight)
    size = probabilities.sum(axis=1)
    residual = log.arrived - rates[half[log.round], log.client]
    robust = (probabilities * rates[half]).sum(axis=1) + per_round(weight * residual)

    rounds = log.num_rounds
    blocks = rounds // block
    means = (resamples @ np.stack([got, total, size, robust], axis=1)) / rounds
    ratio = means[:, 0] / np.maximum(means[:, 1], 1e-12) * means[:, 2]
    value = float(got.mean() / max(float(total.mean()), 1e-12) * size.mean())
    return Replayed(
        selector=name,
        inverse=widened(from_draws(means[:, 0], float(got.mean())), blocks),
        normalised=widened(from_draws(ratio, value), blocks),
        robust=widened(from_draws(means[:, 3], float(robust.mean())), blocks),
        effective=_effective_size(weight),
        support=float(total.mean() / max(float(size.mean()), 1e-12)),
    )


def _effective_size(weight: Floats) -> float:
    """Return how many answers of equal weight are worth as much, 0 if all weights are 0."""
    largest = float(weight.max())
    if not largest:
        return 0.0
    scaled = weight / largest  # the square of a large weight would overflow
    return float(scaled.sum() ** 2 / (scaled**2).sum())
