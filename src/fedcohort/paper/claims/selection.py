"""The paper's sentences about who is asked, each as the comparisons that decide it: pure functions of the evidence."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fedcohort.paper.claims.evidence import NOISE, Check, Evidence, fairness, paired, success
from fedcohort.statistics import estimate

DOZENS = 100.0
CLOSE = 0.02  # of a success ratio: the same, for who looks at a figure


def dozens(of: Evidence, ground: str) -> Iterator[Check]:
    """The median client outside the best class is asked fewer than a hundred times."""
    if "e3cs-0" in of.asked:
        poor = of.asked["e3cs-0"].counts[:, of.classes < of.classes.max()]
        yield Check(
            "median times asked below 100", estimate((DOZENS - np.median(poor, axis=-1)).tolist())
        )


def fair_among_the_best(of: Evidence, ground: str) -> Iterator[Check]:
    """Within the best class E3CS-0 is fairer than FedCS."""
    if {"e3cs-0", "fedcs"} <= set(of.asked):
        best = np.flatnonzero(of.classes == of.classes.max())
        pair = (fairness(of.asked[name], best) for name in ("e3cs-0", "fedcs"))
        yield paired(
            "Jain's index within the best class, E3CS-0 over FedCS", pair, NOISE["fairness"]
        )


def in_order(of: Evidence, order: tuple[str, ...], what: str) -> Iterator[Check]:
    """Each scheme of an order is above the next."""
    for high, low in pairwise(order):
        found = [of.asked.get(name) for name in (high, low)]
        by_seed = [
            (fairness(one) if what == "fairness" else success(one, of.cohort))
            if one is not None
            else {}
            for one in found
        ]
        yield paired(f"{what}: {high} above {low}", by_seed, NOISE[what])


def fairness_order(of: Evidence, ground: str) -> Iterator[Check]:
    """Random > E3CS-0.8 > pow-d > E3CS-0.5 > E3CS-0 > FedCS."""
    return in_order(of, ("random", "e3cs-0.8", "pow-d", "e3cs-0.5", "e3cs-0", "fedcs"), "fairness")


def success_order(of: Evidence, ground: str) -> Iterator[Check]:
    """The smaller the quota, the higher the success ratio; FedCS, which knows the rates, is above all."""
    return in_order(of, ("fedcs", "e3cs-0", "e3cs-0.5", "e3cs-0.8", "random"), "ratio")


def powd_asks_who_fails(of: Evidence, ground: str) -> Iterator[Check]:
    """The success ratio of pow-d is below Random's."""
    return in_order(of, ("random", "pow-d"), "ratio")


def turn_of_inc(of: Evidence, ground: str) -> Iterator[Check]:
    """E3CS-inc's success per round drops at T/4, and nowhere as much as there."""
    if "e3cs-inc" not in of.asked:
        return
    per_round = of.asked["e3cs-inc"].successes / of.cohort
    horizon = per_round.shape[1]
    at, window = horizon // 4, max(1, horizon // 25)
    if at < window:
        return
    before, after = per_round[:, at - window : at], per_round[:, at : at + window]
    yield Check(
        "success before less after T/4",
        estimate((before.mean(axis=-1) - after.mean(axis=-1)).tolist()),
        NOISE["ratio"],
    )
    sums = np.cumsum(np.pad(per_round, ((0, 0), (1, 0))), axis=1)
    windows = (sums[:, window:] - sums[:, :-window]) / window
    steepest = (windows[:, :-window] - windows[:, window:]).argmax(axis=-1) + window
    yield Check(
        "steepest drop within T/50 of T/4",
        estimate((horizon / 50 - np.abs(steepest - at)).tolist()),
    )


def inc_becomes_random(of: Evidence, ground: str) -> Iterator[Check]:
    """After T/4 E3CS-inc's success per round is Random's, to 0.02."""
    if {"e3cs-inc", "random"} <= set(of.asked):
        pair = [of.asked[name] for name in ("e3cs-inc", "random")]
        turn = pair[0].successes.shape[1] // 4
        inc, random = (
            success(replace(one, successes=one.successes[:, turn:]), of.cohort) for one in pair
        )
        gaps = [CLOSE - abs(inc[seed] - random[seed]) for seed in inc if seed in random]
        yield Check(f"success after T/4 within {CLOSE} of Random's", estimate(gaps), NOISE["ratio"])


def theorem_1(of: Evidence, ground: str) -> Iterator[Check]:
    """Regret stays below the bound, in every case played."""
    for case, room in of.regret.items():
        yield Check(f"bound less regret: {case}", estimate(room))
