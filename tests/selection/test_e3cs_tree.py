"""E3CS drawn from trees: the same probabilities and weights as E3CS that scans everyone."""

from copy import deepcopy
from decimal import Decimal, localcontext

import numpy as np
import pytest
from exact import chance_of_counts

from fedcohort.selection import large, tree_runs
from fedcohort.selection import tree as tree_module
from fedcohort.selection.allocation import above_cap, allocate
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.quotas import linear, step
from fedcohort.selection.robust_update import charge_losses

RULES = ("paper", "robust")
QUOTAS = {
    "none": 0.0,
    "half": 0.5,
    "incremental": step(at=20),
    "falling": step(at=20, before=1.0, after=0.0),
    "linear": linear(60),
}


@pytest.fixture(autouse=True)
def _few_blocks(monkeypatch):
    """Make trees of a few clients deep."""
    monkeypatch.setattr(tree_module, "MOST_BLOCKS", 4)


def make(update="paper", num_clients=80, cohort_size=12, algorithm="tree", rng=0, **more):
    return E3CS(num_clients, cohort_size, rng=rng, update=update, algorithm=algorithm, **more)


def make_pair(update, **more):
    """Return a selector with a tree and one that scans, which draw alike from the same seed.

    Their sums round differently, so clients must not end exactly on the borders of strata, as
    equal ones do.
    """
    pair = (make(update, **more), make(update, algorithm="scan", **more))
    for selector in pair:
        noise = np.random.default_rng(1).normal(0, 0.1, selector.num_clients)
        selector.log_weights = selector.log_weights + noise
    return pair


def answers(cohort):
    """Return who answers: a function of the round and the client alone."""
    return (7 * cohort.clients + 3 * cohort.round) % 11 < 2 + cohort.clients % 8


def play(selector, rounds):
    cohorts = []
    for round in rounds:
        cohort = selector.select(round)
        selector.update(Outcome(cohort, answers(cohort)))
        cohorts.append(cohort)
    return cohorts


def learned_by_all(before, cohort, success, selector):
    """Return the log-weights after an update that passes over everyone."""
    num_clients = before.size
    size = cohort.clients.size
    phi = selector.fraction(cohort.round)
    pace = selector.eta * size * (1 - phi) / num_clients
    if not pace:
        return before
    allocation = allocate(before, size, phi * size / num_clients)
    p = allocation.inclusion[cohort.clients]
    if selector.is_robust:
        charge = pace * (1 - success) / p
        return charge_losses(
            before, cohort.clients, charge, allocation.log_cap, selector.share, None
        )
    after = before.copy()
    is_free = ~above_cap(before[cohort.clients], allocation.log_cap)
    after[cohort.clients] += pace * success / p * is_free
    return after


@pytest.mark.parametrize("quota", QUOTAS)
@pytest.mark.parametrize("update", RULES)
def test_probabilities_and_updates_are_those_of_a_pass_over_everyone(update, quota):
    selector = make(update, quota=QUOTAS[quota])
    for round in range(150):
        before = selector.log_weights.copy()
        expected = allocate(before, 12, selector.fraction(round) * 12 / 80)
        cohort = selector.select(round)
        np.testing.assert_allclose(
            cohort.inclusion, expected.inclusion[cohort.clients], rtol=1e-9, atol=1e-12
        )
        assert np.isin(np.flatnonzero(expected.capped), cohort.clients).all()
        success = answers(cohort)
        selector.update(Outcome(cohort, success))
        after = learned_by_all(before, cohort, success, selector)
        np.testing.assert_allclose(selector.log_weights, after, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("update", RULES)
def test_thousands_of_rounds_do_not_drift_from_updates_of_everyone(update):
    selector = make(update, eta=0.05)
    logs = selector.log_weights.copy()
    for round in range(4000):
        cohort = selector.select(round)
        success = answers(cohort)
        selector.update(Outcome(cohort, success))
        logs = learned_by_all(logs, cohort, success, selector)
    np.testing.assert_allclose(selector.log_weights, logs, rtol=0, atol=1e-8)
    if update == "robust":
        assert np.exp(selector.log_weights).sum() == pytest.approx(1.0, abs=1e-9)
        assert selector.log_weights.min() >= np.log(selector.share / 80) - 1e-9


def test_the_values_of_a_robust_run_are_written_anew_before_the_shift_outgrows_them(monkeypatch):
    written = []
    make_weights = tree_runs.LazyWeights

    def count(values, *more, **named):
        written.append(values.size)
        return make_weights(values, *more, **named)

    monkeypatch.setattr(tree_runs, "LazyWeights", count)
    selector = make("robust", share=0.01)
    most = 0.0
    for round in range(3000):
        play(selector, [round])
        most = max(most, selector.state_dict()["tree"]["shift"])
    assert most <= tree_runs.LARGEST_SHIFT * 0.01 / 80
    assert 2 <= len(written) <= 300


@pytest.mark.parametrize("update", RULES)
def test_cohorts_have_the_probabilities_of_allocate(update):
    selector = make(update, quota=0.2)
    selector.log_weights = np.random.default_rng(3).normal(0, 1.5, 80)
    p = allocate(selector.log_weights, 12, 0.2 * 12 / 80).inclusion
    cohorts = np.stack([selector.select(0).clients for _ in range(8_000)])
    assert chance_of_counts(cohorts, p) > 1e-4


@pytest.mark.parametrize("update", RULES)
def test_with_the_pivotal_sampler_the_seed_gives_the_cohorts_of_the_scan(update):
    tree, scan = make_pair(update, sampler="pivotal", quota=0.1)
    for drawn, scanned in zip(play(tree, range(300)), play(scan, range(300)), strict=True):
        np.testing.assert_array_equal(drawn.clients, scanned.clients)
        np.testing.assert_allclose(drawn.inclusion, scanned.inclusion, rtol=1e-8)


def test_small_federations_are_sorted_and_large_ones_drawn_from_trees_by_default():
    for num_clients, algorithm in ((large.LARGE - 1, "scan"), (large.LARGE, "tree")):
        default = E3CS(num_clients, 50, rng=0)
        chosen = E3CS(num_clients, 50, rng=0, algorithm=algorithm)
        np.testing.assert_array_equal(default.select(0).clients, chosen.select(0).clients)
        assert ("tree" in default.state_dict()) == (algorithm == "tree")


@pytest.mark.parametrize("in_flight", [False, True])
@pytest.mark.parametrize("update", RULES)
def test_a_resumed_run_is_the_run_that_was_never_stopped(update, in_flight):
    seeds = [3, 4]
    whole = make(update, rng=seeds, quota=linear(90))
    play(whole, range(45))
    resumed = make(update, rng=[8, 9], quota=linear(90))
    cohort = whole.select(45) if in_flight else None
    state = deepcopy(whole.state_dict())
    resumed.load_state_dict(state)
    if cohort is not None:
        whole.update(Outcome(cohort, answers(cohort)))
        resumed.update(Outcome(cohort, answers(cohort)))
    for one, other in zip(play(whole, range(46, 90)), play(resumed, range(46, 90)), strict=True):
        np.testing.assert_array_equal(one.clients, other.clients)
        np.testing.assert_array_equal(one.inclusion, other.inclusion)
    np.testing.assert_array_equal(whole.log_weights, resumed.log_weights)


@pytest.mark.parametrize("update", RULES)
def test_runs_in_lock_step_are_the_runs_alone(update):
    together = make(update, rng=[3, 4])
    alone = make(update, rng=4)
    both = play(together, range(60))
    for batched, single in zip(both, play(alone, range(60)), strict=True):
        np.testing.assert_array_equal(batched.clients[1], single.clients)
        np.testing.assert_array_equal(batched.inclusion[1], single.inclusion)
    np.testing.assert_array_equal(together.log_weights[1], alone.log_weights)


@pytest.mark.parametrize("update", RULES)
def test_states_are_exchanged_with_selectors_that_scan(update):
    tree = make(update)
    play(tree, range(20))
    scan = make(update, algorithm="scan")
    scan.load_state_dict(tree.state_dict())
    np.testing.assert_array_equal(scan.log_weights, tree.log_weights)
    play(scan, range(20, 30))
    assert "tree" not in scan.state_dict()
    tree.load_state_dict(scan.state_dict())
    np.testing.assert_array_equal(scan.log_weights, tree.log_weights)
    play(tree, range(30, 40))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("scale", 0.0, "scale of the tree in the state must be above 0"),
        ("scale", np.inf, "scale of the tree in the state must be finite"),
        ("shift", -1.0, "shift of the tree in the state must be at least 0"),
        ("centre", np.nan, "centre of the tree in the state must be numbers"),
        ("limit", [1.0, 2.0], "limit of the tree in the state must be numbers of shape"),
        ("values", np.ones(80), "values of the tree in the state must be"),
        ("values", -np.ones(80), "values of the tree in the state must be"),
        ("depth", 1, "tree in the state must hold"),
    ],
)
def test_a_strange_tree_is_refused_and_nothing_changes(name, value, message):
    selector = make("robust")
    play(selector, range(10))
    state = deepcopy(selector.state_dict())
    state["tree"][name] = value
    before = selector.log_weights
    with pytest.raises(ValueError, match=message):
        selector.load_state_dict(state)
    np.testing.assert_array_equal(selector.log_weights, before)
    with pytest.raises(ValueError, match="tree in the state must hold"):
        selector.load_state_dict(state | {"tree": None})


def test_values_in_a_tree_of_the_papers_update_are_refused():
    selector = make("paper")
    play(selector, range(3))
    state = selector.state_dict()
    state["tree"]["values"] = np.exp(state["log_weights"] - state["tree"]["centre"])
    with pytest.raises(ValueError, match="tree in the state must hold no values after paper"):
        make("paper").load_state_dict(state)


def charge_exactly(logs, cohort, charge, log_cap, share):
    """Return the weights after a robust update, with 40 digits."""
    with localcontext(prec=40):
        cap = Decimal(float(log_cap)).exp()
        weights = [min(Decimal(log).exp(), cap) for log in logs.tolist()]
        for client, lost in zip(cohort.clients, charge.tolist(), strict=True):
            weights[client] *= Decimal(-lost).exp()
        total = sum(weights)
        spread = Decimal(share)
        return [(1 - spread) * weight / total + spread / len(weights) for weight in weights]


@pytest.mark.parametrize("eta", [0.5, 50.0, 1e6])
@pytest.mark.parametrize("share", [1e-100, 1e-16, 1e-12, 1e-4])
def test_a_robust_update_is_exact_to_eleven_digits_even_where_all_weight_fails(share, eta):
    # Odd clients take all the weight, and lose it when nobody answers any more: what is left of
    # the sum may be below the rounding of what was there.
    selector = make("robust", 40, 8, share=share, eta=eta)
    for round in range(40):
        before = selector.log_weights
        cohort = selector.select(round)
        success = cohort.clients % 2 * (round % 20 < 10)
        charge = eta * 8 / 40 * (1 - success) / cohort.inclusion
        expected = charge_exactly(before, cohort, charge, selector.log_cap, share)

        selector.update(Outcome(cohort, success))
        for log, weight in zip(selector.log_weights.tolist(), expected, strict=True):
            with localcontext(prec=40):
                error = Decimal(log).exp() / weight - 1
            assert abs(error) < 1e-11


@pytest.mark.parametrize("update", RULES)
def test_rounds_in_which_some_are_away_and_newcomers_are_learned_as_by_a_scan(update):
    tree, scan = make_pair(update, sampler="pivotal")
    for round in range(60):
        available = None
        if round % 3 == 1:
            available = np.flatnonzero((np.arange(tree.num_clients) + round) % 4 > 0)
        for selector in (tree, scan):
            cohort = selector.select(round, available)
            selector.update(Outcome(cohort, answers(cohort)))
            if round == 30:
                selector.join(7)
        np.testing.assert_allclose(tree.log_weights, scan.log_weights, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("update", RULES)
def test_jackpots_beyond_the_range_of_floats_change_no_probability(update):
    selector = make(update)
    logs = np.zeros(80)
    logs[5] = 3000.0
    logs[6:10] = 1500.0
    logs[10:20] = -2000.0
    selector.log_weights = logs
    for round in range(50):
        p = allocate(selector.log_weights, 12).inclusion
        cohort = selector.select(round)
        np.testing.assert_allclose(cohort.inclusion, p[cohort.clients], rtol=1e-9)
        selector.update(Outcome(cohort, answers(cohort)))
        assert np.isfinite(selector.log_weights).all()


@pytest.mark.parametrize(("num_clients", "cohort_size"), [(1, 1), (5, 5), (80, 1), (80, 79)])
@pytest.mark.parametrize("update", RULES)
def test_cohorts_of_one_and_of_everyone(update, num_clients, cohort_size):
    selector = make(update, num_clients, cohort_size)
    for cohort in play(selector, range(30)):
        assert cohort.clients.size == cohort_size
        assert (np.diff(cohort.clients) > 0).all()


def test_a_tree_is_refused_where_it_cannot_draw_or_hold_the_weights():
    with pytest.raises(ValueError, match="sampler of algorithm 'tree' must be"):
        make(sampler="successive")
    for share in (0.0, 9e-101):
        refusal = f"share must be at least 1e-100 for algorithm 'tree', got {share}"
        with pytest.raises(ValueError, match=refusal):
            make("robust", share=share)
    with pytest.raises(ValueError, match="algorithm must be"):
        make(algorithm="heap")
