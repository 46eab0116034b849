"""The paper's claims about who is asked, each as the comparisons that decide it."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from fedcohort.paper.claims.claim import NOISE, Check, Claim, compare
from fedcohort.paper.claims.evidence import Evidence
from fedcohort.statistics import estimate

DOZENS = 100.0  # "dozens of times" is fewer than a hundred
CLOSE = 0.02  # success ratios that differ by less look equal in a figure


def rarely_wrong(evidence: Evidence, ground: str) -> Iterator[Check]:
    """The median client outside the best class is asked fewer than a hundred times."""
    if "e3cs-0" not in evidence.participation:
        return
    not_best = evidence.classes < evidence.classes.max()
    counts = evidence.participation["e3cs-0"].counts[:, not_best]
    medians = np.median(counts, axis=-1)
    yield Check("median times asked below 100", estimate((DOZENS - medians).tolist()))


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
        noise=NOISE["fairness"],
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


def _in_order(evidence: Evidence, order: tuple[str, ...], statistic: str) -> Iterator[Check]:
    """Each scheme of an order is above the next."""
    for high, low in pairwise(order):
        yield compare(
            f"{statistic}: {high} above {low}",
            higher=_statistic(evidence, high, statistic),
            lower=_statistic(evidence, low, statistic),
            noise=NOISE[statistic],
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
    drop = estimate((before - after).tolist())
    yield Check("success before less after T/4", drop, NOISE["ratio"])

    sums = np.cumsum(np.pad(per_round, ((0, 0), (1, 0))), axis=1)
    windows = (sums[:, window:] - sums[:, :-window]) / window
    steepest = (windows[:, :-window] - windows[:, window:]).argmax(axis=-1) + window
    distance = np.abs(steepest - turn)
    near = estimate((horizon / 50 - distance).tolist())
    yield Check("steepest drop within T/50 of T/4", near)


def inc_becomes_random(evidence: Evidence, ground: str) -> Iterator[Check]:
    """After T/4 E3CS-inc's success per round is within 0.02 of Random's."""
    schemes = evidence.participation
    if "e3cs-inc" not in schemes or "random" not in schemes:
        return
    turn = schemes["e3cs-inc"].successes.shape[1] // 4
    inc = schemes["e3cs-inc"].success_ratio(evidence.cohort, first_round=turn)
    random = schemes["random"].success_ratio(evidence.cohort, first_round=turn)
    margins = [CLOSE - abs(inc[seed] - random[seed]) for seed in inc if seed in random]
    yield Check(f"success after T/4 within {CLOSE} of Random's", estimate(margins), NOISE["ratio"])


def regret_below_bound(evidence: Evidence, ground: str) -> Iterator[Check]:
    """Regret stays below the bound of Theorem 1, in every case played."""
    for case, margins in evidence.bound_margins.items():
        yield Check(f"bound less regret: {case}", estimate(margins))


SECTION = "Numerical Simulation"
GROUNDS = ("selection",)
CLAIMS = (
    Claim(
        "dozens of wrong choices",
        SECTION,
        "E3CS-0 … only wrongly selects sub-optimal classes of clients dozens of times over "
        "… 2500 rounds",
        "100 less the median client's times asked",
        rarely_wrong,
        GROUNDS,
    ),
    Claim(
        "fair among the best",
        SECTION,
        "E3CS-0 would share the most probability over all the 25 clients in Class 4",
        "Jain's index within the class",
        fair_among_the_best,
        GROUNDS,
    ),
    Claim(
        "fairness order",
        SECTION,
        "Random > E3CS-0.8 > pow-d > E3CS-0.5 > E3CS-0 > FedCS",
        "Jain's index by seed",
        fairness_order,
        GROUNDS,
    ),
    Claim(
        "success order",
        SECTION,
        "fairness quota has a negative correlation on training success ratio",
        "success ratio by seed",
        success_order,
        GROUNDS,
    ),
    Claim(
        "pow-d asks who fails",
        SECTION,
        "pow-d has a very low CEP and success ratio throughout the whole training session",
        "success ratio by seed",
        powd_asks_who_fails,
        GROUNDS,
    ),
    Claim(
        "turn at T/4",
        SECTION,
        "E3CS-inc undertakes a significant turn in Round 625",
        "success per round before and after T/4",
        turn_of_inc,
        GROUNDS,
    ),
    Claim(
        "E3CS-inc becomes Random",
        SECTION,
        "E3CS-inc will eventually converge to the convergence value of Random",
        "success per round after T/4",
        inc_becomes_random,
        GROUNDS,
    ),
    Claim(
        "regret bound",
        "Theorem 1",
        "The regret of E3CS is upper-bounded by …",
        "bound less regret",
        regret_below_bound,
        GROUNDS,
    ),
)
