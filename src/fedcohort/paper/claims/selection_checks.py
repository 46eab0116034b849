"""The comparisons that decide the paper's claims about who is asked."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.paper.claims.claim import Check, compare
from fedcohort.paper.claims.evidence import Evidence
from fedcohort.statistics import BySeed

DOZENS = 100.0  # "dozens of times" is fewer than a hundred
NEAR_TURN = 0.02  # "in Round 625" is at most T/50 away from it
NOT_A_LOT = 0.1  # "not … sacrificing a lot" is less than a tenth
TENTHS = 10  # "throughout the whole training session" is in every tenth of it


def _by_seed(evidence: Evidence, selector: str, values: Floats) -> dict[int, float]:
    """Return values, one per seed of a scheme, by seed."""
    seeds = evidence.participation[selector].seeds
    return dict(zip(seeds, values.tolist(), strict=True))


def wrong_in_total(evidence: Evidence, ground: str) -> Iterator[Check]:
    """All choices outside the best class together are fewer than a hundred."""
    if "e3cs-0" not in evidence.participation:
        return
    not_best = evidence.classes < evidence.classes.max()
    wrong = evidence.participation["e3cs-0"].counts[:, not_best].sum(axis=-1)
    supports = _by_seed(evidence, "e3cs-0", DOZENS - wrong)
    yield Check("wrong choices in all below 100", supports, "times")


def wrong_per_client(evidence: Evidence, ground: str) -> Iterator[Check]:
    """A client outside the best class is asked fewer than a hundred times on average."""
    if "e3cs-0" not in evidence.participation:
        return
    not_best = evidence.classes < evidence.classes.max()
    wrong = evidence.participation["e3cs-0"].counts[:, not_best].mean(axis=-1)
    supports = _by_seed(evidence, "e3cs-0", DOZENS - wrong)
    yield Check("mean times asked below 100", supports, "times")


def best_class_asked_most(evidence: Evidence, ground: str) -> Iterator[Check]:
    """E3CS and FedCS ask the best class more than any other, and pow-d does not."""
    for selector, sign in BEST_FIRST.items():
        if selector not in evidence.participation:
            continue
        counts = evidence.participation[selector].counts
        numbers = np.unique(evidence.classes)
        means = [counts[:, evidence.classes == number].mean(axis=-1) for number in numbers]
        ahead = means[-1] - np.max(means[:-1], axis=0)
        words = "asks the best class most"
        if sign < 0:
            words = "does not ask the best class most"
        supports = _by_seed(evidence, selector, sign * ahead)
        yield Check(f"{selector} {words}", supports, "times")


BEST_FIRST = {
    "e3cs-0": 1,
    "e3cs-0.5": 1,
    "e3cs-0.8": 1,
    "e3cs-inc": 1,
    "fedcs": 1,
    "pow-d": -1,
}


def little_is_sacrificed(evidence: Evidence, ground: str) -> Iterator[Check]:
    """E3CS-0 gets more than nine tenths of the updates that FedCS gets."""
    schemes = evidence.participation
    if "e3cs-0" not in schemes or "fedcs" not in schemes:
        return
    ours = schemes["e3cs-0"].success_ratio(evidence.cohort)
    most = schemes["fedcs"].success_ratio(evidence.cohort)
    supports = {seed: ours[seed] / most[seed] - (1 - NOT_A_LOT) for seed in ours if seed in most}
    yield Check("E3CS-0's CEP over FedCS's above 0.9", supports, "ratio")


def fair_among_the_best(evidence: Evidence, ground: str) -> Iterator[Check]:
    """Within the best class E3CS-0 is fairer than FedCS."""
    schemes = evidence.participation
    if "e3cs-0" not in schemes or "fedcs" not in schemes:
        return
    best = np.flatnonzero(evidence.classes == evidence.classes.max())
    yield compare(
        "Jain's index within the best class, E3CS-0 over FedCS",
        higher=schemes["e3cs-0"].fairness(best),
        lower=schemes["fedcs"].fairness(best),
        unit="fairness",
    )


def fairness_order(evidence: Evidence, ground: str) -> Iterator[Check]:
    """Random > E3CS-0.8 > pow-d > E3CS-0.5 > E3CS-0 > FedCS."""
    order = ("random", "e3cs-0.8", "pow-d", "e3cs-0.5", "e3cs-0", "fedcs")
    return _in_order(evidence, order, "fairness")


def success_order(evidence: Evidence, ground: str) -> Iterator[Check]:
    """A smaller quota has a higher success ratio; FedCS, which knows the rates, is above all."""
    return _in_order(evidence, ("fedcs", "e3cs-0", "e3cs-0.5", "e3cs-0.8", "random"), "ratio")


def powd_asks_who_fails(evidence: Evidence, ground: str) -> Iterator[Check]:
    """The success ratio of pow-d is below Random's."""
    return _in_order(evidence, ("random", "pow-d"), "ratio")


def powd_is_low_throughout(evidence: Evidence, ground: str) -> Iterator[Check]:
    """In every tenth of the session pow-d's success ratio is below Random's."""
    schemes = evidence.participation
    if "random" not in schemes or "pow-d" not in schemes:
        return
    if min(schemes[name].successes.shape[1] for name in ("random", "pow-d")) < TENTHS:
        return
    for tenth in range(TENTHS):
        yield compare(
            f"Random above pow-d in tenth {tenth + 1}",
            higher=_ratio_in_tenth(evidence, "random", tenth),
            lower=_ratio_in_tenth(evidence, "pow-d", tenth),
            unit="ratio",
        )


def _ratio_in_tenth(evidence: Evidence, selector: str, tenth: int) -> BySeed:
    successes = evidence.participation[selector].successes
    part = np.array_split(successes, TENTHS, axis=1)[tenth]
    return _by_seed(evidence, selector, part.mean(axis=-1) / evidence.cohort)


def _in_order(evidence: Evidence, order: tuple[str, ...], statistic: str) -> Iterator[Check]:
    """Each scheme of an order is above the next; schemes differ too much to share a noise."""
    for high, low in pairwise(order):
        yield compare(
            f"{statistic}: {high} above {low}",
            higher=_statistic(evidence, high, statistic),
            lower=_statistic(evidence, low, statistic),
            unit=statistic,
        )


def _statistic(evidence: Evidence, selector: str, statistic: str) -> dict[int, float]:
    """Return the fairness or the success ratio of a scheme, by seed; empty if not played."""
    participation = evidence.participation.get(selector)
    if participation is None:
        return {}
    if statistic == "fairness":
        return participation.fairness()
    return participation.success_ratio(evidence.cohort)


def turn_of_inc(evidence: Evidence, ground: str) -> Iterator[Check]:
    """E3CS-inc's success per round drops at T/4, and nowhere else as much."""
    if "e3cs-inc" not in evidence.participation:
        return
    per_round = evidence.participation["e3cs-inc"].successes / evidence.cohort
    horizon = per_round.shape[1]
    turn = horizon // 4
    window = max(1, horizon // 25)
    if turn < window:
        return

    before = per_round[:, turn - window : turn].mean(axis=-1)
    after = per_round[:, turn : turn + window].mean(axis=-1)
    drop = _by_seed(evidence, "e3cs-inc", before - after)
    yield Check("success before less after T/4", drop, "ratio")

    sums = np.cumsum(np.pad(per_round, ((0, 0), (1, 0))), axis=1)
    windows = (sums[:, window:] - sums[:, :-window]) / window
    steepest = (windows[:, :-window] - windows[:, window:]).argmax(axis=-1) + window
    near = _by_seed(evidence, "e3cs-inc", NEAR_TURN * horizon - np.abs(steepest - turn))
    yield Check("steepest drop within T/50 of T/4", near, "times")


def regret_below_bound(evidence: Evidence, ground: str) -> Iterator[Check]:
    """Regret stays below the bound of Theorem 1, in every case played with the paper's update."""
    for case, margins in evidence.bound_margins.items():
        if "robust" in case.split(", "):
            continue
        supports = dict(enumerate(margins))
        yield Check(f"bound less regret: {case}", supports, "updates")


def nothing(evidence: Evidence, ground: str) -> Iterator[Check]:
    """No comparison: the claim is proved, or needs what no record has."""
    return iter(())
