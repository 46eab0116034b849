from math import e, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedcohort.lab.folder import load_checkpoint, save_checkpoint
from fedcohort.selection.allocation import allocate
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Cohort, Outcome
from fedcohort.selection.quotas import constant, step

TRAJECTORY = [
    ((0, 2), (1, 0)),
    ((0, 1), (1, 1)),
    ((0, 3), (1, 1)),
    ((0, 3), (1, 1)),
    ((0, 1), (1, 0)),
    ((0, 3), (1, 1)),
]


def close(got, expected, digits=1e-14):
    np.testing.assert_allclose(got, expected, rtol=0, atol=digits)


def log_sum(logs):
    return np.log(np.exp(logs).sum(axis=-1))


def next_p(selector, round=0):
    k, n = selector.cohort_size, selector.num_clients
    return allocate(selector.log_weights, k, selector.fraction(round) * k / n).inclusion


@pytest.fixture
def follow(prescribe):
    """Return a function that plays prescribed cohorts and answers from round 0."""

    def play(selector, steps):
        for round, (clients, success) in enumerate(steps):
            prescribe(*clients)
            selector.update(Outcome(selector.select(round), np.array(success)))

    return play


@st.composite
def played(draw, update, share=1e-4):
    """Return a selector with any weights, its cohort of round 0 and answers, all of it random."""
    num_clients = draw(st.integers(2, 12))
    cohort_size = draw(st.integers(1, num_clients - 1))
    quota = draw(st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1))
    share = share if isinstance(share, float) else draw(share)
    selector = E3CS(
        num_clients,
        cohort_size,
        rng=draw(st.integers(0, 99)),
        quota=quota,
        update=update,
        share=share,
        eta=0.5,
    )
    logs = np.array(draw(st.lists(st.floats(-9, 9), min_size=num_clients, max_size=num_clients)))
    selector.log_weights = logs - log_sum(logs) if update == "robust" else logs
    success = draw(st.lists(st.integers(0, 1), min_size=cohort_size, max_size=cohort_size))
    return selector, np.array(success)


def test_the_hand_worked_trajectory_without_a_floor(follow):
    selector = E3CS(4, 2, rng=0)
    follow(selector, TRAJECTORY[:1])
    close(next_p(selector), [0.70932248878488679] + [0.43022583707170440] * 3)
    selector = E3CS(4, 2, rng=0)
    follow(selector, TRAJECTORY[:2])
    close(
        next_p(selector),
        [0.76479442080561315, 0.58303558847518759, 0.32608499535959963, 0.32608499535959963],
    )
    selector = E3CS(4, 2, rng=0)
    follow(selector, TRAJECTORY)
    close(selector.log_weights, [2.04949117255503756, 0.58109015883751602, 0, 1.68516041396347821])
    close(
        next_p(selector),
        [0.97382587687093437, 0.22426569845868715, 0.12542918594810713, 0.67647923872227135],
    )


def test_the_hand_worked_trajectory_with_a_floor_of_a_quarter(follow):
    selector = E3CS(4, 2, rng=0, quota=0.5)
    follow(selector, TRAJECTORY[:3])
    close(selector.log_weights, [0.69346831841385294, 0.25857147951633474, 0, 0.27545588016504573])
    close(
        next_p(selector),
        [0.60643953326366154, 0.48073451743083197, 0.42816254270732665, 0.48466340659817984],
    )


def test_the_hand_worked_trajectory_with_a_capped_client(follow):
    selector = E3CS(4, 2, rng=0)
    selector.log_weights = np.array([0, 0, 0, log(9)])
    follow(selector, [((0, 3), (1, 1))])
    close(selector.log_weights, [0.75, 0, 0, log(9)])
    close(allocate(selector.log_weights, 2).log_cap, log(e**0.75 + 2))
    selector = E3CS(4, 2, rng=0)
    selector.log_weights = np.array([0, 0, 0, log(9)])
    follow(selector, [((0, 3), (1, 1)), ((1, 3), (1, 0))])
    close(selector.log_weights, [0.75, (e**0.75 + 2) / 4, 0, log(9)])
    close(next_p(selector), [0.35784521, 0.47312069, 0.16903411, 1], 5e-9)


def test_the_hand_worked_robust_step_charges_capped_clients_too(follow):
    selector = E3CS(4, 2, rng=0, update="robust", share=0.0)
    selector.log_weights = np.log([1, 1, 1, 9]) - log(12)
    follow(selector, [((0, 3), (0, 0))])
    weights = np.array([e**-0.75, 1, 1, 3 * e**-0.25])
    close(np.exp(selector.log_weights), weights / weights.sum())
    close(np.exp(selector.log_weights), [0.09823025, 0.20795343, 0.20795343, 0.48586289], 5e-9)
    close(next_p(selector), [0.19646049, 0.41590687, 0.41590687, 0.97172578], 5e-9)


@given(played("paper"))
def test_paper_weights_rise_only_where_an_uncapped_client_asked_has_answered(case):
    selector, success = case
    before = selector.log_weights.copy()
    floor = selector.fraction(0) * selector.cohort_size / selector.num_clients
    allocation = allocate(before, selector.cohort_size, floor)
    cohort = selector.select(0)
    close(cohort.inclusion, allocation.inclusion[cohort.clients], 0)
    selector.update(Outcome(cohort, success))
    rise = np.zeros(selector.num_clients)
    spare = selector.cohort_size * (1 - selector.fraction(0))
    rise[cohort.clients] = 0.5 * spare / selector.num_clients * success / cohort.inclusion
    rise[allocation.capped] = 0
    assert (selector.log_weights[rise == 0] == before[rise == 0]).all()
    np.testing.assert_allclose(selector.log_weights, before + rise, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("update", ["paper", "robust"])
def test_weights_are_frozen_when_the_floor_takes_all(update):
    selector = E3CS(6, 2, rng=0, quota=1.0, update=update)
    selector.log_weights = np.arange(6.0)
    selector.update(Outcome(selector.select(0), np.array([1, 0])))
    assert (selector.log_weights == np.arange(6.0)).all()


def test_the_estimate_of_an_answer_is_unbiased():
    runs, num_clients, k = 4000, 8, 3
    selector = E3CS(num_clients, k, rng=range(runs), quota=0.25)
    start = np.log([1, 1, 2, 2, 3, 3, 4, 4])
    selector.log_weights = np.tile(start, (runs, 1))
    allocation = allocate(start, k, 0.25 * k / num_clients)
    assert not allocation.capped.any()
    answers = np.array([1, 0, 1, 1, 0, 1, 0.5, 1])
    cohort = selector.select(0)
    selector.update(Outcome(cohort, answers[cohort.clients]))
    estimates = (selector.log_weights - start) / (0.5 * k * 0.75 / num_clients)
    # Five standard errors of 1{i asked} x_i / p_i.
    error = 5 * answers * np.sqrt((1 / allocation.inclusion - 1) / runs)
    assert (np.abs(estimates.mean(axis=0) - answers) <= error).all()


@given(played("robust", st.sampled_from([1e-4, 0.01, 1.0])), st.integers(1, 30))
def test_robust_weights_are_shares_none_below_beta_over_k(case, rounds):
    selector, success = case
    n, k = selector.num_clients, selector.cohort_size
    if selector.fraction(0) == 1:
        return  # frozen: shown elsewhere
    for round in range(rounds):
        cohort = selector.select(round)
        selector.update(Outcome(cohort, np.roll(success, round)))
        assert (selector.log_weights >= log(selector.share / n) - 1e-12).all()
        assert (selector.log_weights <= 1e-12).all()
        close(log_sum(selector.log_weights), 0.0, 1e-12)
        phi = selector.fraction(round)
        least = phi * k / n + k * (1 - phi) * selector.share / n
        assert (next_p(selector) >= least - 1e-12).all()


@given(played("robust", 0.0), st.integers(0, 100))
def test_failing_lowers_the_clients_own_next_p_and_without_a_share_nobody_elses(case, who):
    change, who = failing_instead_of_succeeding(*case, who)
    assert change[who] <= 1e-13
    assert (np.delete(change, who) >= -1e-13).all()


@given(played("robust", st.sampled_from([1e-4, 0.01])), st.integers(0, 100))
def test_with_a_share_failing_still_lowers_the_clients_own_next_p(case, who):
    change, who = failing_instead_of_succeeding(*case, who)
    assert change[who] <= 1e-13


def failing_instead_of_succeeding(selector, success, who):
    """Return the change of next p, and whose answer was changed."""
    cohort = selector.select(0)
    state = selector.state_dict()
    who %= success.size
    answers = []
    for x in (1, 0):
        selector.load_state_dict(state)
        success[who] = x
        selector.update(Outcome(cohort, success))
        answers.append(next_p(selector))
    return answers[1] - answers[0], cohort.clients[who]


@pytest.mark.parametrize("update", ["paper", "robust"])
@given(data=st.data(), k=st.integers(1, 5), quota=st.floats(0, 1))
def test_only_available_clients_are_asked_and_each_is_granted_the_floor_among_them(
    update, data, k, quota
):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=9, max_size=9)))
    selector = E3CS(9, k, rng=1, quota=quota, update=update)
    selector.log_weights = np.linspace(-4, 0, 9)
    cohort = selector.select(0, mask)
    n = mask.sum()
    assert cohort.clients.size == min(k, n)
    assert mask[cohort.clients].all()
    assert (cohort.inclusion >= quota * min(k, n) / max(n, 1) * (1 - 1e-12)).all()


def test_the_floor_among_those_available_is_phi_k_over_n(prescribe):
    selector = E3CS(8, 2, rng=0, quota=0.5)
    selector.log_weights = np.array([0, 0, 0, 0, -900, -900, 50, 50.0])
    prescribe(0, 1)
    selector.select(0, [0, 1, 2, 3, 4])  # sigma' = 0.5 * 2 / 5, R' = 1 for four equal clients
    close(prescribe.seen, [0.45, 0.45, 0.45, 0.45, 0.2, 0, 0, 0])


def test_steps_are_scaled_by_the_number_available(prescribe):
    selector = E3CS(8, 2, rng=0, quota=0.5)
    prescribe(1, 3)
    selector.update(Outcome(selector.select(0, [0, 1, 2, 3]), np.array([1, 0])))
    gain = 0.5 * 1 / 4 / 0.5  # eta R'/n / p with R' = 1, n = 4, p = 1/2
    close(selector.log_weights, [0, gain, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("update", ["paper", "robust"])
@pytest.mark.parametrize("available", [[2, 5], [2, 5, 7], [4]])
def test_when_k_or_fewer_are_available_all_are_asked_and_nothing_is_learnt(update, available):
    selector = E3CS(9, 3, rng=0, update=update)
    selector.log_weights = np.linspace(-3, 0, 9)
    cohort = selector.select(0, available)
    assert cohort.clients.tolist() == available
    assert (cohort.inclusion == 1).all()
    selector.update(Outcome(cohort, np.zeros(len(available))))
    assert (selector.log_weights == np.linspace(-3, 0, 9)).all()


@pytest.mark.parametrize("rng", [0, [0, 1]])
@pytest.mark.parametrize("update", ["paper", "robust"])
def test_when_nobody_is_available_the_round_is_skipped(update, rng):
    selector = E3CS(5, 2, rng=rng, update=update)
    before = selector.log_weights.copy()
    cohort = selector.select(0, [])
    assert cohort.clients.shape == (*before.shape[:-1], 0)
    selector.update(Outcome(cohort, np.empty(cohort.clients.shape)))
    assert (selector.log_weights == before).all()
    assert selector.select(1).clients.shape == (*before.shape[:-1], 2)


@given(played("robust", st.sampled_from([0.0, 1e-4])), st.integers(0, 2**12 - 1))
def test_absent_clients_keep_their_share_exactly_and_those_present_keep_theirs_together(case, bits):
    selector, success = case
    present = np.array([bool(bits >> i & 1) for i in range(selector.num_clients)])
    assume(present.any())
    before = selector.log_weights.copy()
    cohort = selector.select(0, present)
    selector.update(Outcome(cohort, success[: cohort.clients.size]))
    assert (selector.log_weights[~present] == before[~present]).all()
    close(log_sum(selector.log_weights[present]), log_sum(before[present]), 1e-12)


@pytest.mark.parametrize("update", ["paper", "robust"])
def test_a_leaver_returns_with_the_weight_it_left_with(update):
    selector = E3CS(6, 2, rng=0, update=update)
    for round in range(40):
        cohort = selector.select(round, None if round < 20 else [0, 1, 2, 4, 5])
        if round == 20:
            left_with = selector.log_weights[3]
        selector.update(Outcome(cohort, cohort.clients % 2 == 1))
    assert selector.log_weights[3] == left_with
    assert selector.select(40).clients.size == 2


@pytest.mark.parametrize("rng", [0, [0, 1]])
def test_newcomers_get_the_mean_share(rng):
    robust = E3CS(4, 2, rng=rng, update="robust")
    robust.log_weights = np.log([0.1, 0.2, 0.3, 0.4]) + np.zeros(robust.shape)
    robust.join(2)
    shares = [0.1 / 1.5, 0.2 / 1.5, 0.2, 0.4 / 1.5, 1 / 6, 1 / 6]
    close(np.exp(robust.log_weights), np.broadcast_to(shares, robust.shape))

    paper = E3CS(4, 2, rng=rng)
    paper.log_weights = np.log([1, 2, 3, 10]) + np.zeros(paper.shape)
    paper.join()
    close(np.exp(paper.log_weights), np.broadcast_to([1, 2, 3, 10, 4], paper.shape), 1e-13)
    assert paper.num_clients == 5
    assert paper.select(0, [0, 4]).clients.shape[-1] == 2


@pytest.mark.parametrize(
    ("quota", "eta"),
    [(0.0, 0.0960), (0.5, 0.1357), (0.8, 0.2146), (step(at=625), 0.1919)],
    ids=["0", "0.5", "0.8", "inc"],
)
def test_the_automatic_rate_is_the_theorems(quota, eta):
    selector = E3CS(100, 20, rng=0, quota=quota, eta="auto", horizon=2500)
    assert selector.eta == pytest.approx(eta, abs=5e-5)


def test_the_automatic_rate_is_at_most_one():
    assert E3CS(100, 20, rng=0, eta="auto", horizon=5).eta == 1.0  # K ln K / (k T) = 4.6
    assert E3CS(100, 20, rng=0, eta="auto", quota=1.0, horizon=2500).eta == 1.0


def test_an_outcome_of_other_clients_teaches_nothing():
    selector = E3CS(5, 2, rng=0)
    cohort = selector.select(0)
    before = selector.log_weights.copy()
    stranger = Cohort(0, np.setdiff1d(np.arange(5), cohort.clients)[:2], cohort.inclusion)
    with pytest.raises(
        ValueError, match=rf"clients asked in round 0, got client {stranger.clients[0]}"
    ):
        selector.update(Outcome(stranger, np.ones(2)))
    assert (selector.log_weights == before).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_clients": 0}, r"num_clients must be a whole number at least 1, got 0"),
        ({"cohort_size": 6}, r"cohort_size must be a whole number between 1 and 5, got 6"),
        ({"cohort_size": 0}, r"cohort_size must be a whole number between 1 and 5, got 0"),
        ({"quota": 1.1}, r"quota must be between 0\.0 and 1\.0, got 1\.1"),
        ({"quota": -0.1}, r"quota must be between 0\.0 and 1\.0, got -0\.1"),
        ({"quota": float("nan")}, r"quota must be between 0\.0 and 1\.0, got nan"),
        ({"eta": 0}, r"eta must be a finite number above 0, got 0"),
        ({"eta": float("inf")}, r"eta must be a finite number above 0, got inf"),
        ({"eta": 1e300}, r"eta must be between 0 and 2147483647, got 1e\+300"),
        ({"eta": "fast"}, r"eta must be a finite number above 0, got 'fast'"),
        ({"eta": "auto"}, r"horizon must be the number of rounds where eta is 'auto', got None"),
        ({"eta": "auto", "horizon": 0}, r"horizon must be a whole number at least 1, got 0"),
        (
            {"update": "papre"},
            r"update must be one of paper, robust, got 'papre'; did you mean 'paper'\?",
        ),
        ({"share": 1.5}, r"share must be between 0\.0 and 1\.0, got 1\.5"),
        (
            {"sampler": "system"},
            r"sampler must be one of .*, got 'system'; did you mean 'systematic'\?",
        ),
        ({"rng": -1}, r"seed must be a whole number at least 0, got -1"),
    ],
)
def test_bad_arguments_are_named_with_bound_and_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        E3CS(**{"num_clients": 5, "cohort_size": 2, "rng": 0} | arguments)


def test_a_quota_outside_its_bounds_is_named_with_its_round():
    selector = E3CS(5, 2, rng=0, quota=lambda round: 1.5 if round == 3 else 0.5)
    selector.select(2)
    with pytest.raises(ValueError, match=r"quota\(3\) must be between 0\.0 and 1\.0, got 1\.5"):
        selector.select(3)


def test_a_joining_count_must_be_positive():
    with pytest.raises(ValueError, match=r"count must be a whole number at least 1, got 0"):
        E3CS(5, 2, rng=0, quota=constant(0.5)).join(0)


@pytest.mark.parametrize(
    "weights", [np.zeros((2, 6), int), np.zeros((2, 6), order="F"), np.zeros((2, 6)).tolist()]
)
def test_weights_learn_whatever_array_they_were_set_to(weights):
    selector = E3CS(6, 2, rng=[0, 1])
    selector.log_weights = weights
    cohort = selector.select(0)
    selector.update(Outcome(cohort, np.ones((2, 2))))
    assert (selector.log_weights > 0).sum() == 4
    with pytest.raises(ValueError, match=r"log_weights must have shape \(2, 6\), got \(6,\)"):
        selector.log_weights = np.zeros(6)


@pytest.mark.parametrize("update", ["paper", "robust"])
@pytest.mark.parametrize("available", [None, [0, 2, 3, 5]])
def test_a_cohort_in_flight_survives_a_checkpoint_on_disk(tmp_path, update, available):
    original = E3CS(6, 2, rng=0, update=update)
    cohort = original.select(0, available)
    save_checkpoint(tmp_path, {"selector": original.state_dict()})
    restored = E3CS(6, 2, rng=0, update=update)
    restored.load_state_dict(load_checkpoint(tmp_path)["selector"])
    for selector in (original, restored):
        selector.update(Outcome(cohort, np.array([1.0, 0.0])))
    np.testing.assert_array_equal(original.log_weights, restored.log_weights)
