"""What holds for every rule, in the engine and on Flower."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from fedcohort.aggregation.registry import AGGREGATIONS


@pytest.mark.parametrize("rule", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_no_rule_moves_a_model_where_nothing_arrived(rule):
    step = torch.zeros(2, 3)
    arrived = torch.tensor([0.0, 0.0])
    assert torch.equal(rule(step, arrived), step)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_a_rule_gives_the_same_bits_on_arrays_and_on_tensors(rule, dtype):
    rng = np.random.default_rng(1)
    step = rng.normal(size=(50, 20)).astype(dtype)
    arrived = rng.random(50).astype(dtype)
    arrived[::7] = 0.0
    step[::7] = 0.0
    on_arrays = rule(step, arrived)
    on_tensors = rule(torch.from_numpy(step), torch.from_numpy(arrived))
    assert on_arrays.dtype == dtype
    np.testing.assert_array_equal(on_arrays, on_tensors.numpy())


def test_the_two_rules_agree_where_everyone_arrives(change, make_engine, play_round):
    by_paper = make_engine(change, aggregation="paper")
    by_mean = make_engine(change, aggregation="normalised")
    by_mean.models = by_paper.models.clone()
    for engine in (by_paper, by_mean):
        play_round(engine, 0, (True, True, True))
    torch.testing.assert_close(by_paper.models, by_mean.models)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("rule", AGGREGATIONS)
def test_a_round_without_arrivals_keeps_model_and_velocity_exactly(
    change, make_engine, play_round, rule, momentum
):
    engine = make_engine(change, aggregation=rule, server_momentum=momentum, server_rate=0.7)
    play_round(engine, 0, (True, True, False))
    before = {name: value.clone() for name, value in engine.state_dict().items()}
    returned = play_round(engine, 1, (False, False, False))
    assert all(torch.equal(value, before[name]) for name, value in engine.state_dict().items())
    assert not returned.valid.any()
    assert np.isnan(returned.loss).all()


@pytest.mark.parametrize("rule", AGGREGATIONS)
def test_a_round_whose_updates_are_all_rejected_keeps_the_model_exactly(
    make_engine, play_round, rule
):
    broken = torch.full((3, 4), torch.nan)
    engine = make_engine(broken, aggregation=rule, server_momentum=0.9)
    before = engine.models.clone()
    assert not play_round(engine, 0, (True, True, True)).valid.any()
    assert torch.equal(engine.models, before)


@pytest.mark.parametrize(
    "arrived", [(True, False, True), (True, True, True), (False, True, False)], ids=str
)
@pytest.mark.parametrize("rule", AGGREGATIONS)
def test_the_engine_and_flower_make_the_same_model_of_the_same_updates(
    change, shares, make_engine, play_round, rule, arrived
):
    aggregation = pytest.importorskip("fedcohort.flower.aggregation")
    engine = make_engine(change, aggregation=rule)
    model = engine.models[0].clone()
    play_round(engine, 0, arrived)

    on_flower = aggregation.apply_rule(
        AGGREGATIONS[rule],
        as_named_arrays(model),
        [as_named_arrays(model + change[client]) for client in np.flatnonzero(arrived)],
        shares.double().numpy()[list(arrived)],
    )
    expected = as_named_arrays(engine.models[0])
    for name, array in expected.items():
        np.testing.assert_allclose(on_flower[name], array, rtol=1e-6, atol=1e-7)


def as_named_arrays(model):
    """Return the flat weights of the linear layer as Flower would send them."""
    weights = model.numpy()
    return {"weight": weights[:2].reshape(2, 1), "bias": weights[2:]}


def test_flower_hands_a_rule_the_whole_model_at_once():
    aggregation = pytest.importorskip("fedcohort.flower.aggregation")
    seen = []

    def rule(step, arrived):
        seen.append((step.tolist(), arrived.tolist()))
        return 2 * step

    model = {"w": np.zeros((2, 1), dtype=np.float32), "steps": np.array(4)}
    trained = [{"w": np.array([[2.0], [4.0]], dtype=np.float32), "steps": np.array(8)}]
    new = aggregation.apply_rule(rule, model, trained, np.array([0.25]))
    assert seen == [([[0.5, 1.0, 1.0]], [0.25])]
    assert new["w"].tolist() == [[1.0], [2.0]]
    assert new["steps"] == 6
    assert {name: array.dtype for name, array in new.items()} == {
        name: array.dtype for name, array in model.items()
    }


def test_the_rules_load_no_learning_library():
    code = "import sys, fedcohort.aggregation.registry; print('torch' in sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "False"
