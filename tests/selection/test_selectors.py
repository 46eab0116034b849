import json
import re

import numpy as np
import pytest

from fedcohort.lab import folder as rundir
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.fedcs import FedCS
from fedcohort.selection.powd import LastLoss, PowD
from fedcohort.selection.protocol import Cohort, Outcome
from fedcohort.selection.random import Random
from fedcohort.selection.registry import PAPER_SELECTORS, SELECTORS, Federation, make_selector

ROUNDS = 10
every = pytest.mark.parametrize("name", SELECTORS)
alone_and_batched = pytest.mark.parametrize("rng", [5, [5, 6, 7]], ids=["alone", "batched"])


def scheme(name):
    """Return the scheme of a name: E3CS has two, whose weights do not mean the same."""
    return re.sub(r"e3cs.*?(-robust)?$", r"e3cs\1", name)


ONE_OF_EACH = ("random", "pow-d", "rpow-d", "fedcs", "e3cs-0", "e3cs-robust")


def available_in(round):
    """Return who is there: everyone, most, and once fewer than the cohort."""
    return [None, np.arange(12) != 3, [0, 2, 4, 6, 8, 10], [1, 11]][round % 4]


def same(a, b):
    """Return whether two states are equal, arrays and all."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


def rest_of(selector, report, first, cohort=None):
    """Return the cohorts of all rounds from the first, the cohort in flight included."""
    cohorts = []
    for round in range(first, ROUNDS):
        cohort = cohort or selector.select(round, available_in(round))
        selector.update(report(cohort))
        cohorts.append(cohort)
        cohort = None
    return cohorts


def assert_same_cohorts(got, expected):
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one.clients, other.clients)
        np.testing.assert_array_equal(one.inclusion, other.inclusion)


@every
@alone_and_batched
def test_a_cohort_is_k_distinct_clients_with_their_chances(name, rng, build, report):
    selector = build(name, rng)
    for round in range(ROUNDS):
        cohort = selector.select(round)
        assert cohort.round == round
        assert cohort.clients.shape == (*np.shape(rng), 4)
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
        there = available_in(round)
        mask = (
            np.ones(12, dtype=bool)
            if there is None
            else np.isin(np.arange(12), there)
            if round % 4 > 1
            else there
        )
        cohort = selector.select(round, there)
        assert cohort.clients.shape == (*np.shape(rng), min(4, mask.sum()))
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
    assert same({**after, "rng": 0}, {**state, "rng": 0})


@every
@alone_and_batched
def test_a_state_continues_the_same_run_from_any_round_and_between_select_and_update(
    name, rng, build, report
):
    whole_run = rest_of(build(name, rng), report, 0)
    for stop in range(ROUNDS):
        stopped = build(name, rng)
        for round in range(stop):
            stopped.update(report(stopped.select(round, available_in(round))))
        resumed = build(name, 99 if np.ndim(rng) == 0 else [97, 98, 99])
        resumed.load_state_dict(stopped.state_dict())
        assert_same_cohorts(rest_of(resumed, report, stop), whole_run[stop:])

        cohort = stopped.select(stop, available_in(stop))
        resumed = build(name, 99 if np.ndim(rng) == 0 else [97, 98, 99])
        resumed.load_state_dict(stopped.state_dict())
        assert_same_cohorts(rest_of(resumed, report, stop, cohort), whole_run[stop:])


@every
@alone_and_batched
def test_a_state_is_not_touched_by_the_run_that_goes_on(name, rng, build, report):
    selector = build(name, rng)
    selector.update(report(selector.select(0)))
    state = selector.state_dict()
    expected = rest_of(selector, report, 1)
    resumed = build(name, rng)
    resumed.load_state_dict(state)
    assert_same_cohorts(rest_of(resumed, report, 1), expected)


@every
@pytest.mark.parametrize("available", [None, [0, 1, 2, 3, 4, 5]])
def test_a_selector_with_a_cohort_in_flight_can_be_put_back(name, available, build, report):
    selector = build(name)
    state = selector.state_dict()
    expected = rest_of(build(name), report, 0)
    selector.select(0, available)
    selector.load_state_dict(state)
    assert_same_cohorts(rest_of(selector, report, 0), expected)


@every
@alone_and_batched
def test_the_generator_state_survives_json(name, rng, build, report):
    selector = build(name, rng)
    selector.update(report(selector.select(0)))
    state = selector.state_dict()
    state["rng"] = json.loads(json.dumps(state["rng"]))
    resumed = build(name, rng)
    resumed.load_state_dict(state)
    assert_same_cohorts(rest_of(resumed, report, 1), rest_of(selector, report, 1))


@every
def test_a_run_in_a_batch_is_the_run_alone(name, build, report):
    together = rest_of(build(name, [3, 1, 4]), report, 0)
    for row, seed in enumerate([3, 1, 4]):
        alone = rest_of(build(name, seed), report, 0)
        assert_same_cohorts(
            [Cohort(c.round, c.clients[row], c.inclusion[row]) for c in together], alone
        )


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
        r"cohort_size of the state must be 4, got 5": build(name, cohort_size=5).state_dict(),
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
        assert same(selector.state_dict(), before)


@pytest.mark.parametrize(
    ("name", "other"), [(a, b) for a in SELECTORS for b in ONE_OF_EACH if scheme(a) != scheme(b)]
)
def test_a_state_of_another_scheme_is_refused(name, other, build):
    with pytest.raises(ValueError, match=r"state must be"):
        build(name).load_state_dict(build(other).state_dict())


@every
def test_arrays_of_a_state_must_fit(name, build):
    selector, state = build(name), build(name).state_dict()
    arrays = [key for key, value in state.items() if isinstance(value, np.ndarray)]
    for key in arrays:
        for wrong in (state[key][:-1], np.array(0.0)):
            with pytest.raises(
                ValueError,
                match=rf"{key} of the state must be numbers of shape \(12,\), got {re.escape(str(wrong.shape))}",
            ):
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
    others = np.setdiff1d(np.arange(12), cohort.clients)[:4]
    with pytest.raises(
        ValueError,
        match=rf"outcome must be for the clients asked in round 3, got client {others[0]}",
    ):
        selector.update(report(Cohort(3, others, np.ones(4))))
    with pytest.raises(
        ValueError,
        match=r"outcome must be for the clients asked in round 3, got clients of shape \(3,\)",
    ):
        selector.update(report(Cohort(3, cohort.clients[:3], np.ones(3))))
    assert same(selector.state_dict(), before)
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
    selector, untouched = build(name), build(name)
    with pytest.raises(ValueError, match=message):
        selector.select(round, available)
    assert_same_cohorts([selector.select(0)], [untouched.select(0)])


@every
def test_runs_in_lock_step_must_have_cohorts_of_one_size(name, build):
    there = np.ones((2, 12), dtype=bool)
    there[1, 2:] = False
    with pytest.raises(
        ValueError,
        match=r"available must leave every run in lock-step the same cohort size, got between 2 and 4",
    ):
        build(name, [0, 1]).select(0, there)


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
    }
    with pytest.raises(ValueError, match=message):
        make_selector(name, Federation(**fields | size))


@every
def test_everyone_can_be_asked_and_one_client_is_enough(name, build):
    assert build(name, num_clients=6, cohort_size=6).select(0).clients.tolist() == [
        0,
        1,
        2,
        3,
        4,
        5,
    ]
    if name != "fedcs":  # four classes of rates need four clients in this fixture
        only = make_selector(name, Federation(1, 1, 0, horizon=10, loss_of=np.cos)).select(0)
        assert (only.clients.tolist(), only.inclusion.tolist()) == ([0], [1.0])


@every
@alone_and_batched
def test_newcomers_are_asked_too_and_ids_stay(name, rng, build, report):
    selector = build(name, rng)
    selector.update(report(selector.select(0)))
    selector.join(2, success_rates=[1.0, 1.0]) if name == "fedcs" else selector.join(2)
    assert selector.num_clients == 14
    cohort = selector.select(1, [12, 13])
    assert (cohort.clients == [12, 13]).all()
    selector.update(report(cohort))
    assert selector.select(2).clients.shape == (*np.shape(rng), 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Cohort(0, np.array([1, 3, 3]), np.ones(3)),
            r"clients must be distinct, got 3 twice",
        ),
        (
            lambda: Cohort(0, np.array([[0, 1], [2, 2]]), np.ones((2, 2))),
            r"clients must be distinct, got 2 twice",
        ),
        (lambda: Cohort(0, np.array([-1, 3]), np.ones(2)), r"clients must be at least 0, got -1"),
        (
            lambda: Cohort(0, np.array([0.5, 3]), np.ones(2)),
            r"clients must be an array of whole numbers \[\.\.\., k\]",
        ),
        (
            lambda: Cohort(-1, np.array([1]), np.ones(1)),
            r"round must be a whole number at least 0, got -1",
        ),
        (
            lambda: Cohort(0, np.array([1, 2]), np.ones(3)),
            r"inclusion must have shape \(2,\), got \(3,\)",
        ),
        (
            lambda: Cohort(0, np.array([1, 2]), np.array([1, 1.1])),
            r"inclusion must be between 0\.0 and 1\.0, got 1\.1 at position 1",
        ),
        (lambda: outcome([1, 0, 1]), r"success must have shape \(2,\), got \(3,\)"),
        (
            lambda: outcome([1, np.nan]),
            r"success must be between 0\.0 and 1\.0, got nan at position 1",
        ),
        (
            lambda: outcome([-1, 0]),
            r"success must be between 0\.0 and 1\.0, got -1\.0 at position 0",
        ),
        (lambda: outcome([1, 0], [0.5]), r"loss must have shape \(2,\), got \(1,\)"),
        (
            lambda: outcome([1, 0], [np.nan, 0.5]),
            r"loss must be finite where success is above 0, got nan",
        ),
        (
            lambda: outcome([1, 1], [0.5, np.inf]),
            r"loss must be finite where success is above 0, got inf",
        ),
    ],
)
def test_bad_messages_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def outcome(success, loss=None):
    return Outcome(
        Cohort(0, np.array([4, 7]), np.ones(2)),
        np.array(success),
        None if loss is None else np.array(loss),
    )


def test_the_loss_of_a_client_that_failed_may_be_unknown():
    assert np.isnan(outcome([1, 0], [0.5, np.nan]).loss[1])


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("e3cs-05", "e3cs-0.5"),
        ("FedCs", "fedcs"),
        ("rand", "random"),
        ("powd", "pow-d"),
        ("e3cs_inc", "e3cs-inc"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(wrong, near, build):
    with pytest.raises(
        ValueError, match=rf"selector must be one of .*, got '{wrong}'; did you mean '{near}'\?"
    ):
        build(wrong)


def test_a_name_like_no_other_is_answered_without_a_guess(build):
    with pytest.raises(ValueError, match=r"selector must be one of .*, got 'zzz'$"):
        build("zzz")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("fedcs", "success_rates"),
        ("pow-d", "loss_of"),
        ("e3cs-inc", "horizon"),
        ("e3cs-linear", "horizon"),
        ("e3cs-cosine", "horizon"),
    ],
)
def test_what_a_selector_must_know_is_asked_for(name, what):
    with pytest.raises(ValueError, match=rf"{what} must be given for {name}, got None"):
        make_selector(name, Federation(12, 4, 0))


def test_the_papers_selectors_are_registered():
    assert set(PAPER_SELECTORS) < set(SELECTORS)


def test_fedcs_asks_the_best_and_breaks_ties_once_at_random_or_by_order():
    rates = np.array([0.1, 0.9, 0.9, 0.3, 0.9, 0.6])
    assert FedCS(6, 4, success_rates=rates, rng=0).select(0).clients.tolist() == [1, 2, 4, 5]
    assert FedCS(6, 2, success_rates=rates, rng=0, ties="order").select(0).clients.tolist() == [
        1,
        2,
    ]
    firsts = set()
    for seed in range(30):
        selector = FedCS(6, 2, success_rates=rates, rng=seed)
        picks = {tuple(selector.select(round).clients) for round in range(3)}
        assert len(picks) == 1
        firsts |= picks
    assert firsts == {(1, 2), (1, 4), (2, 4)}


def test_fedcs_moves_down_its_list_when_the_best_are_away():
    assert FedCS(4, 2, success_rates=[0.9, 0.8, 0.7, 0.6], rng=0).select(
        0, [0, 2, 3]
    ).clients.tolist() == [0, 2]


def test_random_asks_everyone_equally_often():
    clients = Random(10, 3, rng=range(4000)).select(0).clients
    rates = np.bincount(clients.ravel(), minlength=10) / 4000
    assert (np.abs(rates - 0.3) <= 5 * np.sqrt(0.3 * 0.7 / 4000)).all()  # five standard errors
    assert (Random(10, 3, rng=0).select(0, range(5)).inclusion == 0.6).all()


def test_pow_d_asks_the_lossiest_candidates():
    seen = []
    selector = PowD(
        20, 3, rng=0, candidates=6, loss_of=lambda clients: seen.append(clients) or -1.0 * clients
    )
    cohort = selector.select(0)
    assert seen[0].size == np.unique(seen[0]).size == 6
    assert cohort.clients.tolist() == sorted(seen[0])[:3]
    assert (cohort.inclusion == 6 / 20).all()
    assert (
        PowD(100, 20, rng=0, loss_of=np.cos).select(0).inclusion == 50 / 100
    ).all()  # 2.5 k unless told


def test_candidates_grow_with_the_federation_up_to_what_is_usual():
    selector = LastLoss(4, 3, rng=0)
    assert (selector.select(0).inclusion == 1).all()
    selector.join(16)
    assert (selector.select(1).inclusion == 8 / 20).all()


def test_runs_with_different_numbers_present_draw_equally_many_candidates():
    selector = LastLoss(6, 2, rng=[0, 1], candidates=5)
    present = np.array([[True] * 4 + [False] * 2, [True] * 6])
    cohort = selector.select(0, present)
    np.testing.assert_array_equal(cohort.inclusion, [[1.0, 1.0], [4 / 6, 4 / 6]])


def test_pow_d_with_all_as_candidates_is_the_top_of_the_losses():
    losses = np.array([3.0, 9.0, 1.0, 7.0, 8.0])
    assert PowD(5, 2, rng=0, candidates=5, loss_of=lambda clients: losses[clients]).select(
        0
    ).clients.tolist() == [1, 4]


def test_rpow_d_asks_who_never_reported_first_and_then_the_lossiest():
    selector, losses = LastLoss(6, 2, rng=0, candidates=6), np.array([5.0, 1.0, 4.0, 2.0, 6.0, 3.0])
    heard = set()
    for round in range(3):
        cohort = selector.select(round)
        assert not heard & set(cohort.clients)
        heard |= set(cohort.clients)
        selector.update(Outcome(cohort, np.ones(2), losses[cohort.clients]))
    cohort = selector.select(3)
    assert cohort.clients.tolist() == [0, 4]
    selector.update(Outcome(cohort, np.array([1, 0]), np.array([0.5, np.nan])))
    assert selector.select(4).clients.tolist() == [2, 4]  # 4 failed and keeps its 6, 0 fell to 0.5


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: PowD(5, 2, rng=0, loss_of=np.cos, candidates=1),
            r"candidates must be a whole number between 2 and 5, got 1",
        ),
        (
            lambda: PowD(5, 2, rng=0, loss_of=lambda c: np.full(c.shape, np.nan)).select(0),
            r"loss_of\(clients\) must be finite, got nan",
        ),
        (
            lambda: PowD(5, 2, rng=0, loss_of=lambda c: np.ones(1)).select(0),
            r"loss_of\(clients\) must have shape \(5,\), got \(1,\)",
        ),
        (
            lambda: FedCS(2, 1, rng=0, success_rates=[0.5]),
            r"success_rates must have shape \(2,\), got \(1,\)",
        ),
        (
            lambda: FedCS(1, 1, rng=0, success_rates=[1.5]),
            r"success_rates must be between 0\.0 and 1\.0, got 1\.5 at position 0",
        ),
        (
            lambda: FedCS(1, 1, rng=0, success_rates=[1], ties="oder"),
            r"ties must be one of random, order, got 'oder'; did you mean 'order'",
        ),
        (
            lambda: FedCS(1, 1, rng=0, success_rates=[1]).join(2),
            r"success_rates must be given for the 2 clients that join FedCS, got None",
        ),
    ],
)
def test_bad_arguments_of_the_baselines_are_named_with_bound_and_value(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_rpow_d_needs_losses():
    selector = LastLoss(5, 2, rng=0)
    with pytest.raises(
        ValueError, match=r"loss must be reported to a selector that ranks clients by it, got None"
    ):
        selector.update(Outcome(selector.select(0), np.ones(2)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampler"), [*((name, "systematic") for name in SELECTORS), ("e3cs-0", "successive")]
)
def test_ten_thousand_rounds_leave_no_trace_of_nan_or_overflow(name, sampler, build):
    selector = build(name, [0, 1], horizon=10_000, sampler=sampler)
    rates, world = np.repeat([0.1, 0.3, 0.6, 0.9], 3), np.random.default_rng(0)
    for round in range(10_000):
        cohort = selector.select(round)
        success = world.random(cohort.clients.shape) < rates[cohort.clients]
        selector.update(Outcome(cohort, success, np.where(success, 1.0, np.nan)))
    weights = selector.state_dict().get("log_weights", np.zeros(1))
    assert np.isfinite(weights).all()
    assert (selector.select(10_000).inclusion > 0).all()


def test_a_mask_of_whole_numbers_is_refused_rather_than_read_as_ids():
    with pytest.raises(
        ValueError,
        match="available must hold distinct client ids, got 1 twice; a mask must be of bools",
    ):
        E3CS(6, 2, rng=0).select(0, np.array([1, 1, 0, 1, 1, 1]))


def test_a_mask_may_be_used_again_before_the_update():
    told = []
    for reused in (False, True):
        selector, mask = E3CS(6, 2, rng=0, update="robust"), np.array([True] * 5 + [False])
        cohort = selector.select(0, mask)
        if reused:
            mask[:] = False
        selector.update(Outcome(cohort, np.array([1.0, 0.0])))
        told.append(selector.log_weights)
    np.testing.assert_array_equal(*told)


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
    one, other = (E3CS(6, 2, rng=0, update=update) for _ in range(2))
    cohort = one.select(0, available)
    rundir.save_checkpoint(tmp_path, {"selector": one.state_dict()})
    other.load_state_dict(rundir.load_checkpoint(tmp_path)["selector"])
    for selector in (one, other):
        selector.update(Outcome(cohort, np.array([1.0, 0.0])))
    np.testing.assert_array_equal(one.log_weights, other.log_weights)


def test_a_cohort_cannot_be_changed_after_it_was_asked():
    selector = E3CS(6, 2, rng=0)
    cohort = selector.select(0)
    for values in (cohort.clients, cohort.inclusion, selector.state_dict()["asked"]["clients"]):
        with pytest.raises(ValueError, match="read-only"):
            values[:] = 0
    mine = np.array([1, 3])
    told = Cohort(0, mine, np.ones(2))
    mine[:] = 0
    assert told.clients.tolist() == [1, 3]
