"""The wrapped strategy: its messages, its minimums, and what is refused."""

from functools import partial

import numpy as np
import pytest
from fakes import (
    FakeClient,
    FakeGrid,
    federation,
    model_of,
    record,
    returned,
    same,
)
from flwr.app import ConfigRecord, Message, MetricRecord
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAvg,
    FedXgbBagging,
    FedXgbCyclic,
)
from helpers import (
    INITIAL,
    NO_TEST,
    PROTECTED,
    STOCK,
    RecordingSelector,
    asked_by_round,
    cohort_strategy,
    initial,
)

from fedcohort.flower import CohortStrategy
from fedcohort.flower.forwarding import RestrictedGrid


@pytest.mark.parametrize("name", STOCK)
def test_the_model_is_what_the_stock_strategy_makes_of_the_same_replies(clock, name):
    def fails(client, round):
        return (client + round) % 4 == 0

    grid, selector = federation(clock, 6, fails), RecordingSelector(6, 3)
    result = cohort_strategy(STOCK[name](), selector, None).start(grid, initial(), num_rounds=4)
    stock, arrays = STOCK[name](), initial()
    for round, told in enumerate(selector.outcomes, 1):
        nodes = [100 + client for client in told]
        messages = list(
            stock.configure_train(round, arrays, ConfigRecord(), RestrictedGrid(grid, nodes))
        )
        to = {message.metadata.dst_node_id: message for message in messages}
        arrived = [client for client, success in told.items() if success]
        assert arrived == [client for client in told if not fails(client, round)]
        replies = [
            Message(grid.clients[100 + c].train(to[100 + c]), reply_to=to[100 + c]) for c in arrived
        ]
        enough = (
            len(replies) == len(told) if name == "DifferentialPrivacy" else replies
        )  # as it does where one is an error
        moved, _ = stock.aggregate_train(round, replies) if enough else (None, None)
        arrays = arrays if moved is None else moved
    assert same(result.arrays, arrays)
    assert grid.left_behind == []


@pytest.mark.parametrize("name", STOCK)
def test_messages_go_to_exactly_those_selected_with_the_strategys_own_content(clock, name):
    grid, selector, heard = federation(clock, 7), RecordingSelector(7, 3), []

    def listening(train, message):
        config = message.content.config_records["config"]
        heard.append(
            (
                int(message.metadata.group_id),
                config["server-round"],
                "proximal-mu" in config,
                message.metadata.ttl,
            )
        )
        return train(message)

    for client in grid.clients.values():
        client.train = partial(listening, client.train)
    cohort_strategy(STOCK[name](), selector, None, deadline=4.0).start(
        grid, initial(), num_rounds=3
    )
    assert asked_by_round(grid) == {
        r: [100 + c for c in told] for r, told in enumerate(selector.outcomes, 1)
    }
    assert heard == [
        (round, round, name == "FedProx", 4.0) for round in (1, 2, 3) for _ in range(3)
    ]


@pytest.mark.parametrize("name", STOCK)
def test_fewer_nodes_than_a_strategys_minimums_do_not_hang_it(clock, name):
    strategy = STOCK[name]()
    for layer in (strategy, getattr(strategy, "strategy", strategy)):
        for minimum in ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes"):
            if hasattr(layer, minimum):
                setattr(layer, minimum, 50)
    grid = federation(clock, 4)
    result = cohort_strategy(strategy, cohort_size=3).start(grid, initial(), num_rounds=2)
    assert [len(nodes) for nodes in asked_by_round(grid).values()] == [3, 3]
    assert sorted(result.evaluate_metrics_clientapp) == [1, 2]


@pytest.mark.parametrize("least", [(1, 1, 1), (5, 5, 5)])
def test_a_strategys_minimums_come_back_when_clients_do(clock, least):
    strategy = FedAvg(
        min_train_nodes=least[0], min_evaluate_nodes=least[1], min_available_nodes=least[2]
    )
    grid = federation(clock, 4)
    cohort_strategy(strategy, cohort_size=2).start(grid, initial(), num_rounds=3)
    assert [len(nodes) for nodes in asked_by_round(grid).values()] == [2, 2, 2]
    evaluated = [message.metadata.dst_node_id for message in grid.sent("evaluate")]
    assert sorted(evaluated) == sorted([100, 101, 102, 103] * 3)


def test_metrics_of_training_and_evaluation_are_averaged_by_examples(clock):
    grid = federation(clock, 2)
    result = cohort_strategy(FedAvg(), cohort_size=2).start(
        grid,
        initial(),
        num_rounds=1,
        evaluate_fn=lambda round, arrays: MetricRecord({"round": round}),
    )
    # clients 0 and 1 with 1 and 2 examples: losses 1 and 2, accuracies 0 and 0.1
    assert result.train_metrics_clientapp[1]["train_loss"] == pytest.approx(5 / 3)
    assert result.evaluate_metrics_clientapp[1]["accuracy"] == pytest.approx(0.2 / 3)
    assert {
        round: metrics["round"] for round, metrics in result.evaluate_metrics_serverapp.items()
    } == {0: 0, 1: 1}


def test_the_configuration_given_reaches_the_clients(clock):
    grid = federation(clock, 2)
    cohort_strategy(FedAvg(), cohort_size=2).start(
        grid,
        initial(),
        num_rounds=1,
        train_config=ConfigRecord({"lr": 0.5}),
        evaluate_config=ConfigRecord({"batch": 8}),
    )
    assert {message.content["config"]["lr"] for message in grid.sent()} == {0.5}
    assert {message.content["config"]["batch"] for message in grid.sent("evaluate")} == {8}


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.999])
def test_a_strategy_that_samples_is_refused(fraction):
    with pytest.raises(
        ValueError, match=f"fraction_train of the strategy must be 1.0.*got {fraction}"
    ):
        CohortStrategy(FedAvg(fraction_train=fraction), "random", 2)
    inner = DifferentialPrivacyServerSideFixedClipping(FedAvg(fraction_train=fraction), 1.0, 1.0, 2)
    with pytest.raises(
        ValueError, match=f"fraction_train of the strategy must be 1.0.*got {fraction}"
    ):
        CohortStrategy(inner, "random", 2)


class Wrapping(FedAvg):
    """A strategy around another, with settings of its own."""

    def __init__(self, strategy):
        super().__init__()
        self.strategy = strategy


def test_a_strategy_that_samples_inside_another_is_refused():
    with pytest.raises(ValueError, match=r"fraction_train of the strategy must be 1.0.*got 0.5"):
        CohortStrategy(Wrapping(FedAvg(fraction_train=0.5)), "random", 2)


@pytest.mark.parametrize("strategy", [FedXgbBagging, FedXgbCyclic])
def test_strategies_that_collect_trees_are_refused(strategy):
    with pytest.raises(
        ValueError, match=f"must average arrays of fixed shapes, got {strategy.__name__}"
    ):
        CohortStrategy(strategy(), "random", 2)
    with pytest.raises(ValueError, match="must average arrays of fixed shapes, got Wrapping"):
        CohortStrategy(Wrapping(strategy()), "random", 2)


def test_the_paper_aggregation_is_refused_where_it_would_leave_out_a_strategys_protection():
    with pytest.raises(
        ValueError,
        match="aggregation must be 'wrapped' for DifferentialPrivacyServerSideFixedClipping",
    ):
        CohortStrategy(STOCK["DifferentialPrivacy"](), "random", 2, aggregation="paper")


def test_what_is_no_strategy_is_refused():
    with pytest.raises(
        ValueError, match=r"strategy must be one of flwr.serverapp.strategy, got <class"
    ):
        CohortStrategy(FedAvg, "random", 2)


def test_a_privacy_accountant_is_refused_as_it_ends_the_run_when_a_client_fails():
    strategy = STOCK["DifferentialPrivacy"]()
    strategy.accountant = object()
    with pytest.raises(ValueError, match=r"strategy must have no privacy accountant, .*, got one"):
        CohortStrategy(strategy, "random", 3)


def test_the_noise_of_a_private_strategy_must_be_drawn_for_the_cohort():
    with pytest.raises(
        ValueError, match="cohort_size must be num_sampled_clients of the strategy, 3, got 2"
    ):
        CohortStrategy(STOCK["DifferentialPrivacy"](), "random", 2)


def test_fewer_answers_than_the_noise_is_drawn_for_move_nothing(clock, logged):
    grid = federation(clock, 3, lambda client, round: client == 1 and round == 1)
    strategy = cohort_strategy(STOCK["DifferentialPrivacy"](), "random", 3)
    models = []
    strategy.start(
        grid,
        initial(),
        num_rounds=2,
        evaluate_fn=lambda round, arrays: models.append(model_of(arrays)),
    )
    assert all(np.array_equal(models[0][part], models[1][part]) for part in INITIAL)
    assert not all(np.array_equal(models[1][part], models[2][part]) for part in INITIAL)
    assert any(
        "the model stays as it was: 2 answers have too little noise to be private" in line
        for line in logged
    )


@pytest.mark.parametrize("name", PROTECTED)
def test_the_papers_aggregation_is_refused_where_it_would_undo_a_protection(name):
    with pytest.raises(
        ValueError, match=r"aggregation must be 'wrapped' for .*, whose protection it is"
    ):
        CohortStrategy(STOCK[name](), "random", 3, aggregation="paper")


class Chatty(FedAvg):
    """Writes to its nodes twice."""

    def configure_train(self, server_round, arrays, config, grid):
        return 2 * list(super().configure_train(server_round, arrays, config, grid))


class Choosy(FedAvg):
    """Writes to all nodes but one."""

    def configure_train(self, server_round, arrays, config, grid):
        return list(super().configure_train(server_round, arrays, config, grid))[1:]


@pytest.mark.parametrize("strategy", [Chatty, Choosy])
def test_a_strategy_that_does_not_write_to_everyone_once_is_refused(clock, strategy):
    with pytest.raises(
        ValueError, match=r"must write to each of the 3 nodes it is shown, got [26] messages"
    ):
        cohort_strategy(strategy()).start(federation(clock, 4), initial())


@pytest.mark.parametrize(
    "make",
    [
        lambda inner: inner,
        lambda inner: DifferentialPrivacyServerSideFixedClipping(inner, 0.0, 100.0, 2),
    ],
)
def test_examples_under_the_strategys_own_key_count(clock, make):
    grid = FakeGrid(clock)
    for number in range(2):
        grid.join(
            number + 1,
            FakeClient(
                str(number), lambda m: returned(record(w=[m.metadata.dst_node_id / 1]), {"n": 3})
            ),
        )
    strategy = make(FedAvg(weighted_by_key="n", **NO_TEST))
    assert cohort_strategy(strategy, cohort_size=2).start(grid, record(w=[9.0]), 1).arrays[
        "w"
    ].numpy() == [1.5]
