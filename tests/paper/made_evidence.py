"""Evidence and comparisons made by hand, for the tests of the claims."""

from collections.abc import Mapping

import numpy as np

from fedcohort.paper.claims.claim import Check
from fedcohort.paper.claims.evidence import Evidence, Participation
from fedcohort.statistics import BySeed, Noise

PLAYED = 100  # rounds of each trained run


def trained_evidence(by_scheme: Mapping[str, BySeed]) -> Evidence:
    """Return evidence in which a scheme has these values by seed, whatever is asked for."""
    return Evidence(
        lambda group, selector, quantity: by_scheme.get(selector, {}),
        lambda group, selector: dict.fromkeys(by_scheme.get(selector, {}), PLAYED),
        {"cifar10": PLAYED, "emnist-letters": PLAYED},
    )


def selection_evidence(schemes: Mapping[str, Participation], **fields) -> Evidence:
    """Return evidence of simulations alone."""
    rounds = {"cifar10": PLAYED, "emnist-letters": PLAYED}
    return Evidence(lambda *_: {}, lambda *_: {}, rounds, schemes, **fields)


def participation(successes, counts=None, seeds=None) -> Participation:
    """Return who answered and who was asked; two clients, each asked once, if it is not said.

    Args:
        successes: Updates that arrived, one row of rounds per seed.
        counts: How often each client was asked, one row per seed.
        seeds: The seeds; 0, 1, ... if it is not said.
    """
    if counts is None:
        counts = [(1, 1)] * len(successes)
    if seeds is None:
        seeds = range(len(successes))
    return Participation(tuple(seeds), np.array(successes), np.array(counts))


def sure_check(mean: float | None, was_run: bool = False) -> Check:
    """Return a comparison with hardly any noise; it has no world if the mean is None."""
    supports = {} if mean is None else {0: mean}
    return Check(f"mean of {mean}", supports, "rounds", Noise(1e-6, 50), was_run=was_run)
