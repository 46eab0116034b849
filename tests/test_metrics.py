from itertools import product
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcohort.metrics import (
    best_fixed,
    clairvoyant_value,
    class_quartiles,
    corrected_bound,
    first_at,
    gap,
    jain,
    paper_bound,
    robust_bound,
    spare_and_floors,
    success_ratio,
    theorem_holds,
    worst,
)

NAN = float("nan")
ROUNDS = 2500
FRACTIONS = {
    "0": np.zeros(ROUNDS),
    "0.5": np.full(ROUNDS, 0.5),
    "0.8": np.full(ROUNDS, 0.8),
    "inc": np.where(np.arange(ROUNDS) < 625, 0.0, 1.0),
}
careful = settings(deadline=None, derandomize=True, max_examples=100)


def paper_setting(scheme):
    """Return R_t and sigma_t of the paper's experiment, K = 100 and k = 20."""
    return spare_and_floors(FRACTIONS[scheme], 100, 20)


def corners(low, high, total, count):
    """Return the corners of {low <= q <= high, sum q = total}.

    All entries of a corner but one lie on a border.
    """
    points = []
    for free in range(count):
        for borders in product((low, high), repeat=count - 1):
            q = np.insert(np.array(borders, dtype=np.float64), free, total - sum(borders))
            if low - 1e-9 <= q[free] <= high + 1e-9:
                points.append(q)
    return np.stack(points)


@st.composite
def problems(draw):
    """Draw phi_t [T] in eighths, K, k and who answers [T, K]."""
    num_clients = draw(st.integers(1, 5))
    rounds = draw(st.integers(1, 4))
    cohort_size = draw(st.integers(1, num_clients))
    fractions = np.array(draw(st.lists(st.integers(0, 8), min_size=rounds, max_size=rounds))) / 8
    size = rounds * num_clients
    bits = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    answers = np.array(bits, dtype=np.float64).reshape(rounds, num_clients)
    return fractions, num_clients, cohort_size, answers


def test_success_ratio_divides_what_arrived_so_far_by_what_was_asked_so_far():
    # k = 2: 1 of 2, 3 of 4, 3 of 6.
    # A second run with nothing until the end: 0 of 2, 0 of 4, 2 of 6.
    ratio = success_ratio(np.array([[1, 2, 0], [0, 0, 2]]), 2)
    np.testing.assert_allclose(ratio, [[1 / 2, 3 / 4, 1 / 2], [0, 0, 1 / 3]])


def test_success_ratio_of_one_run_needs_no_batch_axis():
    np.testing.assert_allclose(success_ratio(np.array([3, 0]), 3), [1, 1 / 2])


def test_jain_is_one_for_equals_one_over_k_for_a_monopoly_and_one_for_nothing():
    counts = np.array([[7, 7, 7, 7], [0, 9, 0, 0], [0, 0, 0, 0], [1, 2, 3, 4]])
    # the last: (1 + 2 + 3 + 4)^2 / (4 (1 + 4 + 9 + 16)) = 100 / 120
    np.testing.assert_allclose(jain(counts), [1, 1 / 4, 1, 5 / 6])


@careful
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20), st.integers(1, 1000))
def test_jain_lies_between_one_over_k_and_one_and_ignores_scale(counts, scale):
    index = float(jain(np.array(counts)))
    assert 1 / len(counts) - 1e-12 <= index <= 1 + 1e-12
    assert index == pytest.approx(float(jain(scale * np.array(counts))), rel=1e-12)


def test_quartiles_are_taken_within_each_class_and_averaged_over_runs():
    classes = np.array([0, 0, 0, 0, 0, 1, 1])
    # Class 0 holds 0..4 in run 1, with quartiles 1, 2, 3, and 10 times that in run 2.
    # Class 1 holds 4 and 8 in run 1, with quartiles 5, 6, 7, and zeros in run 2.
    counts = np.array([[4, 0, 2, 1, 3, 8, 4], [0, 10, 20, 30, 40, 0, 0]])
    np.testing.assert_allclose(class_quartiles(counts, classes), [[5.5, 11, 16.5], [2.5, 3, 3.5]])
    np.testing.assert_allclose(class_quartiles(counts[0], classes), [[1, 2, 3], [5, 6, 7]])


def test_best_fixed_fills_the_best_clients_up_to_the_cap():
    # K = 4, k = 2, phi = 0: R = 2, so no q above 1/2; clients 1 and 3 earn most
    np.testing.assert_allclose(
        best_fixed(np.array([1.0, 9, 2, 5]), np.full(3, 2.0), np.zeros(3)), [0, 0.5, 0, 0.5]
    )


def test_best_fixed_keeps_to_the_cap_of_the_tightest_round():
    # K = 4, k = 2. Round 1, phi = 0: cap 1/2. Round 2, phi = 1/2: R = 1, sigma = 1/4, cap 3/4.
    # Round 3, phi = 1: no cap.
    spare = np.array([2.0, 1.0, 0.0])
    floors = np.array([0.0, 0.25, 0.5])
    np.testing.assert_allclose(
        best_fixed(np.array([3.0, 2, 1, 0]), spare, floors), [0.5, 0.5, 0, 0]
    )
    np.testing.assert_allclose(
        best_fixed(np.array([3.0, 2, 1, 0]), spare[1:], floors[1:]), [0.75, 0.25, 0, 0]
    )


def test_best_fixed_decides_for_every_run_by_itself():
    gains = np.array([[1.0, 2, 3], [3.0, 2, 1]])
    np.testing.assert_allclose(best_fixed(gains, np.ones(2), np.zeros(2)), [[0, 0, 1], [1, 0, 0]])


@careful
@given(problems(), st.integers(0, 2**32 - 1))
def test_best_fixed_is_feasible_and_no_feasible_allocation_earns_more(problem, seed):
    fractions, num_clients, cohort_size, answers = problem
    spare, floors = spare_and_floors(fractions, num_clients, cohort_size)
    gains = spare @ answers
    share = best_fixed(gains, spare, floors)

    assert share.sum() == pytest.approx(1, abs=1e-12)
    assert (share >= 0).all()
    assert (share[:, None] * spare + floors <= 1 + 1e-12).all()

    caps = [(1 - floor) / left for left, floor in zip(spare, floors, strict=True) if left > 0]
    most = min([1.0, *caps])
    assert gains @ share >= (corners(0.0, most, 1.0, num_clients) @ gains).max() - 1e-9

    direction = np.random.default_rng(seed).dirichlet(np.ones(num_clients)) - 1 / num_clients
    reach = (most - 1 / num_clients) / direction.max() if direction.max() > 0 else 0.0
    # as far from the uniform q as the cap allows
    other = 1 / num_clients + min(1.0, reach) * direction
    assert gains @ share >= gains @ other - 1e-9


@careful
@given(problems())
def test_clairvoyant_value_is_the_best_of_all_allocations_of_each_round(problem):
    fractions, num_clients, cohort_size, answers = problem
    spare, floors = spare_and_floors(fractions, num_clients, cohort_size)
    value = clairvoyant_value(answers.sum(axis=-1).astype(np.int64), spare, floors)
    best = [
        (corners(floor, 1.0, cohort_size, num_clients) @ row).max()
        for floor, row in zip(floors, answers, strict=True)
    ]
    np.testing.assert_allclose(value, best, atol=1e-9)


@careful
@given(problems())
def test_the_clairvoyant_never_earns_less_than_the_best_fixed_allocation(problem):
    fractions, num_clients, cohort_size, answers = problem
    spare, floors = spare_and_floors(fractions, num_clients, cohort_size)
    share = best_fixed(spare @ answers, spare, floors)
    fixed = spare * (answers @ share) + floors * answers.sum(axis=-1)
    assert (
        clairvoyant_value(answers.sum(axis=-1).astype(np.int64), spare, floors) >= fixed - 1e-9
    ).all()


def test_spare_and_floors_split_the_cohort():
    spare, floors = spare_and_floors(np.array([0.0, 0.5, 1.0]), 10, 4)
    np.testing.assert_allclose(spare, [4, 2, 0])
    np.testing.assert_allclose(floors, [0, 0.2, 0.4])
    np.testing.assert_allclose(spare + 10 * floors, 4)


# Numbers of the errata and of the table of regrets, for K = 100, k = 20 and T = 2500, rounded to
# units there.
@pytest.mark.parametrize(
    ("scheme", "bound"), [("0", 9597), ("0.5", 6786), ("0.8", 4292), ("inc", 4799)]
)
def test_the_papers_bound_at_its_best_rate_is_the_one_worked_out_by_hand(scheme, bound):
    spare, _ = paper_setting(scheme)
    best = sqrt(100 * log(100) / spare.sum())
    assert paper_bound(best, spare, 100) == pytest.approx(bound, abs=0.5)
    assert min(
        paper_bound(0.9 * best, spare, 100), paper_bound(1.1 * best, spare, 100)
    ) > paper_bound(best, spare, 100)


@pytest.mark.parametrize(("scheme", "bound"), [("0", 25921), ("0.5", 13421), ("0.8", 5921)])
def test_the_papers_bound_at_the_papers_rate_is_the_one_worked_out_by_hand(scheme, bound):
    assert paper_bound(0.5, paper_setting(scheme)[0], 100) == pytest.approx(bound, abs=0.5)


@pytest.mark.parametrize(
    ("scheme", "slots", "bound"), [("0", 20, 5673), ("0.5", 100 / 9, 4687), ("0.8", 100 / 21, 3490)]
)
def test_the_corrected_bound_at_its_own_best_rate_is_the_one_worked_out_by_hand(
    scheme, slots, bound
):
    spare, floors = paper_setting(scheme)  # slots: rho = R / (1 - sigma) = 20, 10 / 0.9, 4 / 0.84
    best = sqrt(100 * log(100 / slots) / spare.sum())
    # abs=1: the first is 5673.51
    assert corrected_bound(best, spare, floors, 100) == pytest.approx(bound, abs=1)
    assert corrected_bound(best, spare, floors, 100) == pytest.approx(
        2 * sqrt(spare.sum() * 100 * log(100 / slots))
    )


@pytest.mark.parametrize("scheme", FRACTIONS)
def test_the_corrected_bound_is_sharper_than_the_papers_and_the_robust_one_sharper_still(scheme):
    spare, floors = paper_setting(scheme)
    bounds = [
        robust_bound(0.1, spare, floors, 100),
        corrected_bound(0.1, spare, floors, 100),
        paper_bound(0.1, spare, 100),
    ]
    assert 0 < bounds[0] < bounds[1] < bounds[2]


def test_the_bounds_of_two_clients_are_the_ones_worked_out_by_hand():
    # K = 2, k = 1, no floor: sum R = 4, rho = 1, and eta = 1/2
    spare = np.ones(4)
    floors = np.zeros(4)
    assert paper_bound(0.5, spare, 2) == pytest.approx(2 + 4 * log(2))
    assert corrected_bound(0.5, spare, floors, 2) == pytest.approx(2 + 4 * log(2))
    assert robust_bound(0.5, spare, floors, 2) == pytest.approx(1 + 4 * log(2))


def test_the_corrected_bound_of_a_changing_quota_takes_the_largest_rho():
    # K = 10, k = 4, phi = 0 and 1/2: R = 4 and 2, sigma = 0 and 0.2, rho = 4 and 2 / 0.8 = 2.5.
    # A fixed q_i is at most the least 1 / rho, which is 1/4.
    spare, floors = spare_and_floors(np.array([0.0, 0.5]), 10, 4)
    expected = 0.5 * 6 + 10 / 0.5 * log(10 / 4)
    assert corrected_bound(0.5, spare, floors, 10) == pytest.approx(expected)


def test_nothing_is_lost_where_nothing_is_spare():
    spare, floors = spare_and_floors(np.ones(7), 10, 4)
    assert corrected_bound(0.5, spare, floors, 10) == 0
    assert robust_bound(0.5, spare, floors, 10) == 0


def test_nothing_is_lost_to_ignorance_where_everyone_is_asked():
    # rho = K, so ln(K / rho) = 0 and only the rate's term is left
    spare, floors = spare_and_floors(np.zeros(7), 5, 5)
    assert corrected_bound(0.5, spare, floors, 5) == pytest.approx(0.5 * 35)


@careful
@given(st.floats(0.01, 3.0), st.floats(0.0, 1.0), st.integers(1, 50), st.integers(1, 50))
def test_the_theorem_holds_where_the_fraction_is_at_least_eta_over_one_plus_eta(
    eta, fraction, cohort_size, more
):
    needed = eta / (1 + eta)
    if abs(fraction - needed) < 1e-9:
        fraction = needed
    spare, floors = spare_and_floors(np.array([fraction, needed]), cohort_size + more, cohort_size)
    assert theorem_holds(eta, spare, floors, cohort_size + more).tolist() == [
        fraction >= needed,
        True,
    ]


def test_the_theorem_covers_constant_floors_but_neither_no_floor_nor_the_growing_one():
    covered = {scheme: theorem_holds(0.5, *paper_setting(scheme), 100) for scheme in FRACTIONS}
    assert covered["0.5"].all()
    assert covered["0.8"].all()
    assert not covered["0"].any()
    assert covered["inc"].sum() == ROUNDS - 625


def test_the_first_round_at_a_target_counts_from_one_and_skips_rounds_without_a_value():
    curves = np.array([[np.nan, 0.6, 0.1], [0.5, 0.2, 0.2], [np.nan, 0.9, 0.3]])
    np.testing.assert_array_equal(first_at(curves, 0.5), [2, 1, np.nan])


def test_the_worst_group_and_the_gap_are_those_worked_out_by_hand():
    accuracy = np.array([[0.5, 0.75, 0.25], [NAN, 0.5, 0.875], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(worst(accuracy), [0.25, 0.5, NAN])
    np.testing.assert_array_equal(gap(accuracy), [0.5, 0.375, NAN])
    assert worst(accuracy[0]) == 0.25
    assert gap(accuracy[0, :1]) == 0
