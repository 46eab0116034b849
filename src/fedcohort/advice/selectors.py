"""Selectors, compared in a world fitted to the log and in the log's own rounds.

Two things count: how many answers arrive, and whom it neglects. A selector that always asks the
reliable gets the most answers and never hears of the others, so the recommendation is the selector
with the most answers among those that ask every fifth of the clients a given share of its fair
share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from fedcohort.advice.estimates import Interval, more_rounds, t975
from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.lab.config_checks import check_needs_no_training
from fedcohort.lab.simulation_result import collect
from fedcohort.metrics import jain
from fedcohort.selection.registry import Federation, make_selector

CANDIDATES = (
    "random",
    "e3cs-0.5",
    "e3cs-0.8",
    "e3cs-0.5-robust",
    "e3cs-0.8-robust",
    "e3cs-0",
    "e3cs-robust",
)
UNIFORM = "random"
FAIR = 0.4  # share of its fair share that every fifth of the clients must be asked
TOLERANCE = 0.05
RUNS = 20
FIFTHS = 5
Z90 = 1.2816  # 90 % quantile of the normal distribution
MOST_VALUES = 30_000_000  # entries of a world


@dataclass(frozen=True, eq=False)
class Played:
    """What came of a selector in one of the worlds.

    Attributes:
        arrivals: Mean answers per round of each run [S].
        least_asked: How often the fifth of the clients that is asked least is asked, over its
            fair share. Fifths are made by how often clients answer.
        jain: Jain's index of how often clients are asked.
    """

    arrivals: Floats
    least_asked: float
    jain: float


@dataclass(frozen=True, eq=False)
class SelectorAdvice:
    """Selectors and what they get.

    Attributes:
        rounds: Rounds that were played.
        fitted: What came of each in the fitted world, by name.
        resampled: What came of each in the log's own rounds, by name.
        best: The recommended selector.
        gain: Answers per round that it gets beyond uniform selection, in the fitted world.
        resampled_gain: The same in the log's own rounds.
        agrees: Whether both worlds recommend the same, or their gains overlap.
        loss: How much it may lose against the best, at 90 % confidence.
        is_said: Whether that is at most 5 %.
        more_rounds: Rounds that would tell; None if it is said or cannot be known.
        fair: Share of its fair share that every fifth of the clients must be asked.
    """

    rounds: int
    fitted: Mapping[str, Played]
    resampled: Mapping[str, Played]
    best: str
    gain: Interval
    resampled_gain: Interval
    agrees: bool
    loss: float
    is_said: bool
    more_rounds: int | None
    fair: float


def world_size(clients: int, rounds: int) -> tuple[int, int]:
    """Return how many rounds and runs to play, so that a world fits the memory.

    Args:
        clients: Number of clients.
        rounds: Rounds that one would like to play.
    """
    runs = int(np.clip(MOST_VALUES // (clients * rounds), 3, RUNS))
    return min(rounds, max(20, MOST_VALUES // (clients * runs))), runs


def advise_selector(
    fitted: Bools,
    resampled: Bools,
    cohort: int,
    log_rounds: int,
    names: Sequence[str] = CANDIDATES,
    fair: float = FAIR,
    rates: Floats | None = None,
) -> SelectorAdvice:
    """Return which selector to use.

    Args:
        fitted: Who would answer in the fitted world [T, S, K].
        resampled: Who would answer in the log's own rounds [T, S, K].
        cohort: Clients asked per round.
        log_rounds: Rounds of the log.
        names: Selectors to compare; uniform selection is always among them.
        fair: Share of its fair share that every fifth of the clients must be asked.
        rates: Rates [K], for selectors that know them.
    """
    names = tuple(dict.fromkeys((UNIFORM, *names)))
    in_fitted = play_selectors(fitted, cohort, names, rates)
    in_resampled = play_selectors(resampled, cohort, names, rates)
    is_fair = {}
    may_be_fair = {}
    for name in names:
        least = (in_fitted[name].least_asked, in_resampled[name].least_asked)
        is_fair[name] = name == UNIFORM or min(least) >= fair
        may_be_fair[name] = name == UNIFORM or max(least) >= fair
    best = _best(in_fitted, is_fair)
    other = _best(in_resampled, is_fair)
    gain = difference(in_fitted[best].arrivals, in_fitted[UNIFORM].arrivals)
    resampled_gain = difference(in_resampled[best].arrivals, in_resampled[UNIFORM].arrivals)
    if best != UNIFORM and not gain.is_above(0.0):
        best = UNIFORM
        gain = resampled_gain = Interval(0.0, 0.0, 0.0)

    loss = 0.0
    for name, played in in_fitted.items():
        if may_be_fair[name] and name != best:
            loss = max(loss, _possible_lead(played, in_fitted[best], cohort, len(fitted)))
    overlaps = gain.low <= resampled_gain.high and resampled_gain.low <= gain.high
    is_said = loss <= TOLERANCE
    return SelectorAdvice(
        rounds=len(fitted),
        fitted=in_fitted,
        resampled=in_resampled,
        best=best,
        gain=gain,
        resampled_gain=resampled_gain,
        agrees=best == other or overlaps,
        loss=loss,
        is_said=is_said,
        more_rounds=None if is_said else more_rounds(log_rounds, loss, TOLERANCE),
        fair=fair,
    )


def play_selectors(
    world: Bools, cohort: int, names: Sequence[str], rates: Floats | None = None
) -> dict[str, Played]:
    """Return what comes of selectors that meet the same rounds.

    Args:
        world: Who would answer [T, S, K].
        cohort: Clients asked per round.
        names: Names of selectors.
        rates: Rates [K], for selectors that know them.

    Raises:
        ValueError: If a selector needs training, times or data sizes.
    """
    rounds, runs, clients = world.shape
    played = {}
    for name in names:
        federation = Federation(
            clients, cohort, rng=list(range(runs)), horizon=rounds, success_rates=rates
        )
        selector = make_selector(name, federation)
        check_needs_no_training(name, selector)
        result = collect(selector, iter(world), None, rounds=rounds, runs=runs)
        played[name] = Played(
            arrivals=result.successes.mean(axis=1),
            least_asked=neglect(result.counts, world.mean(axis=0)),
            jain=float(jain(result.counts).mean()),
        )
    return played


def neglect(counts: Ints, rates: Floats) -> float:
    """Return how often the fifth that is asked least is asked, over its fair share.

    Args:
        counts: How often each client was asked [S, K].
        rates: How often each client answers [S, K]; they decide who belongs to a fifth.

    Examples:
        >>> neglect(np.array([[1, 2, 3, 3, 6]]), np.array([[0.1, 0.2, 0.3, 0.4, 0.5]])) * 3
        1.0
    """
    order = rates.argsort(axis=-1, kind="stable")
    ranked = np.take_along_axis(counts, order, axis=-1).mean(axis=0)
    fifths = np.array_split(ranked, min(FIFTHS, len(ranked)))
    return float(min(part.mean() for part in fifths) / max(ranked.mean(), 1e-9))


def difference(one: Floats, other: Floats) -> Interval:
    """Return the mean of paired differences with its 95 % interval.

    Args:
        one: Values of runs [S].
        other: Values of the same runs [S].

    Examples:
        >>> difference(np.array([2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0])).as_dict()
        {'value': 1.0, 'low': 1.0, 'high': 1.0}
    """
    differences = one - other
    mean = float(differences.mean())
    if len(differences) < 2:
        return Interval(mean, float("nan"), float("nan"))
    margin = t975(len(differences) - 1) * float(differences.std(ddof=1)) / sqrt(len(differences))
    return Interval(mean, mean - margin, mean + margin)


def _possible_lead(other: Played, best: Played, cohort: int, rounds: int) -> float:
    """Return by which share another selector may be ahead, at 90 % confidence.

    Every run has rates of its own, as far as they are not known. What differs between runs beyond
    the chance of their rounds is this doubt about the rates.
    """
    lead = other.arrivals - best.arrivals
    chance = 0.0
    for played in (other, best):
        mean = float(played.arrivals.mean())
        chance += mean * (1 - mean / cohort) / rounds
    doubt = sqrt(max(0.0, float(lead.var(ddof=1)) - chance))
    return (float(lead.mean()) + Z90 * doubt) / max(float(best.arrivals.mean()), 1e-9)


def _best(played: Mapping[str, Played], is_fair: Mapping[str, bool]) -> str:
    """Return the selector with the most answers among those that are fair enough."""
    fair = [name for name in played if is_fair[name]]
    return max(fair, key=lambda name: float(played[name].arrivals.mean()))
