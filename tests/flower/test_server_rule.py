"""Rules that learn about clients on Flower: by hand, over joins, failures and restarts."""

from functools import partial
from math import nan

import numpy as np
import pytest
from fakes import Killed, federation, learner, record, returned, round_of
from flwr.app import Error
from flwr.serverapp.strategy import FedAvg
from helpers import NO_TEST, assert_alike, cohort_strategy, fails, initial, journal, play

from fedcohort.flower.cohorts import AnsweredCohort
from fedcohort.flower.server_rule import ServerRule, describe_arrivals
from fedcohort.flower.verdicts import Verdict
from fedcohort.lab.folder import load_checkpoint, save_checkpoint
from fedcohort.selection.protocol import Cohort

LEARNING = ("fedau", "inverse-estimated", "inverse-normalised-estimated")


def second_fails_first(client, round):
    return client == 1 and round == 1


def train_two(clock, aggregation, **options):
    """The model after two rounds of two clients; the second fails in the first round."""
    strategy = cohort_strategy(cohort_size=2, aggregation=aggregation, **options)
    grid = federation(clock, 2, second_fails_first)
    result = strategy.start(grid, record(w=[0.0]), num_rounds=2)
    return result.arrays["w"].numpy().item(), strategy.training.aggregator.rule.rule


def test_fedau_weighs_by_the_rounds_between_two_updates(clock):
    model, rule = train_two(clock, "fedau")
    # Round 1: client 0 alone, share 1/2, interval 1: 1/2 * 1/2 = 1/4.
    # Round 2: shares 1/3 and 2/3, intervals 1 and 2: 1/3 * 3/8 + 2/3 * 2 * 7/8 more.
    assert model == pytest.approx(1 / 4 + 1 / 8 + 7 / 6)
    assert rule.intervals.tolist() == [[2.0, 1.0]]
    assert rule.total.tolist() == [[2.0, 2.0]]


def test_inverse_estimated_weighs_by_who_failed_before(clock):
    model, rule = train_two(clock, "inverse-estimated")
    # Round 1: nothing is known, rate 1/2: share 1/2 * 1/2 / (1/2) = 1/2.
    # Round 2: rates 2/3 and 1/3: 1/3 * 1/4 * 3/2 + 2/3 * 3/4 * 3 more.
    assert model == pytest.approx(1 / 2 + 1 / 8 + 3 / 2)
    assert rule.asked.tolist() == [[2.0, 2.0]]
    assert rule.succeeded.tolist() == [[2.0, 1.0]]


def test_inverse_normalised_estimated_divides_by_the_sum_of_the_weights(clock):
    model, _ = train_two(clock, "inverse-normalised-estimated")
    # Round 1: client 0 alone, 1/2. Round 2: weights 1/3 * 3/2 = 1/2 and 2/3 * 3 = 2.
    assert model == pytest.approx(1 / 2 + (1 / 2 * 1 / 4 + 2 * 3 / 4) / (5 / 2))


def test_estimates_count_the_rounds_in_which_a_client_is_connected(clock):
    grid = federation(clock, 2)

    def evaluate(round, arrays):
        if round == 1:  # in the second round the new node says that it is client 1
            grid.leave(101)
            grid.join(102, learner(1))

    strategy = cohort_strategy(cohort_size=2, aggregation="inverse-estimated")
    result = strategy.start(grid, record(w=[0.0]), num_rounds=3, evaluate_fn=evaluate)
    rule = strategy.training.aggregator.rule.rule
    assert rule.rounds.tolist() == [[3.0, 3.0]]
    assert rule.available.tolist() == [[3.0, 2.0]]
    # Shares 1/3 and 2/3; each client moves half way to 1 or 2. Round 1: rates 1/2, so
    # 1/3 * 1/2 * 2 + 2/3 * 1 * 2 = 5/3.
    model = 5 / 3
    # Round 2: client 0 alone, rate 2/3.
    model += 1 / 3 * (1 - model) / 2 * 3 / 2
    # Round 3: rates 3/4 of client 0, and 2/3 * (1 + 1) / (2 + 1) = 4/9 of client 1.
    model += 1 / 3 * (1 - model) / 2 * 4 / 3 + 2 / 3 * (2 - model) / 2 * 9 / 4
    assert result.arrays["w"].numpy().item() == pytest.approx(model)


def test_where_weights_count_absence_a_rule_is_told_that_everyone_was_there():
    cohort = Cohort(0, np.array([1]), np.ones(1))
    own_weights = Cohort(0, np.array([1]), np.ones(1), weights=np.array([2.0]))
    verdicts = (Verdict("failed"),)
    masks = []
    for asked in (cohort, own_weights):
        known = AnsweredCohort(asked, verdicts, {}, (None,) * 3, np.array([0, 1]))
        masks.append(describe_arrivals(known, counted=[]).available)
    assert masks[0].tolist() == [[True, True, False]]
    assert masks[1] is None


def test_the_inverse_of_the_inclusion_probability_is_the_weight(clock):
    strategy = cohort_strategy(cohort_size=1, aggregation="inverse-estimated", num_clients=2)
    result = strategy.start(federation(clock, 2), record(w=[0.0]), num_rounds=1)
    (client,) = np.flatnonzero(strategy.training.aggregator.rule.rule.asked[0])
    # Share 1/2, probability 1/2, rate 1/2: twice the update, which is half way to client + 1.
    assert result.arrays["w"].numpy().item() == pytest.approx(client + 1)


def test_a_rule_learns_from_rounds_in_which_nobody_returns(clock):
    strategy = cohort_strategy(cohort_size=2, aggregation="fedau")
    grid = federation(clock, 2, lambda client, round: True)
    strategy.start(grid, record(w=[0.0]), num_rounds=3)
    assert strategy.training.aggregator.rule.rule.waiting.tolist() == [[3.0, 3.0]]


def answered(*verdicts, clients=(4, 7), declared=(None,) * 8):
    cohort = Cohort(0, np.array(clients), np.full(len(clients), 0.5))
    return AnsweredCohort(cohort, verdicts, {}, declared)


def test_a_rule_is_told_of_real_clients():
    declared = [None] * 4 + [10.0, None, None, 30.0]
    verdicts = (Verdict("failed"), Verdict("arrived", examples=30.0, loss=0.5, norm=2.0))
    told = describe_arrivals(answered(*verdicts, declared=declared), counted=[1])
    assert told.clients.tolist() == [[4, 7]]
    assert told.valid.tolist() == [[False, True]]
    # 10 + 30, and six unknown at the mean of 20: 160 in all
    assert told.shares.tolist() == [[10 / 160, 30 / 160]]
    assert told.weights.tolist() == [[2.0, 2.0]]
    np.testing.assert_equal(told.loss, [[nan, 0.5]])
    np.testing.assert_equal(told.norm, [[nan, 2.0]])


@pytest.mark.parametrize("name", LEARNING)
def test_trouble_of_the_superlink_is_no_failure_of_the_client(name):
    told = describe_arrivals(answered(Verdict("unknown"), Verdict("lost")), counted=[])
    assert told.clients.tolist() == [[7]]

    by_trouble, unasked = ServerRule(name), ServerRule(name)
    by_trouble.begin(8, None)
    unasked.begin(8, None)
    by_trouble.learn(1, answered(Verdict("unknown"), Verdict("unknown")), [])
    unasked.learn(1, answered(clients=()), [])
    np.testing.assert_equal(by_trouble.state_dict(), unasked.state_dict())


def test_a_reply_that_the_aggregation_leaves_out_does_not_count(clock):
    def average(contents, weighted_by):
        if any(content["metrics"]["num-examples"] == 2 for content in contents):
            raise ValueError("two examples are odd")
        return contents[0]["metrics"]

    inner = FedAvg(train_metrics_aggr_fn=average, **NO_TEST)
    strategy = cohort_strategy(inner, cohort_size=3, aggregation="inverse-estimated")
    strategy.start(federation(clock, 3), record(w=[0.0]), num_rounds=1)
    rule = strategy.training.aggregator.rule.rule
    assert rule.asked.tolist() == [[1.0, 1.0, 1.0]]
    assert rule.succeeded.tolist() == [[1.0, 0.0, 1.0]]


def test_if_the_aggregation_fails_nothing_counts(clock):
    def refuse(contents, weighted_by):
        raise ValueError("never")

    inner = FedAvg(train_metrics_aggr_fn=refuse, **NO_TEST)
    strategy = cohort_strategy(inner, cohort_size=3, aggregation="inverse-estimated")
    strategy.start(federation(clock, 3), record(w=[0.0]), num_rounds=1)
    rule = strategy.training.aggregator.rule.rule
    assert rule.asked.tolist() == [[1.0, 1.0, 1.0]]
    assert rule.succeeded.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("name", LEARNING)
def test_clients_join_a_rule(clock, tmp_path, name):
    def grid_with_newcomer():
        grid = federation(clock, 3)
        for client in grid.clients.values():
            client.delay = 3.0
        clock.after(1.5, lambda: grid.join(200, learner(3)))
        return grid

    options = {"aggregation": name, "selector": "random"}
    whole = play(grid_with_newcomer(), tmp_path / "whole", rounds=6, **options)
    assert whole[1]["num_clients"] == 4
    saved = load_checkpoint(tmp_path / "whole")["replies"]["rule"]
    assert saved["num_clients"] == 4
    assert {values.shape for values in saved["arrays"].values()} == {(1, 4)}

    grid = grid_with_newcomer()
    play(grid, tmp_path / "cut", rounds=3, **options)
    assert_alike(play(grid, tmp_path / "cut", rounds=6, resume=True, **options), whole)


@pytest.mark.parametrize("name", LEARNING)
def test_what_a_rule_has_learnt_survives_a_kill(clock, tmp_path, name):
    grid = federation(clock, 6, fails)
    whole = play(grid, tmp_path / "whole", aggregation=name)
    for call in range(2, grid.calls + 1, grid.calls // 4):
        folder = tmp_path / str(call)
        cut = federation(clock, 6, fails)
        cut.dies_at_call = call
        with pytest.raises(Killed):
            play(cut, folder, aggregation=name)
        cut.dies_at_call = None
        assert_alike(play(cut, folder, aggregation=name, resume=True), whole)
        np.testing.assert_equal(
            load_checkpoint(folder)["replies"]["rule"],
            load_checkpoint(tmp_path / "whole")["replies"]["rule"],
        )


def without_rule(folder):
    state = load_checkpoint(folder)
    del state["replies"]["rule"]
    save_checkpoint(folder, state)


def test_a_checkpoint_from_before_rules_learnt_still_opens(clock, tmp_path):
    whole = play(federation(clock, 6, fails), tmp_path / "whole", aggregation="paper")
    play(federation(clock, 6, fails), tmp_path / "cut", aggregation="paper", rounds=2)
    without_rule(tmp_path / "cut")
    resumed = play(federation(clock, 6, fails), tmp_path / "cut", aggregation="paper", resume=True)
    assert_alike(resumed, whole)


def test_a_checkpoint_that_lost_what_a_rule_has_learnt_is_refused(clock, tmp_path):
    resume = partial(play, folder=tmp_path, aggregation="fedau")
    resume(federation(clock, 6, fails), rounds=2)
    without_rule(tmp_path)
    with pytest.raises(
        ValueError, match=r"checkpoint\.safetensors must be .* got: waiting of a rule's state"
    ):
        resume(federation(clock, 6, fails), resume=True)


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("inverse", "success_rates must be given"),
        ("inverse-normalised", "success_rates must be given"),
        ("q-fedavg", "learning_rate must be given"),
    ],
)
def test_rules_that_need_more_than_a_server_knows_are_refused(name, lacks):
    told = f"aggregation must not need what a Flower server does not know, got '{name}': {lacks}"
    with pytest.raises(ValueError, match=told):
        cohort_strategy(aggregation=name)


@pytest.mark.parametrize("selector", ["rpow-d", "fedcs-time"])
def test_rules_that_divide_by_inclusion_are_refused_where_nobody_knows_it(selector):
    message = f"with the selector '{selector}', which does not know them, got 'inverse-estimated'"
    options = {"selector": selector, "loss_key": "train_loss"}
    with pytest.raises(ValueError, match=message):
        cohort_strategy(aggregation="inverse-estimated", **options)
    cohort_strategy(aggregation="normalised", **options)


@pytest.mark.parametrize("name", ["paper", "fedau", "mifa", "fedvarp"])
def test_rules_equal_averaging_when_everybody_returns_in_the_first_round(clock, tmp_path, name):
    models = []
    for aggregation in ("normalised", name):
        folder = tmp_path / aggregation
        strategy = cohort_strategy(aggregation=aggregation, cohort_size=3, folder=folder)
        models.append(strategy.start(federation(clock, 3), initial(), num_rounds=1).arrays)
    for array in ("w", "b"):
        np.testing.assert_allclose(models[1][array].numpy(), models[0][array].numpy(), rtol=1e-12)


def test_a_client_whose_whole_numbers_leave_their_type_is_rejected_and_the_run_goes_on(
    clock, tmp_path
):
    """Client 1 fails in round 1. In round 2 its weight is 0.97 * 2 by FedAU: 250 + 5 * 1.94."""
    grid = federation(clock, 2)

    def train(message, number, pixel, examples):
        if second_fails_first(number, round_of(message)):
            return Error(2, "broken")
        model = record(pixel=np.array([pixel], np.uint8))
        return returned(model, {"num-examples": examples})

    grid.clients[100].train = partial(train, number=0, pixel=250, examples=30)
    grid.clients[101].train = partial(train, number=1, pixel=255, examples=970)
    strategy = cohort_strategy(cohort_size=2, aggregation="fedau", folder=tmp_path)
    result = strategy.start(grid, record(pixel=np.array([250], np.uint8)), num_rounds=2)

    assert result.arrays["pixel"].numpy().tolist() == [250]
    first, second = journal(tmp_path)[1]["asked"]
    assert first["status"] == "arrived"
    assert second["reason"] == (
        "the strategy cannot aggregate it: ValueError: numbers up to 260 do not fit into uint8"
    )
