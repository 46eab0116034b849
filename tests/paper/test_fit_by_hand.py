"""Degrees of freedom and final accuracies of the fit to the paper, worked by hand."""

from math import sqrt

import numpy as np
import pytest
from made import result

from fedcohort.paper.fit import Spread, pooled_spread, score_rows
from fedcohort.paper.fit_cells import Deviation
from fedcohort.paper.paired_fit import Network, paired_rows
from fedcohort.paper.setting import task_config

CONFIG = task_config("cifar10", {})
ROUNDS = 2500


def curve(first, accuracy):
    """Return a whole run that is at 10 % until it has this accuracy from a round on."""
    return np.repeat([0.1, accuracy], [first - 1, ROUNDS - first + 1])


def runs_of(curves):
    """Return one run for each curve, in worlds 0, 1, ..."""
    return [result(CONFIG, curve, first_seed=seed) for seed, curve in enumerate(curves)]


def test_cells_with_half_a_correlation_are_worth_most_of_their_number():
    # About their means the cells are -1, 0, 1 and -1, 1, 0: squares 4 in 2 * 2 degrees. Their sums
    # are -2, 1, 1, with the squares 6. So r is (6 - 4) / 4, and the two cells are worth
    # 2 / (1 + 0.5^2) = 1.6 in each of the two worlds beyond the first.
    one = Deviation({0: 1.0, 1: 2.0, 2: 3.0}, 0.0)
    other = Deviation({0: 1.0, 1: 3.0, 2: 2.0}, 0.0)
    spread = pooled_spread([[one, other]])
    assert spread == Spread(1.0, pytest.approx(2 * 1.6))


def test_a_correlation_is_pooled_over_groups_by_their_squares():
    # Group one: +-1 and +-2 that move together: squares 2 + 8, of the sums +-3: 18. Group two: the
    # same with opposite signs: of the sums -+1: 2. So r is (20 - 20) / 20 = 0: four degrees.
    one = Deviation({0: 1.0, 1: 3.0}, 0.0)
    with_it = Deviation({0: 0.0, 1: 4.0}, 0.0)
    against_it = Deviation({0: 4.0, 1: 0.0}, 0.0)
    spread = pooled_spread([[one, with_it], [one, against_it]])
    assert spread == Spread(pytest.approx(sqrt(5.0)), 4.0)


def test_cells_that_repeat_each_other_are_never_worth_less_than_one():
    # Their correlation is 1 but for rounding, which must not take it above.
    rng = np.random.default_rng(1)
    for number in range(2, 8):
        for values in rng.normal(size=(50, 3)).tolist():
            one = Deviation(dict(enumerate(values)), 0.0)
            degrees = pooled_spread([[one] * number]).degrees
            assert degrees >= 2
            assert degrees == pytest.approx(2)


def test_a_column_that_has_only_nevers_in_a_group_adds_no_degrees_to_it():
    # Random reaches 60 % in both groups, 65 % with iid data alone. At 45 % and 55 % each group has
    # one cell of two worlds, so two degrees; at 65 % iid alone has one degree.
    iid = runs_of([curve(134, 0.7), curve(121, 0.7)])
    skewed = runs_of([curve(500, 0.6), curve(400, 0.6)])
    cells = {
        ("random", "iid", "paper", 0.0): iid,
        ("random", "primary-label", "paper", 0.0): skewed,
    }
    degrees = {}
    for row in score_rows(CONFIG, cells, cells):
        degrees[row["group"], row["quantity"]] = row["df"]
    assert degrees["iid, FedAvg", "rounds"] == "1 to 2"
    assert degrees["non-iid, FedAvg", "rounds"] == "2"


def test_final_accuracies_of_two_networks_are_compared_in_points():
    # The paper's Random ends at 71.46 %, pow-d at 72.52 %, both iid. Network b has not finished
    # world 0. In world 1 Random ends at 50.46 % and 93.46 %, 21 and 22 points off, and pow-d at
    # 62.52 % and 77.52 %, 10 and 5 points off. In logs b's Random would be nearer: 0.27, not 0.35.
    random = ("random", "iid", "paper", 0.0)
    powd = ("pow-d", "iid", "paper", 0.0)
    unfinished = result(CONFIG, (0.7,) * 10, first_seed=0, rounds=ROUNDS)
    first = {
        random: runs_of([curve(100, 0.7146), curve(100, 0.5046)]),
        powd: runs_of([curve(100, 0.7252), curve(100, 0.6252)]),
    }
    second = {
        random: [unfinished, result(CONFIG, curve(100, 0.9346), first_seed=1)],
        powd: [unfinished, result(CONFIG, curve(100, 0.7752), first_seed=1)],
    }
    *_, final = paired_rows(Network("a", CONFIG, first), Network("b", CONFIG, second))
    assert (final["quantity"], final["worlds"], final["cells"]) == ("final", "1", 2)
    assert (final["worst, a"], final["worst, b"]) == ("21.00 points", "22.00 points")
    assert (final["median, a"], final["median, b"]) == ("15.50 points", "13.50 points")
    assert (final["nearer, a"], final["nearer, b"]) == (1, 1)


def test_the_final_accuracy_of_two_worlds_is_their_mean_and_not_that_of_their_logs():
    # 50 % and 90 % have the mean 70 %, 1.46 points below the paper's 71.46 %. Their geometric mean
    # is 67.08 %, 4.38 points below. The other network is 2 points above.
    key = ("random", "iid", "paper", 0.0)
    wide = {key: runs_of([curve(100, 0.5), curve(100, 0.9)])}
    near = {key: runs_of([curve(100, 0.7346), curve(100, 0.7346)])}
    *_, final = paired_rows(Network("a", CONFIG, wide), Network("b", CONFIG, near))
    assert (final["worst, a"], final["worst, b"]) == ("1.46 points", "2.00 points")
    assert (final["nearer, a"], final["nearer, b"]) == (1, 0)
