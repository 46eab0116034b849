import json
import logging
from copy import deepcopy
from functools import partial
from itertools import islice
from math import inf, nan

import numpy as np
import pytest
from fakes import (
    FakeClient,
    FakeGrid,
    federation,
    learner,
    model_of,
    record,
    returned,
    round_of,
    same,
)
from flwr.app import ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.exception import AggregationError
from flwr.serverapp.strategy import (
    Bulyan,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedTrimmedAvg,
    FedXgbBagging,
    FedXgbCyclic,
    FedYogi,
    Krum,
    MultiKrum,
    QFedAvg,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcohort.flower import CohortStrategy, Limits
from fedcohort.flower.grid import RestrictedGrid
from fedcohort.rounds import play
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.random import Random
from fedcohort.selection.registry import Federation, make_selector
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates

INITIAL = {"w": np.array([[0.5, -1.0], [2.0, 4.0]]), "b": np.array([0.25])}
NO_TEST = {"fraction_evaluate": 0.0}
STOCK = {
    "FedAvg": FedAvg,
    "FedProx": partial(FedProx, proximal_mu=0.1),
    "FedAdam": FedAdam,
    "FedYogi": FedYogi,
    "FedAvgM": partial(FedAvgM, server_momentum=0.9, server_learning_rate=0.5),
    "FedMedian": FedMedian,
    "FedTrimmedAvg": partial(FedTrimmedAvg, beta=0.3),
    "Krum": partial(Krum, num_malicious_nodes=1),
    "QFedAvg": partial(QFedAvg, client_learning_rate=0.1),
    "DifferentialPrivacy": lambda sampled=3: DifferentialPrivacyServerSideFixedClipping(
        FedAvg(), 0.0, 2.0, sampled
    ),
}

PROTECTED = (
    "DifferentialPrivacy",
    "FedMedian",
    "FedTrimmedAvg",
    "Krum",
)  # with the paper's aggregation they would not be
PLAIN = [name for name in STOCK if name not in PROTECTED]


def initial():
    return record(**INITIAL)


def cohort_strategy(strategy=None, selector="random", cohort_size=3, **options):
    options = {"deadline": 5.0, "wait": 10.0, **options}
    return CohortStrategy(strategy or FedAvg(**NO_TEST), selector, cohort_size, **options)


def asked_by_round(grid):
    """The nodes that were written to, round by round."""
    rounds = {}
    for message in grid.sent():
        rounds.setdefault(int(message.metadata.group_id), []).append(message.metadata.dst_node_id)
    return rounds


class Told:
    """A selector that writes down what it is asked and told."""

    def __init__(self, num_clients, cohort_size, seed=0):
        self.inner = Random(num_clients, cohort_size, rng=seed)
        self.available, self.outcomes, self.joined = [], [], []

    num_clients = property(lambda self: self.inner.num_clients)
    cohort_size = property(lambda self: self.inner.cohort_size)

    def select(self, round, available=None):
        self.available.append(None if available is None else np.asarray(available).tolist())
        return self.inner.select(round, available)

    def update(self, outcome):
        clients, success = outcome.cohort.clients.tolist(), outcome.success.astype(bool).tolist()
        self.outcomes.append(dict(zip(clients, success, strict=True)))
        self.inner.update(outcome)

    def join(self, count=1):
        self.joined.append(count)
        self.inner.join(count)

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state):
        self.inner.load_state_dict(state)


# the wrapped strategy


@pytest.mark.parametrize("name", STOCK)
def test_the_model_is_what_the_stock_strategy_makes_of_the_same_replies(clock, name):
    def fails(client, round):
        return (client + round) % 4 == 0

    grid, selector = federation(clock, 6, fails), Told(6, 3)
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
    grid, selector, heard = federation(clock, 7), Told(7, 3), []

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


def test_fewer_answers_than_the_noise_is_drawn_for_move_nothing(clock, said):
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
        for line in said
    )


@pytest.mark.parametrize("name", PROTECTED)
def test_the_papers_aggregation_is_refused_where_it_would_undo_a_protection(name):
    with pytest.raises(
        ValueError, match=r"aggregation must be 'wrapped' for .*, whose protection it is"
    ):
        CohortStrategy(STOCK[name](), "random", 3, aggregation="paper")


def test_a_selector_for_more_clients_than_are_there_keeps_places_for_them(clock):
    strategy = cohort_strategy(FedAvg(), E3CS(100, 3, rng=0), None)
    strategy.start(federation(clock, 5), initial(), num_rounds=2)
    assert strategy.training.totals.arrived == 6


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


# arrays as models have them


TYPED = {
    **STOCK,
    "FedAdagrad": FedAdagrad,
    "AdaptiveClipping": lambda: DifferentialPrivacyServerSideAdaptiveClipping(
        FedAvg(), 0.001, 3, clipped_count_stddev=0.5
    ),
}


def typed(clock, strategy, sent, aggregation="wrapped", rounds=3):
    """A run with clients that keep the types they are sent, of which all must arrive every time; the model it ends with."""
    run = cohort_strategy(strategy, aggregation=aggregation)
    result = run.start(federation(clock, 4), sent, num_rounds=rounds)
    assert run.training.totals.arrived == 3 * rounds
    new, old = model_of(result.arrays), model_of(sent)
    assert [(name, array.dtype, array.shape) for name, array in new.items()] == [
        (name, array.dtype, array.shape) for name, array in old.items()
    ]
    return new


@pytest.mark.parametrize("name", TYPED)
def test_a_float32_model_stays_one(clock, name):
    typed(clock, TYPED[name](), record(w=np.zeros((2, 2), np.float32), b=np.zeros(3, np.float32)))


@pytest.mark.parametrize("name", ["FedAvg", "FedMedian", "FedAdam", "FedTrimmedAvg", "Krum"])
def test_whole_numbers_in_a_model_stay_whole(clock, name):
    new = typed(clock, TYPED[name](), record(w=np.zeros(2, np.float32), steps=np.array([40, 0])))
    assert new["w"].any()


@pytest.mark.parametrize(
    ("name", "aggregation"),
    [
        ("FedAvg", "paper"),
        *(
            (name, "wrapped")
            for name in ("FedAvg", "FedMedian", "FedAdam", "FedTrimmedAvg", "Krum")
        ),
    ],
)
def test_the_counter_of_batch_norm_is_averaged_with_the_rest(clock, name, aggregation):
    typed(clock, TYPED[name](), record(w=np.zeros(2, np.float32), steps=np.array(40)), aggregation)


def reversing(number):
    """A learner that returns its arrays in reverse."""
    client = learner(number)

    def train(message):
        content = learner(number).train(message)
        arrays = content["arrays"]
        content["arrays"] = ArrayRecord({name: arrays[name] for name in reversed(list(arrays))})
        return content

    client.train = train
    return client


@pytest.mark.parametrize("name", TYPED)
def test_the_order_in_which_a_client_returns_its_arrays_does_not_matter(clock, name):
    sent, models = record(w=np.zeros((2, 3)), v=np.zeros((2, 3)), b=np.zeros(4)), []
    for odd in (learner, reversing):
        grid = FakeGrid(clock)
        for number, make in enumerate([odd, learner, odd]):
            grid.join(number + 1, make(number))
        np.random.seed(5)  # noqa: NPY002 (Flower's noise is drawn there)
        models.append(cohort_strategy(TYPED[name]()).start(grid, sent, num_rounds=2).arrays)
    assert same(*models)


FEW = {
    "Bulyan": partial(Bulyan, num_malicious_nodes=1),
    "Krum": partial(Krum, num_malicious_nodes=1),
    "MultiKrum": partial(MultiKrum, num_nodes_to_select=3),
    "FedTrimmedAvg": partial(FedTrimmedAvg, beta=0.4),
    "QFedAvg": partial(QFedAvg, client_learning_rate=0.1),
    "FedMedian": FedMedian,
}


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("arrive", [1, 3])
def test_fewer_models_than_a_robust_strategy_is_made_for_do_not_end_the_run(clock, name, arrive):
    strategy = cohort_strategy(FEW[name](), cohort_size=5)
    result = strategy.start(
        federation(clock, 5, lambda client, round: client >= arrive), initial(), num_rounds=2
    )
    assert strategy.training.totals.arrived == 2 * arrive
    assert all(np.isfinite(array).all() for array in model_of(result.arrays).values())


class Grumpy(FedAvg):
    """Counts what it aggregates, and cannot in round 2."""

    aggregated = 0

    def aggregate_train(self, server_round, replies):
        self.aggregated += 1
        self.last = server_round
        if server_round == 2:
            raise AggregationError("not today")
        return super().aggregate_train(server_round, replies)


def test_if_the_strategy_cannot_aggregate_the_model_and_the_strategy_stay_as_they_were(clock, said):
    grumpy, models = Grumpy(**NO_TEST), []
    strategy = cohort_strategy(grumpy)
    strategy.start(
        federation(clock, 4), initial(), 3, evaluate_fn=lambda round, arrays: models.append(arrays)
    )
    assert grumpy.aggregated == 2
    assert same(models[1], models[2])
    assert not same(models[2], models[3])
    assert strategy.training.totals.arrived == 9
    assert sum("ERROR: round 2: the strategy could not aggregate" in line for line in said) == 1


def test_a_qfedavg_without_the_loss_it_needs_leaves_the_model_as_it_was(clock, said):
    grid = FakeGrid(clock)
    for number in range(2):
        grid.join(
            number + 1,
            FakeClient(
                str(number), lambda message: returned(record(w=np.ones(2)), {"num-examples": 3})
            ),
        )
    strategy = cohort_strategy(QFedAvg(client_learning_rate=0.1, **NO_TEST), cohort_size=2)
    assert same(strategy.start(grid, record(w=np.zeros(2)), 1).arrays, record(w=np.zeros(2)))
    assert any("could not aggregate" in line for line in said)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_momentum_that_overflows_is_forgotten(clock, said):
    sizes = {1: 3e38, 2: -3e38, 3: 1.0, 4: 1.0}
    grid, momentum = FakeGrid(clock), FedAvgM(server_momentum=0.5, **NO_TEST)
    for number in range(2):
        grid.join(
            number + 1,
            FakeClient(
                str(number),
                lambda message: returned(
                    record(w=np.full(2, sizes[round_of(message)], np.float32)), {"num-examples": 3}
                ),
            ),
        )
    result = cohort_strategy(momentum, cohort_size=2).start(
        grid, record(w=np.zeros(2, np.float32)), num_rounds=4
    )
    assert any("the aggregated model is not finite" in line for line in said)
    assert all(np.isfinite(part).all() for part in momentum.momentum_vector)
    assert np.isfinite(result.arrays["w"].numpy()).all()


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_an_aggregate_of_whole_numbers_that_is_not_finite_is_not_taken_over(clock, said, value):
    class Broken(FedAvg):
        def aggregate_train(self, server_round, replies):
            return record(w=np.zeros(2), steps=np.full(2, value)), MetricRecord()

    sent = record(w=np.zeros(2), steps=np.array([3, 4]))
    assert same(
        cohort_strategy(Broken(**NO_TEST)).start(federation(clock, 3), sent, num_rounds=1).arrays,
        sent,
    )
    assert any("the aggregated model is not finite" in line for line in said)


# who is asked


@pytest.mark.parametrize("name", ["e3cs-0", "e3cs-0.5", "e3cs-inc", "e3cs-0.5-robust", "random"])
def test_with_the_same_seed_and_failures_the_cohorts_are_those_of_the_simulation(clock, name):
    clients, rounds, seed = 8, 12, 5
    table = np.array(list(islice(bernoulli(class_rates(clients), seed), rounds)))
    grid = federation(clock, clients, lambda client, round: not table[round - 1, client])
    strategy = cohort_strategy(selector=name, num_clients=clients, seed=seed)
    strategy.start(grid, initial(), num_rounds=rounds)
    selector = make_selector(name, Federation(clients, 3, rng=seed, horizon=rounds))
    simulated = list(play(selector, iter(table), rounds))
    expected = {
        place: (100 + record.cohort.clients).tolist() for place, record in enumerate(simulated, 1)
    }
    assert asked_by_round(grid) == expected
    assert strategy.training.totals.arrived == sum(int(record.valid.sum()) for record in simulated)


def test_the_selector_is_told_exactly_who_arrived(clock):
    def odd(message):
        return [
            returned(record(**INITIAL), {"num-examples": 3}),
            returned(record(**{**INITIAL, "b": np.array([nan])}), {"num-examples": 3}),
            Error(2, "Traceback\nValueError"),
            Error(1001, "stopped"),
            None,
        ][message.metadata.dst_node_id - 1]

    grid, selector = FakeGrid(clock), Told(5, 5)
    for number in range(5):
        grid.join(number + 1, FakeClient(str(number), odd))
    cohort_strategy(selector=selector, cohort_size=None).start(grid, initial(), num_rounds=1)
    assert selector.outcomes == [{0: True, 1: False, 2: False, 3: False, 4: False}]


def test_a_model_that_is_too_late_is_a_failure_and_the_round_ends_on_time(clock):
    grid, selector = federation(clock, 3), Told(3, 3)
    grid.clients[101].delay = 5.1
    strategy = cohort_strategy(selector=selector, cohort_size=None)
    strategy.start(grid, initial(), num_rounds=1)
    assert selector.outcomes == [{0: True, 1: False, 2: True}]
    assert clock.now - grid.sent()[0].metadata.created_at == pytest.approx(5.01, abs=0.05)


def test_those_who_join_in_a_round_can_be_asked_in_the_next(clock):
    grid, selector = federation(clock, 3), Told(3, 3)
    for client in grid.clients.values():
        client.delay = 4.0
    clock.after(2.0, lambda: grid.join(200, learner(3)))
    clock.after(2.0, lambda: grid.join(201, learner(4)))
    strategy = cohort_strategy(selector=selector, cohort_size=None, deadline=10.0)
    strategy.start(grid, initial(), num_rounds=6)
    assert selector.joined == [2]
    assert selector.num_clients == len(strategy.registry) == 5
    assert {200, 201} & {node for nodes in asked_by_round(grid).values() for node in nodes}
    assert not {200, 201} & set(asked_by_round(grid)[1])
    assert grid.left_behind == []


@pytest.mark.parametrize("close_early", [True, False])
def test_those_who_join_are_noticed_though_rounds_are_short(clock, close_early):
    grid = federation(clock, 2)
    for client in grid.clients.values():
        client.delay = 1.5
    clock.after(2.0, lambda: grid.join(200, learner(2)))
    strategy = cohort_strategy(cohort_size=2, deadline=2.0, close_early=close_early)
    strategy.start(grid, initial(), num_rounds=12)
    assert len(strategy.registry) == 3
    assert any(200 in nodes for nodes in asked_by_round(grid).values())


def test_who_comes_during_a_round_takes_no_share_in_its_sum(clock):
    grid = federation(clock, 2)
    for client in grid.clients.values():
        client.delay = 3.0
    clock.after(1.0, lambda: grid.join(200, FakeClient("9")))
    one, other = (cohort_strategy(cohort_size=2, aggregation=rule) for rule in ("paper", "wrapped"))
    shared = one.start(grid, initial(), num_rounds=1)
    assert len(one.registry) == 3
    alone = federation(clock, 2)
    averaged = other.start(alone, initial(), num_rounds=1)
    for name in (
        INITIAL
    ):  # both clients returned: their shares of all data are all of it, and the sum is the average
        np.testing.assert_allclose(
            shared.arrays[name].numpy(), averaged.arrays[name].numpy(), rtol=1e-6
        )


def test_a_round_in_which_nobody_returns_in_time_is_pointed_out(clock, said):
    grid = federation(clock, 2)
    for client in grid.clients.values():
        client.delay = 30.0
    cohort_strategy(cohort_size=2, deadline=20.0).start(grid, initial(), num_rounds=1)
    assert "WARNING: round 1: nobody returned within the deadline of 20 s" in said


def test_a_deaf_node_that_joins_does_not_hold_up_the_rounds(clock):
    grid = federation(clock, 2)
    clock.after(1.0, lambda: grid.join(200, FakeClient("9", deaf=True)))
    for client in grid.clients.values():
        client.delay = 3.0
    start, strategy = clock.now, cohort_strategy(cohort_size=2, deadline=20.0)
    strategy.start(grid, initial(), num_rounds=4)
    assert max(message.metadata.created_at for message in grid.sent()) - start < 3 * 3.5
    assert len(strategy.registry) == 2
    assert (
        grid.left_behind == []
    )  # the question who it is lives for a minute, and is waited for at the end
    assert clock.now - start < 2.0 + 60.5


def test_a_short_wait_is_long_enough_for_those_who_are_there(clock):
    start = clock.now
    cohort_strategy(wait=0.5).start(federation(clock, 3), initial(), num_rounds=1)
    assert clock.now - start < 1.0


def test_nodes_that_say_their_name_slowly_are_all_waited_for(clock):
    grid = federation(clock, 6)
    for place, client in enumerate(grid.clients.values()):
        client.query_delay = 3.0 - 0.5 * place
    strategy = cohort_strategy()
    strategy.start(grid, initial(), num_rounds=1)
    assert [client.name for client in strategy.registry.clients] == ["0", "1", "2", "3", "4", "5"]


def test_a_second_start_counts_anew(clock):
    grid, strategy = federation(clock, 4), cohort_strategy()
    models = [strategy.start(grid, initial(), num_rounds=2).arrays for _ in range(2)]
    assert (strategy.training.totals.sent, strategy.training.totals.arrived) == (6, 6)
    assert sum(strategy.training.totals.asked.values()) == 6
    assert same(*models)  # the same seed, the same cohorts


def test_a_client_that_is_away_is_not_asked_and_keeps_its_place(clock):
    grid, selector = federation(clock, 4), Told(4, 3)
    client = grid.clients[101]

    def leave(message):
        clock.after(0.01, lambda: grid.leave(101))
        clock.after(9.0, lambda: grid.join(500, client))
        grid.clients[100].train = slow
        return slow(message)

    slow = grid.clients[100].train
    grid.clients[100].train = leave
    for node in grid.clients.values():
        node.delay = 4.0
    cohort_strategy(selector=selector, cohort_size=None, deadline=6.0).start(
        grid, initial(), num_rounds=6
    )
    away = [available for available in selector.available if available is not None]
    assert away
    assert all(available == [0, 2, 3] for available in away)
    assert selector.joined == []
    assert any(500 in nodes for nodes in asked_by_round(grid).values())


def test_places_are_kept_for_clients_that_come_late(clock):
    grid, selector = federation(clock, 2), Told(4, 2)
    strategy = cohort_strategy(selector=selector, cohort_size=None, num_clients=4, wait=4.0)
    clock.after(6.0, lambda: grid.join(900, learner(3)))
    for client in grid.clients.values():
        client.delay = 3.0
    strategy.start(grid, initial(), num_rounds=4)
    assert selector.available[0] == [0, 1]
    assert selector.available[-1] == [0, 1, 3]
    assert selector.joined == []


@pytest.mark.parametrize("selector", ["e3cs-0.5", "e3cs-0.5-robust", "random", "rpow-d"])
@pytest.mark.parametrize("aggregation", ["wrapped", "paper"])
def test_if_nobody_is_there_the_round_is_empty_and_the_model_stays(
    clock, selector, aggregation, tmp_path
):
    grid = federation(clock, 3)
    strategy = cohort_strategy(
        FedAvg(),
        selector,
        aggregation=aggregation,
        loss_key="train_loss",
        folder=tmp_path,
        num_clients=3,
    )

    def gone(round, arrays):
        if round == 0:
            for node in list(grid.nodes):
                grid.leave(node)

    result = strategy.start(grid, initial(), num_rounds=2, evaluate_fn=gone)
    assert same(result.arrays, initial())
    rows = [json.loads(line) for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]
    assert [(row["asked"], row["arrived"]) for row in rows] == [([], 0), ([], 0)]
    assert grid.sent() == []


@pytest.mark.parametrize(
    ("name", "aggregation"),
    [*((name, "wrapped") for name in STOCK), *((name, "paper") for name in PLAIN)],
)
def test_if_all_fail_the_model_stays(clock, name, aggregation):
    grid = federation(clock, 3, lambda client, round: True)
    result = cohort_strategy(STOCK[name](), aggregation=aggregation).start(
        grid, initial(), num_rounds=2
    )
    assert same(result.arrays, initial())
    assert result.train_metrics_clientapp == {}


def test_the_paper_aggregation_counts_the_missing_as_the_current_model(clock):
    grid = federation(clock, 2, lambda client, round: client == 1 and round == 2)
    result = cohort_strategy(cohort_size=2, aggregation="paper").start(
        grid, record(w=[0.0]), num_rounds=2
    )
    # round 1: 1/3 * 1/2 + 2/3 * 1 = 5/6; round 2: client 0 alone moves it by 1/3 * (1 - 5/6) / 2 = 1/36
    assert result.arrays["w"].numpy() == pytest.approx([5 / 6 + 1 / 36])
    assert result.train_metrics_clientapp[2]["train_loss"] == 1.0


def test_the_normalised_aggregation_averages_over_those_who_arrived(clock):
    grid = federation(clock, 2, lambda client, round: client == 1 and round == 2)
    result = cohort_strategy(cohort_size=2, aggregation="normalised").start(
        grid, record(w=[0.0]), num_rounds=2
    )
    # round 1: as with the paper's rule, 5/6; round 2: client 0 alone moves it by (1 - 5/6) / 2
    assert result.arrays["w"].numpy() == pytest.approx([5 / 6 + 1 / 12])


def test_selectors_that_rank_by_loss_get_it(clock):
    grid = federation(clock, 6)
    strategy = cohort_strategy(selector="rpow-d", cohort_size=2, loss_key="train_loss")
    strategy.start(grid, initial(), num_rounds=8)
    assert strategy.selector.last_losses.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    again = strategy.selector.select(
        99, [0, 1, 4]
    )  # fewer than the candidates drawn: the two lossiest for sure
    assert again.clients.tolist() == [1, 4]


class TwoVerbs:
    num_clients, cohort_size = 6, 3

    def select(self, round, available=None): ...
    def update(self, outcome): ...
    def join(self, count=1): ...


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"selector": "rpow-d"}, "loss_key must name the loss that clients report, .* got None"),
        (
            {"selector": make_selector("rpow-d", Federation(6, 3, rng=0, horizon=1))},
            "loss_key must name the loss",
        ),
        (
            {"selector": None},
            "selector must be a name or an object with .*, got None without num_clients",
        ),
        ({"selector": E3CS}, "selector must be a name or an object with .*, got the class E3CS"),
        (
            {"selector": TwoVerbs(), "folder": "here"},
            "selector must be .* without state_dict, load_state_dict",
        ),
        ({"limits": 50}, "limits must be Limits, got 50"),
        ({"folder": "taken"}, "folder must be a folder, got taken, where taken is a file"),
        ({"deadline": "60"}, "deadline must be a finite number above 0, got '60'"),
    ],
)
def test_what_would_end_the_first_round_is_refused_before_it(tmp_path, monkeypatch, wrong, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match=message):
        cohort_strategy(**wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_client_that_was_lost_is_not_asked_before_a_sign_of_life(clock):
    grid, selector = FakeGrid(clock), Told(3, 3)
    for number in range(3):
        grid.join(number + 1, learner(number), online_until=clock.now + 1000)
    grid.clients[2].train = lambda message: None
    cohort_strategy(selector=selector, cohort_size=None).start(grid, initial(), num_rounds=3)
    assert selector.outcomes == [
        {0: True, 1: False, 2: True},
        {0: True, 2: True},
        {0: True, 2: True},
    ]


GOOD = {"w": np.ones((2, 2)), "b": np.ones(1)}
ARRAYS = [
    {"arrays": record(**GOOD)},
    {"weights": record(**GOOD)},
    {},
    {"arrays": record(**GOOD), "more": record(**GOOD)},
    {"arrays": record(w=GOOD["w"])},
    {"arrays": record(**GOOD, c=np.ones(2))},
    {"arrays": record(**{**GOOD, "b": np.array([nan])})},
    {"arrays": record(**{**GOOD, "b": np.ones(1, np.float32)})},
    {"arrays": record(**{**GOOD, "w": np.ones((1, 2))})},
    {"arrays": record(**{**GOOD, "b": np.array(["x"])})},
    {"arrays": record(**{**GOOD, "b": np.array([1 + 1j])})},
]
METRICS = [
    {"num-examples": 3, "train_loss": 0.5},
    {"num-examples": 3, "train_loss": 2},
    {"num-examples": 3.5, "train_loss": 0.5, "more": 1},
    {"num-examples": 3},
    {"num-examples": 3, "train_loss": [0.5, 0.25]},
    {"num-examples": 3, "train_loss": []},
    {"train_loss": 0.5},
    {"num-examples": [3], "train_loss": 0.5},
    {"num-examples": 0},
    {"num-examples": 3, "train_loss": nan},
    {"num-examples": 10**18, "train_loss": 0.5},
]
ANSWERS = st.one_of(
    st.none(),
    st.builds(Error, st.integers(0, 2000), st.sampled_from(["", "\n", "Traceback\nKeyError: 'x'"])),
    st.builds(
        lambda arrays, metrics, name, config: RecordDict(
            {
                **arrays,
                name: MetricRecord(metrics),
                **({"config": ConfigRecord({"a": b"x"})} if config else {}),
            }
        ),
        st.sampled_from(ARRAYS[:2] * 6 + ARRAYS),
        st.sampled_from(METRICS[:2] * 6 + METRICS),
        st.sampled_from(["metrics", "metrics", "metrics", "other"]),
        st.booleans(),
    ),
)


@pytest.mark.parametrize(
    "name",
    ["FedAvg", "FedAdam", "FedAvgM", "FedMedian", "FedTrimmedAvg", "Krum", "DifferentialPrivacy"],
)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    answers=st.lists(ANSWERS, min_size=10, max_size=10),
    aggregation=st.sampled_from(["wrapped", "paper"]),
)
def test_whatever_clients_answer_the_run_goes_on(clock, name, answers, aggregation):
    grid, selector = FakeGrid(clock), Told(5, 5)
    for number in range(5):
        grid.join(
            number + 1,
            FakeClient(
                str(number),
                lambda message, number=number: deepcopy(
                    answers[5 * (round_of(message) - 1) + number]
                ),
                lambda message, number=number: deepcopy(answers[number]),
            ),
        )
    aggregation = "wrapped" if name in PROTECTED else aggregation
    stock = STOCK[name](5) if name == "DifferentialPrivacy" else STOCK[name]()
    result = cohort_strategy(stock, selector, None, aggregation=aggregation).start(
        grid, initial(), num_rounds=2
    )
    model = model_of(result.arrays)
    assert {part: array.shape for part, array in model.items()} == {
        part: array.shape for part, array in INITIAL.items()
    }
    assert all(np.isfinite(array).all() for array in model.values())
    assert [list(told) for told in selector.outcomes] == [[0, 1, 2, 3, 4]] * 2
    assert grid.left_behind == []


# evaluation


def test_a_broken_evaluation_is_named_and_the_others_count(clock, said):
    grid = federation(clock, 4)
    grid.clients[101].evaluate = lambda message: RecordDict(
        {"metrics": MetricRecord({"num-examples": 2, "accuracy": nan})}
    )
    grid.clients[102].evaluate = lambda message: Error(2, "Traceback\nKeyError: 'labels'")
    result = cohort_strategy(FedAvg()).start(grid, initial(), num_rounds=1)
    assert result.evaluate_metrics_clientapp[1]["accuracy"] == pytest.approx(
        4 * 0.3 / 5
    )  # clients 0 and 3, 1 and 4 examples
    complaints = [line for line in said if "an evaluation does not count" in line]
    assert len(complaints) == 2
    assert any("client 1: metric 'accuracy' is not finite" in line for line in complaints)
    assert any("client 2: KeyError: 'labels'" in line for line in complaints)


def test_if_every_evaluation_is_broken_there_is_none(clock):
    grid = federation(clock, 3)
    for client in grid.clients.values():
        client.evaluate = lambda message: RecordDict()
    assert (
        cohort_strategy(FedAvg()).start(grid, initial(), num_rounds=1).evaluate_metrics_clientapp
        == {}
    )


# what it refuses, and what it warns of


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"selector": "e3cs-0.6"},
            "selector must be one of .*, got 'e3cs-0.6'; did you mean 'e3cs-0",
        ),
        (
            {"selector": "fedcs"},
            "selector must be an object, not the name 'fedcs', where success_rates must be given",
        ),
        (
            {"selector": "pow-d"},
            "selector must be an object, not the name 'pow-d', where loss_of must be given",
        ),
        ({"cohort_size": 0}, "cohort_size must be a whole number at least 1, got 0"),
        ({"cohort_size": None}, "cohort_size must be a whole number at least 1, got None"),
        ({"cohort_size": True}, "cohort_size must be a whole number at least 1, got True"),
        ({"deadline": 0.0}, "deadline must be a finite number above 0, got 0.0"),
        ({"deadline": inf}, "deadline must be a finite number above 0, got inf"),
        ({"deadline": "soon"}, "deadline must be a finite number above 0, got 'soon'"),
        ({"seed": -1}, "seed must be a whole number at least 0, got -1"),
        ({"num_clients": 2}, "num_clients must be a whole number at least 3, got 2"),
        (
            {"aggregation": "mean"},
            "aggregation must be one of wrapped, paper, normalised, got 'mean'",
        ),
        ({"wait": 0}, "wait must be a finite number above 0, got 0"),
        ({"resume": True}, "folder must be given for resume and tensorboard, got None"),
        ({"tensorboard": True}, "folder must be given for resume and tensorboard, got None"),
    ],
)
def test_a_bad_argument_is_named_with_its_bound_and_its_value(options, message):
    with pytest.raises(ValueError, match=message):
        cohort_strategy(**options)


def test_the_cohort_size_of_a_selector_of_ones_own_cannot_be_another(clock):
    with pytest.raises(ValueError, match="cohort_size must be the selector's, 2, got 3"):
        CohortStrategy(FedAvg(), E3CS(5, 2, rng=0), 3)
    assert CohortStrategy(FedAvg(), E3CS(5, 2, rng=0), 2).options.cohort_size == 2


@pytest.mark.parametrize("rounds", [0, -1, 1.5])
def test_the_number_of_rounds_must_be_whole_and_positive(clock, rounds):
    with pytest.raises(
        ValueError, match=f"num_rounds must be a whole number at least 1, got {rounds}"
    ):
        cohort_strategy().start(federation(clock, 4), initial(), num_rounds=rounds)


def test_no_node_at_all_is_an_error_after_the_wait(clock):
    start = clock.now
    with pytest.raises(
        ValueError,
        match="wait must be long enough for a client to connect, got 10 s in which none did",
    ):
        cohort_strategy().start(FakeGrid(clock), initial())
    assert clock.now - start == pytest.approx(10.0, abs=0.3)


def test_fewer_nodes_than_the_cohort_is_an_error_after_the_wait(clock):
    with pytest.raises(
        ValueError, match="cohort_size must be at most 2, as many clients connected in 10 s, got 3"
    ):
        cohort_strategy().start(federation(clock, 2), initial())


def test_fewer_nodes_than_announced_is_a_warning(clock, said):
    cohort_strategy(num_clients=5).start(federation(clock, 4), initial(), num_rounds=1)
    assert any("WARNING: 4 of 5 clients connected within 10 s" in line for line in said)


@pytest.mark.parametrize(
    ("deadline", "warned"), [(1.0, True), (1.9, True), (2.5, False), (None, False)]
)
def test_a_deadline_shorter_than_the_start_up_gets_a_warning(clock, said, deadline, warned):
    grid = federation(clock, 3)
    for client in grid.clients.values():
        client.query_delay = 2.0
    cohort_strategy(deadline=deadline).start(grid, initial(), num_rounds=1)
    told = [line for line in said if "is shorter than" in line]
    assert len(told) == int(warned)
    assert all(
        line.startswith(f"WARNING: the deadline of {deadline:g} s is shorter than the 2.")
        for line in told
    )


def test_warnings_reach_flowers_own_logger(clock, monkeypatch):
    heard = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    logging.getLogger("flwr").addHandler(handler)
    try:
        cohort_strategy(num_clients=5).start(federation(clock, 4), initial(), num_rounds=1)
    finally:
        logging.getLogger("flwr").removeHandler(handler)
    assert any("4 of 5 clients connected" in line for line in heard)


def test_a_round_must_be_configured_before_it_is_aggregated(clock):
    strategy = cohort_strategy()
    with pytest.raises(ValueError, match="configure_train must be called before aggregate_train"):
        strategy.aggregate_train(1, [])
    with pytest.raises(ValueError, match="start must be called before a round is configured"):
        strategy.configure_train(1, initial(), ConfigRecord(), federation(clock, 3))


def test_limits_reach_the_judge(clock):
    grid, selector = federation(clock, 3), Told(3, 3)  # with 1, 2 and 3 examples
    cohort_strategy(
        selector=selector, cohort_size=None, limits=Limits(least_examples=2, most_examples=2)
    ).start(grid, initial(), num_rounds=1)
    assert selector.outcomes == [{0: False, 1: True, 2: False}]


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


def test_an_aggregate_that_is_not_finite_is_not_taken_over(clock, said):
    class Broken(FedAvg):
        def aggregate_train(self, server_round, replies):
            return record(**{name: array * nan for name, array in INITIAL.items()}), MetricRecord()

    result = cohort_strategy(Broken(**NO_TEST)).start(federation(clock, 3), initial(), num_rounds=2)
    assert same(result.arrays, initial())
    assert sum("the aggregated model is not finite" in line for line in said) == 2


def test_without_a_deadline_the_slowest_is_waited_for(clock):
    grid, selector = federation(clock, 3), Told(3, 3)
    grid.clients[102].delay = 900.0
    cohort_strategy(selector=selector, cohort_size=None, deadline=None).start(
        grid, initial(), num_rounds=1
    )
    assert selector.outcomes == [{0: True, 1: True, 2: True}]


def test_without_closing_early_every_round_takes_the_deadline(clock):
    grid = federation(clock, 3)
    cohort_strategy(close_early=False).start(grid, initial(), num_rounds=2)
    starts = sorted({message.metadata.created_at for message in grid.sent()})
    assert starts[1] - starts[0] == pytest.approx(5.0, abs=0.2)


def test_nothing_is_left_behind_whatever_clients_do(clock):
    grid = federation(clock, 5)
    grid.clients[101].delay = 30.0
    grid.clients[102].train = lambda message: None
    grid.clients[103].evaluate = lambda message: None
    clock.after(3.0, lambda: grid.leave(104))
    cohort_strategy(FedAvg(), cohort_size=5).start(grid, initial(), num_rounds=3)
    clock.sleep(60.0)
    assert grid.left_behind == []


def test_the_model_given_is_not_changed(clock):
    given = initial()
    cohort_strategy().start(federation(clock, 3), given, num_rounds=2)
    assert {name: array.tolist() for name, array in model_of(given).items()} == {
        name: array.tolist() for name, array in INITIAL.items()
    }
