"""The paper's numerical experiment, K = 100, k = 20, T = 2500.

The expected numbers come from 500 independent seeds of another program.
"""

import numpy as np
import pytest

from fedcohort.rounds import play
from fedcohort.selection.registry import Federation, make_selector
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates

SEEDS, ROUNDS = 64, 2500
pytestmark = pytest.mark.slow


def arrivals(name, sampler="systematic"):
    """Return the number of updates that arrived, [S]."""
    rates = class_rates(100)
    federation = Federation(
        100, 20, range(SEEDS), horizon=ROUNDS, success_rates=rates, sampler=sampler
    )
    records = play(make_selector(name, federation), bernoulli(rates, range(SEEDS)), ROUNDS)
    return sum(record.arrived.sum(axis=-1) for record in records)


@pytest.mark.parametrize(
    ("name", "sampler", "ratio", "error"),
    [
        ("e3cs-0", "successive", 0.855, 0.02),
        ("e3cs-0.5", "successive", 0.648, 0.003),
        ("e3cs-0.8", "successive", 0.543, 0.003),
        ("e3cs-inc", "successive", 0.557, 0.006),
        ("e3cs-0", "systematic", 0.868, 0.02),
        ("e3cs-0.5", "systematic", 0.682, 0.003),
        ("e3cs-0.8", "systematic", 0.555, 0.003),
        ("e3cs-inc", "systematic", 0.565, 0.006),
        ("fedcs", "systematic", 0.900, 0.002),
        ("random", "systematic", 0.475, 0.002),
    ],
)
def test_success_ratios_are_those_of_the_notes(name, sampler, ratio, error):
    assert arrivals(name, sampler).mean() / (20 * ROUNDS) == pytest.approx(ratio, abs=error)


def test_the_robust_update_is_as_good_and_ten_times_steadier():
    robust = arrivals("e3cs-robust")
    error = 4 * 77 * np.sqrt(1 / SEEDS + 1 / 500)  # four standard errors, sd 77, 500 seeds there
    assert abs(robust.mean() - 43_682) <= error

    papers = arrivals("e3cs-0")
    error = np.sqrt((robust.var(ddof=1) + papers.var(ddof=1)) / SEEDS)
    assert robust.mean() - papers.mean() > -3 * error
    # The logarithm of a standard deviation has a standard error of about 1 / sqrt(2 S).
    steadier = np.log(papers.std(ddof=1) / robust.std(ddof=1))
    assert abs(steadier - np.log(10)) <= 4 * np.sqrt(2 / (2 * SEEDS))
