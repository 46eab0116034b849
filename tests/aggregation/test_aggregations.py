"""What holds for every rule, in the engine and on Flower."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from fedcohort.aggregation.base import Arrivals, Setting
from fedcohort.aggregation.registry import AGGREGATIONS

EVERYONE = (True, True, True)
# With equal data and weights these are a plain average where everyone arrives.
PLAIN = [name for name in AGGREGATIONS if name not in ("q-fedavg", "inverse", "inverse-estimated")]

LEARNING = [name for name, rule in AGGREGATIONS.items() if rule.client_arrays]
BY_TRUE_RATES = ("inverse", "inverse-normalised")


@pytest.fixture(params=AGGREGATIONS)
def rule(request):
    """Return the name of every rule."""
    return request.param


@pytest.mark.parametrize("rule", PLAIN)
def test_where_everyone_arrives_a_rule_is_the_plain_average(change, make_engine, play_round, rule):
    rates = np.ones(3)
    expected = make_engine(change, aggregation="paper")
    engine = make_engine(change, aggregation=rule, success_rates=rates)
    engine.models = expected.models.clone()
    for round in range(3):
        play_round(engine, round, EVERYONE)
        play_round(expected, round, EVERYONE)
    torch.testing.assert_close(engine.models, expected.models)


def test_true_rates_of_one_make_inverse_weights_a_plain_average(change, make_engine, play_round):
    expected = make_engine(change, aggregation="paper")
    engine = make_engine(change, aggregation="inverse", success_rates=np.ones(3))
    engine.models = expected.models.clone()
    play_round(engine, 0, EVERYONE)
    play_round(expected, 0, EVERYONE)
    torch.testing.assert_close(engine.models, expected.models)


def test_a_rule_that_learns_goes_on_exactly_from_its_state(arrivals, rule):
    setting = Setting(1, 5, success_rates=np.full((1, 5), 0.5), learning_rate=0.1)
    whole = AGGREGATIONS[rule](setting)
    resumed = AGGREGATIONS[rule](setting)
    rounds = [arrivals([0, 2, 4], [1, 0, 1]), arrivals([1, 2, 3], [0, 1, 1])]
    later = arrivals([0, 1, 2], [1, 1, 1], loss=[0.5, 1.0, 2.0], norm=[1.0, 2.0, 3.0])
    for known in rounds:
        whole.learn(known)
    resumed.load_state_dict(whole.state_dict())
    assert np.array_equal(resumed.weigh(later), whole.weigh(later))
    whole.learn(later)
    for name in whole.client_arrays:
        assert not np.array_equal(getattr(resumed, name), getattr(whole, name))


@pytest.mark.parametrize("rule", LEARNING)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(rule):
    own = AGGREGATIONS[rule](Setting(1, 5, success_rates=np.full((1, 5), 0.5), learning_rate=0.1))
    before = own.state_dict()
    for broken in ({}, {name: np.zeros((1, 4)) for name in own.client_arrays}):
        with pytest.raises(ValueError, match=r"state must be numbers of shape \(1, 5\)"):
            own.load_state_dict(broken)
    assert all(np.array_equal(getattr(own, name), before[name]) for name in before)


@pytest.mark.parametrize("rule", [name for name in AGGREGATIONS if name not in BY_TRUE_RATES])
def test_clients_that_join_are_unknown_and_the_others_keep_what_is_known(arrivals, rule):
    own = AGGREGATIONS[rule](Setting(1, 3, learning_rate=0.1))
    own.learn(arrivals([0, 1], [1, 0]))
    before = own.state_dict()
    own.join(2)
    assert own.num_clients == 5
    for name, values in own.state_dict().items():
        assert np.array_equal(values[:, :3], before[name])
        assert values.shape == (1, 5)


@pytest.mark.parametrize("rule", BY_TRUE_RATES)
def test_clients_whose_true_rates_nobody_knows_are_refused(rule):
    own = AGGREGATIONS[rule](Setting(2, 2, success_rates=np.full((2, 2), 0.5)))
    with pytest.raises(ValueError, match=r"must not join Inverse\w*, which needs .*, got 1 more"):
        own.join(1)
    assert own.num_clients == 2


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_runs_in_lock_step_are_weighed_as_each_alone(name):
    rng = np.random.default_rng(3)
    rates = rng.uniform(0.2, 1.0, (4, 6))
    together = AGGREGATIONS[name](Setting(4, 6, rates, 0.1))
    alone = [AGGREGATIONS[name](Setting(1, 6, rates[[run]], 0.1)) for run in range(4)]
    for _ in range(5):
        clients = np.sort([rng.permutation(6)[:3] for _ in range(4)])
        values = {key: rng.uniform(0.1, 2.0, (4, 3)) for key in ("shares", "weights")}
        values |= {key: rng.uniform(0.1, 2.0, (4, 3)) for key in ("loss", "norm")}
        available = rng.random((4, 6)) < 0.7
        available[np.arange(4)[:, None], clients] = True
        values["available"] = available
        known = Arrivals(clients=clients, valid=rng.random((4, 3)) < 0.6, **values)
        weights = together.weigh(known)
        together.learn(known)
        for run, own in enumerate(alone):
            part = Arrivals(**{key: value[[run]] for key, value in vars(known).items()})
            assert np.array_equal(own.weigh(part)[0], weights[run])
            own.learn(part)


def test_the_two_rules_agree_where_everyone_arrives(change, make_engine, play_round):
    by_paper = make_engine(change, aggregation="paper")
    by_mean = make_engine(change, aggregation="normalised")
    by_mean.models = by_paper.models.clone()
    for engine in (by_paper, by_mean):
        play_round(engine, 0, (True, True, True))
    torch.testing.assert_close(by_paper.models, by_mean.models)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_round_without_arrivals_keeps_model_and_velocity_exactly(
    change, make_engine, play_round, rule, momentum
):
    engine = make_engine(change, aggregation=rule, server_momentum=momentum, server_rate=0.7)
    play_round(engine, 0, (True, True, False))
    model = engine.models.clone()
    velocity = engine.aggregator.velocity.clone()
    returned = play_round(engine, 1, (False, False, False))
    assert torch.equal(engine.models, model)
    assert torch.equal(engine.aggregator.velocity, velocity)
    assert not returned.valid.any()
    assert np.isnan(returned.loss).all()


def test_a_round_whose_updates_are_all_rejected_keeps_the_model_exactly(
    make_engine, play_round, rule
):
    broken = torch.full((3, 4), torch.nan)
    engine = make_engine(broken, aggregation=rule, server_momentum=0.9)
    before = engine.models.clone()
    assert not play_round(engine, 0, (True, True, True)).valid.any()
    assert torch.equal(engine.models, before)


@pytest.mark.parametrize("rule", ["paper", "normalised"])
@pytest.mark.parametrize("arrived", [(True, False, True), EVERYONE, (False, True, False)], ids=str)
def test_the_engine_and_flower_make_the_same_model_of_the_same_updates(
    change, shares, make_engine, play_round, rule, arrived
):
    aggregation = pytest.importorskip("fedcohort.flower.aggregation")
    engine = make_engine(change, aggregation=rule)
    model = engine.models[0].clone()
    play_round(engine, 0, arrived)

    on_flower = aggregation.apply_weights(
        as_named_arrays(model),
        [as_named_arrays(model + change[client]) for client in np.flatnonzero(arrived)],
        shares.double().numpy()[list(arrived)],
        normalises=AGGREGATIONS[rule].normalises,
    )
    expected = as_named_arrays(engine.models[0])
    for name, array in expected.items():
        np.testing.assert_allclose(on_flower[name], array, rtol=1e-6, atol=1e-7)


def as_named_arrays(model):
    """Return the flat weights of the linear layer as Flower would send them."""
    weights = model.numpy()
    return {"weight": weights[:2].reshape(2, 1), "bias": weights[2:]}


def test_the_rules_load_no_learning_library():
    code = "import sys, fedcohort.aggregation.registry; print('torch' in sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "False"
