"""The contract of all selectors: every scheme in SELECTORS plays these tests."""

import json
import re
from math import ceil

import numpy as np
import pytest
from exact import chi_square_tail, members
from states import same_state

from fedcohort.selection.availability import present_mask
from fedcohort.selection.protocol import Cohort, Outcome
from fedcohort.selection.registry import SELECTORS, Federation, make_selector

ROUNDS = 10


every = pytest.mark.parametrize("name", SELECTORS)


alone_and_batched = pytest.mark.parametrize("rng", [5, [5, 6, 7]], ids=["alone", "batched"])


def kind_of(name):
    """Return the kind of a scheme's states: E3CS has two, whose weights differ in meaning."""
    return re.sub(r"e3cs.*?(-robust)?$", r"e3cs\1", name)


def count_asked(name, size=4):
    """Return how many clients a scheme asks for a cohort of this size."""
    return ceil(1.3 * size) if name == "over-selection" else size


WITH_INCLUSION = [name for name, scheme in SELECTORS.items() if scheme.selector.has_inclusion]
ONE_OF_EACH = list({kind_of(name): name for name in SELECTORS}.values())
OF_ANOTHER_KIND = [
    (name, other) for name in SELECTORS for other in ONE_OF_EACH if kind_of(name) != kind_of(other)
]


def available_in(round):
    """Return who may be asked: everyone, most, half, and once fewer than the cohort."""
    turns = [None, np.arange(12) != 3, [0, 2, 4, 6, 8, 10], [1, 11]]
    return turns[round % 4]


def play_from(selector, report, first, in_flight=None):
    """Play all rounds from the first and return their cohorts, one in flight included."""
    cohorts = []
    for round in range(first, ROUNDS):
        cohort = in_flight or selector.select(round, available_in(round))
        in_flight = None
        selector.update(report(cohort))
        cohorts.append(cohort)
    return cohorts


def assert_same_cohorts(got, expected):
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one.clients, other.clients)
        np.testing.assert_array_equal(one.inclusion, other.inclusion)
        np.testing.assert_array_equal(one.correction, other.correction)


@every
@alone_and_batched
def test_a_cohort_is_k_distinct_clients_with_their_chances(name, rng, build, report):
    selector = build(name, rng)
    for round in range(ROUNDS):
        cohort = selector.select(round)
        assert cohort.round == round
        assert cohort.clients.shape == (*np.shape(rng), count_asked(name))
        assert (np.diff(cohort.clients, axis=-1) > 0).all()
        assert cohort.clients.min() >= 0
        assert cohort.clients.max() < 12
        assert cohort.inclusion.shape == cohort.clients.shape
        assert (cohort.inclusion > 0).all()
        assert (cohort.inclusion <= 1).all()
        selector.update(report(cohort))


@every
@alone_and_batched
def test_only_available_clients_are_asked_all_of_them_if_they_are_fewer(name, rng, build, report):
    selector = build(name, rng)
    for round in range(ROUNDS):
        available = available_in(round)
        mask = present_mask(available, 12, ())
        if mask is None:
            mask = np.ones(12, dtype=bool)
        cohort = selector.select(round, available)
        assert cohort.clients.shape == (*np.shape(rng), min(count_asked(name), mask.sum()))
        assert mask[cohort.clients].all()
        selector.update(report(cohort))


@every
@alone_and_batched
def test_a_round_with_nobody_there_is_accepted_and_changes_no_mind(name, rng, build, report):
    selector = build(name, rng)
    state = selector.state_dict()
    cohort = selector.select(0, [])
    assert cohort.clients.shape == (*np.shape(rng), 0)
    selector.update(report(cohort))
    after = selector.state_dict()
    if name == "refl":  # which counts in how many rounds each client was there
        state["trials"] += 1
    assert same_state({**after, "rng": 0}, {**state, "rng": 0})


@every
@alone_and_batched
def test_a_state_continues_the_same_run_from_any_round_and_between_select_and_update(
    name, rng, build, report
):
    uninterrupted = play_from(build(name, rng), report, 0)
    for stop in range(ROUNDS):
        stopped = build(name, rng)
        for round in range(stop):
            stopped.update(report(stopped.select(round, available_in(round))))
        resumed = build(name, 99 if np.ndim(rng) == 0 else [97, 98, 99])
        resumed.load_state_dict(stopped.state_dict())
        assert_same_cohorts(play_from(resumed, report, stop), uninterrupted[stop:])

        cohort = stopped.select(stop, available_in(stop))
        resumed = build(name, 99 if np.ndim(rng) == 0 else [97, 98, 99])
        resumed.load_state_dict(stopped.state_dict())
        assert_same_cohorts(play_from(resumed, report, stop, cohort), uninterrupted[stop:])


@every
@alone_and_batched
def test_a_state_is_not_touched_by_the_run_that_goes_on(name, rng, build, report):
    selector = build(name, rng)
    selector.update(report(selector.select(0)))
    state = selector.state_dict()
    expected = play_from(selector, report, 1)
    resumed = build(name, rng)
    resumed.load_state_dict(state)
    assert_same_cohorts(play_from(resumed, report, 1), expected)


@every
@pytest.mark.parametrize("available", [None, [0, 1, 2, 3, 4, 5]])
def test_a_selector_with_a_cohort_in_flight_can_be_put_back(name, available, build, report):
    selector = build(name)
    state = selector.state_dict()
    expected = play_from(build(name), report, 0)
    selector.select(0, available)
    selector.load_state_dict(state)
    assert_same_cohorts(play_from(selector, report, 0), expected)


@every
@alone_and_batched
def test_the_generator_state_survives_json(name, rng, build, report):
    selector = build(name, rng)
    selector.update(report(selector.select(0)))
    state = selector.state_dict()
    state["rng"] = json.loads(json.dumps(state["rng"]))
    resumed = build(name, rng)
    resumed.load_state_dict(state)
    assert_same_cohorts(play_from(resumed, report, 1), play_from(selector, report, 1))


@every
def test_a_run_in_a_batch_is_the_run_alone(name, build, report):
    together = play_from(build(name, [3, 1, 4]), report, 0)
    for row, seed in enumerate([3, 1, 4]):
        alone = play_from(build(name, seed), report, 0)
        own = []
        for cohort in together:
            weights = cohort.correction[row]
            own.append(Cohort(cohort.round, cohort.clients[row], cohort.inclusion[row], weights))
        assert_same_cohorts(own, alone)


@pytest.mark.parametrize("available", [None, np.arange(12) % 4 != 1], ids=["all", "some"])
@pytest.mark.parametrize("name", WITH_INCLUSION)
def test_clients_are_asked_with_the_probabilities_that_are_claimed(name, available, build, report):
    learned = build(name, 7)
    learned.update(report(learned.select(0)))
    claimed = learned.inclusion(1, available)
    assert claimed.sum() == pytest.approx(4)

    # All runs continue from what the one has learned, each with its own chance.
    runs, repeats = 200, 25
    selector = build(name, list(range(runs)))
    state = selector.state_dict()
    for key, values in learned.state_dict().items():
        if isinstance(values, np.ndarray):
            state[key] = np.broadcast_to(values, (runs, *values.shape))
    selector.load_state_dict(state)

    cohorts = []
    for _ in range(repeats):
        cohort = selector.select(1, available)  # without an update nothing is learned
        np.testing.assert_allclose(cohort.inclusion, claimed[cohort.clients], rtol=1e-12)
        cohorts.append(cohort.clients)
    is_asked = members(np.concatenate(cohorts), 12)

    is_certain = (claimed == 0) | (claimed > 1 - 1e-9)
    assert (is_asked[:, is_certain] == np.round(claimed[is_certain])).all()
    assert (~is_certain).sum() > 1
    by_chance = is_asked[:, ~is_certain].astype(float)
    difference = by_chance.mean(axis=0) - claimed[~is_certain]
    # The cohort's size is fixed, so the counts depend on each other: Hotelling's statistic.
    covariance = np.cov(by_chance, rowvar=False) / len(by_chance)
    statistic = difference @ np.linalg.pinv(covariance, rcond=1e-9) @ difference
    freedom = np.linalg.matrix_rank(covariance, tol=1e-9 * covariance.max())
    assert chi_square_tail(statistic, freedom) > 1e-4


@every
def test_seeds_make_different_runs(name, build):
    first = np.array([build(name, seed).select(0).clients for seed in range(8)])
    assert (first != first[0]).any()


@every
def test_a_state_of_another_size_or_kind_is_refused_and_changes_nothing(name, build):
    selector = build(name)
    selector.select(0)
    before = selector.state_dict()
    good = build(name).state_dict()
    refused = {
        r"num_clients of the state must be 12, got 13": build(name, num_clients=13).state_dict(),
        rf"cohort_size of the state must be {count_asked(name)}, got {count_asked(name, 5)}": build(
            name, cohort_size=5
        ).state_dict(),
        r"rng of the state must be for runs of shape \(\), got \(2,\)": build(
            name, [0, 1]
        ).state_dict(),
        r"differs in spirit": {**good, "spirit": 1},
        r"state must be one of .*, got None": None,
        r"asked in the state must have .*clients, inclusion.*, got {}": {**good, "asked": {}},
        r"asked in the state must have .*clients, inclusion.*, got None": {**good, "asked": None},
    }
    for missing in good.keys() - {"asked"}:
        refused[f"differs in .*{missing}"] = {
            key: value for key, value in good.items() if key != missing
        }
    for message, state in refused.items():
        with pytest.raises(ValueError, match=message):
            build(name).load_state_dict(state)
        with pytest.raises(ValueError, match=r"state"):
            selector.load_state_dict(state)
        assert same_state(selector.state_dict(), before)


@pytest.mark.parametrize(("name", "other"), OF_ANOTHER_KIND)
def test_a_state_of_another_scheme_is_refused(name, other, build):
    with pytest.raises(ValueError, match=r"state must be"):
        build(name).load_state_dict(build(other).state_dict())


@every
def test_arrays_of_a_state_must_fit(name, build):
    selector = build(name)
    state = build(name).state_dict()
    arrays = [key for key, value in state.items() if isinstance(value, np.ndarray)]
    assert set(arrays) == {*selector.client_arrays, *selector.run_arrays}
    for key in arrays:
        right = re.escape(str(state[key].shape))
        for wrong in (np.zeros(11), np.zeros((12, 1)), np.array("x")):
            got = repr(wrong) if wrong.shape == state[key].shape else str(wrong.shape)
            message = rf"{key} of the state must be numbers of shape {right}, got {re.escape(got)}"
            with pytest.raises(ValueError, match=message):
                selector.load_state_dict({**state, key: wrong})


@every
def test_an_outcome_must_answer_the_last_cohort(name, build, report):
    selector = build(name)
    with pytest.raises(
        ValueError, match=r"update needs a cohort from select first, got an outcome for round 7"
    ):
        selector.update(report(Cohort(7, np.arange(4), np.ones(4))))
    cohort = selector.select(3)
    before = selector.state_dict()
    with pytest.raises(
        ValueError, match=r"outcome must be for round 3, the last one selected, got round 2"
    ):
        selector.update(report(Cohort(2, cohort.clients, cohort.inclusion)))
    size = count_asked(name)
    others = np.setdiff1d(np.arange(12), cohort.clients)[:size]
    with pytest.raises(
        ValueError,
        match=rf"outcome must be for the clients asked in round 3, got client {others[0]}",
    ):
        selector.update(report(Cohort(3, others, np.ones(size))))
    with pytest.raises(
        ValueError,
        match=r"outcome must be for the clients asked in round 3, got clients of shape \(3,\)",
    ):
        selector.update(report(Cohort(3, cohort.clients[:3], np.ones(3))))
    assert same_state(selector.state_dict(), before)
    selector.update(report(cohort))
    with pytest.raises(ValueError, match=r"update needs a cohort from select first"):
        selector.update(report(cohort))


@every
@pytest.mark.parametrize(
    ("round", "available", "message"),
    [
        (-1, None, r"round must be a whole number at least 0, got -1"),
        (0.5, None, r"round must be a whole number at least 0, got 0\.5"),
        (0, [3, 12], r"available must hold client ids between 0 and 11, got 12"),
        (0, [-1], r"available must hold client ids between 0 and 11, got -1"),
        (
            0,
            [0.5, 1.0],
            r"available must be a mask of 12 clients or an array of client ids, got \[0\.5, 1\.0\]",
        ),
        (0, np.ones(11, dtype=bool), r"available must have shape \(12,\), got \(11,\)"),
    ],
)
def test_a_bad_round_or_availability_is_refused_and_costs_no_draw(
    name, round, available, message, build
):
    selector = build(name)
    untouched = build(name)
    with pytest.raises(ValueError, match=message):
        selector.select(round, available)
    assert_same_cohorts([selector.select(0)], [untouched.select(0)])


@every
def test_runs_in_lock_step_must_have_cohorts_of_one_size(name, build):
    available = np.ones((2, 12), dtype=bool)
    available[1, 2:] = False
    message = (
        r"available must leave every run in lock-step the same cohort size, "
        rf"got between 2 and {count_asked(name)}"
    )
    with pytest.raises(ValueError, match=message):
        build(name, [0, 1]).select(0, available)


@every
@pytest.mark.parametrize(
    ("size", "message"),
    [
        (
            {"num_clients": 0, "cohort_size": 1},
            r"num_clients must be a whole number at least 1, got 0",
        ),
        ({"num_clients": 5.0}, r"num_clients must be a whole number at least 1, got 5\.0"),
        ({"cohort_size": 0}, r"cohort_size must be a whole number between 1 and 12, got 0"),
        ({"cohort_size": 13}, r"cohort_size must be a whole number between 1 and 12, got 13"),
        ({"rng": -1}, r"seed must be a whole number at least 0, got -1"),
    ],
)
def test_impossible_sizes_are_refused(name, size, message):
    fields = {
        "num_clients": 12,
        "cohort_size": 4,
        "rng": 0,
        "horizon": 10,
        "loss_of": np.cos,
        "success_rates": np.ones(12),
        "data_sizes": np.ones(12),
        "deadline": 10.0,
    }
    with pytest.raises(ValueError, match=message):
        make_selector(name, Federation(**fields | size))


@every
def test_everyone_can_be_asked_and_one_client_is_enough(name, build):
    everyone = build(name, num_clients=6, cohort_size=6).select(0)
    assert everyone.clients.tolist() == [0, 1, 2, 3, 4, 5]
    if name != "fedcs":  # four classes of rates need four clients in this fixture
        lonely = Federation(1, 1, 0, horizon=10, loss_of=np.cos, data_sizes=[9], deadline=10.0)
        only = make_selector(name, lonely).select(0)
        assert (only.clients.tolist(), only.inclusion.tolist()) == ([0], [1.0])


@every
def test_every_run_may_have_its_own_mask(name, build, report):
    is_even = np.arange(12) % 2 == 0
    masks = np.stack([is_even, ~is_even, np.arange(12) < 6])
    batched = build(name, [3, 1, 4])
    alone = [build(name, seed) for seed in (3, 1, 4)]
    for round in range(ROUNDS):
        cohort = batched.select(round, masks)
        batched.update(report(cohort))
        for row, selector in enumerate(alone):
            own = selector.select(round, masks[row])
            np.testing.assert_array_equal(own.clients, cohort.clients[row])
            np.testing.assert_array_equal(own.inclusion, cohort.inclusion[row])
            selector.update(report(own))
        masks = np.roll(masks, 1, axis=-1)


@every
@alone_and_batched
def test_newcomers_are_asked_too_and_ids_stay(name, rng, build, report):
    selector = build(name, rng)
    selector.update(report(selector.select(0)))
    rates = {"success_rates": [1.0, 1.0]} if name == "fedcs" else {}
    selector.join(2, **rates)
    assert selector.num_clients == 14
    cohort = selector.select(1, [12, 13])
    assert (cohort.clients == [12, 13]).all()
    selector.update(report(cohort))
    assert selector.select(2).clients.shape == (*np.shape(rng), count_asked(name))


# The logarithms of their weights grow by a bit every round, past what a float can hold.
GROWING = [name for name in SELECTORS if name.startswith("e3cs") and "robust" not in name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampler"), [*((name, "systematic") for name in GROWING), ("e3cs-0", "successive")]
)
def test_ten_thousand_rounds_leave_no_trace_of_nan_or_overflow(name, sampler, build):
    play_without_overflow(build(name, [0, 1], horizon=10_000, sampler=sampler), 10_000)


@pytest.mark.parametrize("name", sorted(SELECTORS.keys() - set(GROWING)))
def test_two_thousand_rounds_leave_no_trace_of_nan_or_overflow(name, build):
    play_without_overflow(build(name, [0, 1], horizon=2_000), 2_000)


def play_without_overflow(selector, rounds):
    rates = np.repeat([0.1, 0.3, 0.6, 0.9], 3)
    world = np.random.default_rng(0)
    for round in range(rounds):
        cohort = selector.select(round)
        success = world.random(cohort.clients.shape) < rates[cohort.clients]
        reported = np.where(success, 1.0, np.nan)
        seconds = np.where(success, 3.0, 10.0)
        selector.update(Outcome(cohort, success, reported, seconds, reported))
    weights = selector.state_dict().get("log_weights", np.zeros(1))
    assert np.isfinite(weights).all()
    assert (selector.select(rounds).inclusion > 0).all()
    assert np.isfinite(selector.select(rounds).correction).all()
