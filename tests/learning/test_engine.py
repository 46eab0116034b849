from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedcohort.learning import Engine, Options, Run, Sgd, make_model
from fedcohort.learning.trainers import BatchedTrainer
from fedcohort.learning.weights import flat_weights, make_forward

from .small import SGD, SIZES, TRAIN, both_modes, everyone, make_data, make_engine, make_runs


def share(run, client):
    return len(run.train[client]) / sum(len(samples) for samples in run.train)


@both_modes
def test_the_model_moves_by_the_shares_of_unequal_clients(mode):
    engine = make_engine(mode)
    start = engine.models.clone()
    alone = []  # what each client's update adds, asked by itself
    for client in range(4):
        single = make_engine(mode)
        single.train(0, *everyone([client], [client]))
        alone.append(single.models - start)

    engine.train(0, *everyone([0, 1, 3], [0, 1, 3]))

    paper = start[0] + alone[0][0] + alone[1][0] + alone[3][0]
    shares = [share(engine.runs[1], client) for client in (0, 1, 3)]
    steps = [alone[client][1] * part for client, part in zip((0, 1, 3), shares, strict=True)]
    normalised = start[1] + sum(steps) / sum(shares)
    expected = torch.stack([paper, normalised])
    torch.testing.assert_close(engine.models, expected, rtol=1e-5, atol=1e-6)
    assert (alone[3][0].norm(), alone[0][0].norm()) > (0, 0)


@both_modes
def test_shares_are_of_all_training_samples(mode):
    assert make_runs()[0].shares.tolist() == [size / 30 for size in SIZES]
    expected = [[size / 30 for size in SIZES], [size / 30 for size in SIZES[::-1]]]
    np.testing.assert_allclose(make_engine(mode).aggregator.shares, expected, rtol=1e-6)


@both_modes
@pytest.mark.parametrize("poisoned", [0, 1, 3])
def test_a_client_that_does_not_arrive_is_not_trained_and_its_data_do_not_matter(mode, poisoned):
    x, _ = make_data()
    x[TRAIN[poisoned]] = torch.nan
    runs = make_runs()[:1]
    clients = np.array([[0, 1, 2, 3]])
    arrived = clients != poisoned
    clean = make_engine(mode, runs=runs)
    spoilt = make_engine(mode, x=x, runs=runs)
    for engine in (clean, spoilt):
        returned = engine.train(0, clients, arrived)
        assert np.array_equal(returned.valid, arrived)
        assert np.array_equal(np.isfinite(returned.loss), arrived)
    assert torch.equal(clean.models, spoilt.models)
    steps = {0: 1 * 1, 1: 2 * 3, 2: 3 * 1, 3: 1 * 4}  # epochs times batches of four
    assert clean.client_steps == sum(steps.values()) - steps[poisoned]


@both_modes
@pytest.mark.parametrize("poisoned", [0, 1, 3])
@pytest.mark.parametrize("poison", [torch.nan, torch.inf, 1e38])
def test_a_client_whose_data_make_nan_is_rejected_as_if_it_had_not_arrived(mode, poisoned, poison):
    x, _ = make_data()
    x[TRAIN[poisoned]] = poison
    runs = [replace(make_runs()[0], aggregation=rule) for rule in ("paper", "normalised")]
    clients, arrived = everyone([0, 1, 2, 3], [0, 1, 2, 3])
    without = make_engine(mode, runs=runs)
    without.train(0, clients, clients != poisoned)
    poisoned_engine = make_engine(mode, x=x, runs=runs)
    returned = poisoned_engine.train(0, clients, arrived)
    assert np.array_equal(returned.valid, clients != poisoned)
    assert np.array_equal(np.isnan(returned.loss), clients == poisoned)
    assert torch.isfinite(poisoned_engine.models).all()
    torch.testing.assert_close(poisoned_engine.models, without.models, rtol=1e-6, atol=1e-7)


@both_modes
def test_a_change_longer_than_the_bound_is_rejected_and_a_shorter_one_is_not(mode):
    runs = make_runs()[:1]
    norms = []
    for client in range(4):
        single = make_engine(mode, runs=runs)
        before = single.models.clone()
        single.train(0, *everyone([client]))
        norms.append(float((single.models - before).norm()) / share(single.runs[0], client))
    bound = float(np.mean(sorted(norms)[1:3]))
    short = np.array([[norm <= bound for norm in norms]])
    assert short.sum() == 2

    strict = make_engine(mode, runs=runs, max_norm=bound)
    returned = strict.train(0, *everyone([0, 1, 2, 3]))
    assert np.array_equal(returned.valid, short)
    assert np.array_equal(np.isfinite(returned.loss), short)

    filtered = make_engine(mode, runs=runs)
    filtered.train(0, np.array([[0, 1, 2, 3]]), short)
    torch.testing.assert_close(strict.models, filtered.models, rtol=1e-6, atol=1e-7)


def all_zero(shape, classes):
    layer = nn.Linear(*shape, classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


@both_modes
def test_a_change_exactly_as_long_as_the_bound_is_valid(mode):
    # One sample x = 1 and two classes: the logits are 0, so both probabilities are 1/2. Each of
    # the two weights and two biases has a gradient of +-1/2, and one step of rate 1 has length 1.
    run = Run(0, [np.array([0])], np.array([1]), np.array([1]))
    module = make_model(all_zero, (1,), 2, 0)
    options = Options(mode=mode, slots=1, max_norm=1.0)
    sgd = Sgd(rate=1.0, momentum=0.0, batch_size=1)
    engine = Engine([module], torch.ones(2, 1), torch.tensor([0, 1]), [run], sgd, options)
    returned = engine.train(0, *everyone([0]))
    assert float(engine.models.norm()) == 1.0
    assert returned.valid.all()


@both_modes
def test_the_reported_loss_is_that_of_the_job(mode):
    one_epoch = replace(make_runs()[0], epochs=np.ones(4, dtype=np.int64))
    engine = make_engine(mode, runs=[one_epoch])
    before = deepcopy(engine.models)
    returned = engine.train(0, *everyone([0, 2]))
    # Both clients have one batch: they report the loss of the model that was sent.
    for column, client in enumerate((0, 2)):
        logits = make_forward(engine.module)(before[0], engine.x[TRAIN[client]])
        expected = cross_entropy(logits, engine.y[TRAIN[client]]).item()
        assert returned.loss[0, column] == pytest.approx(expected, rel=1e-5)


@both_modes
def test_losses_are_means_over_each_clients_own_training_data(mode):
    engine = make_engine(mode)
    clients = np.array([[3, 0], [1, 2]])
    losses = engine.losses([1, 0], clients)
    for row, run in enumerate((1, 0)):
        for column, client in enumerate(clients[row]):
            samples = engine.runs[run].train[client]
            logits = make_forward(engine.module)(engine.models[run], engine.x[samples])
            expected = cross_entropy(logits, engine.y[samples]).item()
            assert losses[row, column] == pytest.approx(expected, rel=1e-5)


@both_modes
def test_a_restored_engine_goes_on_exactly(mode):
    runs = [replace(run, server_momentum=0.5) for run in make_runs()]
    one = make_engine(mode, runs=runs)
    other = make_engine(mode, runs=runs)
    one.train(0, *everyone([0, 1], [2, 3]))
    other.load_state_dict({name: value.clone() for name, value in one.state_dict().items()})
    for engine in (one, other):
        engine.train(1, *everyone([1, 3], [0, 1]))
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])
    assert (one.aggregator.velocity != 0).any()


@pytest.mark.parametrize("name", ["models", "velocity"])
def test_a_state_of_another_shape_or_without_a_part_is_refused_and_changes_nothing(name):
    engine = make_engine()
    state = {key: value + 1 for key, value in engine.state_dict().items()}
    before = engine.models.clone()
    with pytest.raises(ValueError, match=rf"{name} .*{engine.models.shape[1]}.*got .*7"):
        engine.load_state_dict(state | {name: torch.zeros(2, 7)})
    del state[name]
    with pytest.raises(ValueError, match=rf"{name} .*got nothing"):
        engine.load_state_dict(state)
    assert torch.equal(engine.models, before)


def test_a_state_of_another_type_is_refused():
    engine = make_engine()
    state = engine.state_dict() | {"models": engine.models.double()}
    with pytest.raises(ValueError, match=r"models of the state must be torch\.float32, got .*64"):
        engine.load_state_dict(state)
    assert engine.models.dtype == torch.float32


def test_a_state_that_one_rule_refuses_changes_no_other_rule():
    runs = []
    for run, rule in zip(make_runs(), ("fedau", "inverse-estimated"), strict=True):
        runs.append(replace(run, aggregation=rule))
    trained = make_engine(runs=runs)
    trained.train(0, *everyone([0, 1], [2, 3]))
    state = trained.state_dict()
    del state["rules"]["inverse-estimated"]["asked"]
    engine = make_engine(runs=runs)
    with pytest.raises(ValueError, match="asked of a rule's state"):
        engine.load_state_dict(state)
    with pytest.raises(ValueError, match="rules must be a dict by name, got list"):
        engine.load_state_dict(state | {"rules": []})
    for learnt in engine.state_dict()["rules"]["fedau"].values():
        assert not learnt.any()


def test_a_change_in_a_state_handed_out_does_not_reach_back():
    engine = make_engine()
    state = engine.state_dict()
    engine.train(0, *everyone([0, 1], [2, 3]))
    again = make_engine()
    again.load_state_dict(state)
    assert torch.equal(again.models, make_engine().models)


def test_automatic_mode_is_one_of_the_two_and_leaves_the_models_alone():
    automatic = make_engine("auto")
    given = make_engine("one-by-one")
    assert automatic.mode in ("together", "one-by-one")
    assert torch.equal(automatic.models, given.models)
    assert automatic.client_steps == 0


def test_the_modes_are_measured_without_empty_slots(monkeypatch):
    made = []

    class Recorded(BatchedTrainer):
        def __init__(self, workers, x, y, sgd, slots, *rest):
            made.append(slots)
            super().__init__(workers, x, y, sgd, slots, *rest)

    monkeypatch.setattr("fedcohort.learning.engine.BatchedTrainer", Recorded)
    x, y = make_data()
    runs = [make_runs()[0]] * 60
    Engine([make_model("mlp", (5,), 3, 0)] * len(runs), x, y, runs, SGD, Options())
    assert made == [4 * len(TRAIN)]  # every client of four runs


def test_a_device_out_of_memory_gets_fewer_slots_and_the_same_result(monkeypatch):
    tried = []

    class Small(BatchedTrainer):
        def train(self, models, jobs):
            tried.append(self.slots)
            if self.slots > 2:
                raise torch.OutOfMemoryError("no room")
            return super().train(models, jobs)

    cohorts = everyone([0, 1, 2, 3], [3, 2, 1, 0])
    plain = make_engine("together")
    expected = plain.train(0, *cohorts)
    monkeypatch.setattr("fedcohort.learning.engine.BatchedTrainer", Small)
    engine = make_engine("together")
    engine.slots = 64
    got = engine.train(0, *cohorts)
    assert tried == [64, 4, 2]  # half of the slots that the eight jobs could take, and so on
    assert engine.slots == 2
    torch.testing.assert_close(engine.models, plain.models)
    np.testing.assert_allclose(got.loss, expected.loss, rtol=1e-5)


def test_a_device_without_room_for_one_client_says_so(monkeypatch):
    def full(self, models, jobs):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(BatchedTrainer, "train", full)
    with pytest.raises(torch.OutOfMemoryError, match="no room"):
        make_engine("together").train(0, *everyone([0, 1], [2, 3]))


@both_modes
def test_batches_depend_on_seed_round_and_client_and_not_on_who_else_is_asked(mode):
    def losses(round, clients, seed=0):
        run = replace(make_runs()[0], seed=seed, epochs=np.ones(4, dtype=np.int64))
        engine = make_engine(mode, runs=[run])
        engine.models = make_engine(runs=make_runs()[:1]).models.clone()
        return engine.train(round, *everyone(clients)).loss[0]

    alone = losses(0, [1])[0]
    assert alone == pytest.approx(losses(0, [0, 1, 3])[1], rel=1e-6)
    assert alone != pytest.approx(losses(1, [1])[0], rel=1e-6)
    assert alone != pytest.approx(losses(0, [1], seed=5)[0], rel=1e-6)


@both_modes
def test_a_run_learns_the_same_alone_and_beside_another_to_rounding(mode):
    together = make_engine(mode)
    alone = make_engine(mode, runs=make_runs()[1:])
    for round in range(3):
        together.train(round, *everyone([0, 1, 2], [1, 2, 3]))
        alone.train(round, *everyone([1, 2, 3]))
    torch.testing.assert_close(together.models[1:], alone.models, rtol=1e-5, atol=1e-6)


def with_a_layer_used_twice(shape, classes):
    layer = nn.Linear(5, 5)
    return nn.Sequential(layer, nn.Tanh(), layer, nn.Tanh(), nn.Linear(5, classes))


def test_a_model_that_uses_a_layer_twice_learns_the_same_both_ways_tested_between_or_not():
    def train(mode, runs, test):
        modules = [make_model(with_a_layer_used_twice, (5,), 3, run.seed) for run in runs]
        engine = Engine(modules, *make_data(), runs, SGD, Options(mode=mode, slots=3))
        for round in range(3):
            engine.train(round, *everyone(*[[0, 1, 2]] * len(runs)))
            if test:
                engine.evaluate()
        return engine.models[:1]

    plain = train("together", make_runs(), test=False)
    for mode in ("together", "one-by-one"):
        for runs in (make_runs(), make_runs()[:1]):
            models = train(mode, runs, test=True)
            torch.testing.assert_close(models, plain, rtol=1e-5, atol=1e-6)


def test_low_precision_is_refused_on_a_cpu():
    with pytest.raises(ValueError, match="precision must be float32 on a CPU, got 'bf16'"):
        make_engine(precision="bf16")


def test_the_size_of_a_model_is_counted_in_bytes_of_float32():
    layers = nn.Sequential(nn.Linear(5, 64), nn.Linear(64, 3))
    assert make_engine().model_bytes == 4 * flat_weights(layers).numel()
