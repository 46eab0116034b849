"""The new model of a round, by Flower's strategies and by rules of fedcohort."""

from functools import partial
from math import inf, nan
from types import SimpleNamespace

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
from flwr.app import ArrayRecord, MetricRecord
from flwr.serverapp.exception import AggregationError
from flwr.serverapp.strategy import (
    Bulyan,
    DifferentialPrivacyServerSideAdaptiveClipping,
    FedAdagrad,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedTrimmedAvg,
    Krum,
    MultiKrum,
    QFedAvg,
)
from helpers import INITIAL, NO_TEST, PLAIN, STOCK, cohort_strategy, initial

from fedcohort.flower.aggregator import aggregate_what_works

TYPED = {
    **STOCK,
    "FedAdagrad": FedAdagrad,
    "AdaptiveClipping": lambda: DifferentialPrivacyServerSideAdaptiveClipping(
        FedAvg(), 0.001, 3, clipped_count_stddev=0.5
    ),
}


def typed(clock, strategy, sent, aggregation="wrapped", rounds=3):
    """The last model of a run in which all clients keep the types sent and always arrive."""
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


def test_if_the_strategy_cannot_aggregate_the_model_and_the_strategy_stay_as_they_were(
    clock, logged
):
    grumpy, models = Grumpy(**NO_TEST), []
    strategy = cohort_strategy(grumpy)
    strategy.start(
        federation(clock, 4), initial(), 3, evaluate_fn=lambda round, arrays: models.append(arrays)
    )
    assert grumpy.aggregated == 2
    assert same(models[1], models[2])
    assert not same(models[2], models[3])
    assert strategy.training.totals.arrived == 9
    assert sum("ERROR: round 2: the strategy could not aggregate" in line for line in logged) == 1


def test_a_qfedavg_without_the_loss_it_needs_leaves_the_model_as_it_was(clock, logged):
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
    assert any("could not aggregate" in line for line in logged)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_momentum_that_overflows_is_forgotten(clock, logged):
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
    assert any("the aggregated model is not finite" in line for line in logged)
    assert all(np.isfinite(part).all() for part in momentum.momentum_vector)
    assert np.isfinite(result.arrays["w"].numpy()).all()


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_an_aggregate_of_whole_numbers_that_is_not_finite_is_not_taken_over(clock, logged, value):
    class Broken(FedAvg):
        def aggregate_train(self, server_round, replies):
            return record(w=np.zeros(2), steps=np.full(2, value)), MetricRecord()

    sent = record(w=np.zeros(2), steps=np.array([3, 4]))
    assert same(
        cohort_strategy(Broken(**NO_TEST)).start(federation(clock, 3), sent, num_rounds=1).arrays,
        sent,
    )
    assert any("the aggregated model is not finite" in line for line in logged)


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
    # round 1: 1/3 * 1/2 + 2/3 * 1 = 5/6
    # round 2: client 0 alone moves it by 1/3 * (1 - 5/6) / 2 = 1/36
    assert result.arrays["w"].numpy() == pytest.approx([5 / 6 + 1 / 36])
    assert result.train_metrics_clientapp[2]["train_loss"] == 1.0


def test_the_normalised_aggregation_averages_over_those_who_arrived(clock):
    grid = federation(clock, 2, lambda client, round: client == 1 and round == 2)
    result = cohort_strategy(cohort_size=2, aggregation="normalised").start(
        grid, record(w=[0.0]), num_rounds=2
    )
    # round 1: as with the paper's rule, 5/6; round 2: client 0 alone moves it by (1 - 5/6) / 2
    assert result.arrays["w"].numpy() == pytest.approx([5 / 6 + 1 / 12])


def test_an_aggregate_that_is_not_finite_is_not_taken_over(clock, logged):
    class Broken(FedAvg):
        def aggregate_train(self, server_round, replies):
            return record(**{name: array * nan for name, array in INITIAL.items()}), MetricRecord()

    result = cohort_strategy(Broken(**NO_TEST)).start(federation(clock, 3), initial(), num_rounds=2)
    assert same(result.arrays, initial())
    assert sum("the aggregated model is not finite" in line for line in logged) == 2


@pytest.mark.parametrize(("sampled", "tries"), [(3, [[0, 1, 2]]), (None, None)])
def test_fewer_replies_than_a_private_strategy_was_given_are_never_tried(sampled, tries):
    inner = SimpleNamespace(
        num_sampled_clients=sampled,
        copy_attributes=dict,
        restore_attributes=lambda attributes: None,
    )
    tried = []

    def aggregate(positions):
        tried.append(positions)
        if 1 in positions:
            raise ValueError("reply 1 is odd")
        return positions

    result, left_out, error = aggregate_what_works(inner, 3, aggregate)
    assert "reply 1 is odd" in error
    if sampled is None:
        assert (result, left_out) == ([0, 2], [1])
    else:
        assert (result, left_out, tried) == (None, [], tries)
