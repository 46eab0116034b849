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

SIZES = (3, 9, 4, 14)  # samples of each client; 12 more for testing
EDGES = np.cumsum([0, *SIZES])
TRAIN = [np.arange(start, start + size) for start, size in zip(EDGES, SIZES, strict=False)]
TEST = np.arange(EDGES[-1], EDGES[-1] + 12)
SGD = Sgd(0.05, 0.9, 4)
WAYS = pytest.mark.parametrize("mode", ["together", "one-by-one"])


def data():
    torch.manual_seed(7)
    return torch.randn(TEST[-1] + 1, 5), torch.randint(3, (TEST[-1] + 1,))


def runs():
    first = Run(0, TRAIN, TEST, np.array([1, 2, 3, 1]))
    return [
        first,
        Run(1, TRAIN[::-1], TEST[:7], np.array([2, 1, 1, 2]), mu=0.4, aggregation="normalised"),
    ]


def engine(mode="one-by-one", x=None, y=None, of=None, **options):
    images, labels = data()
    of = runs() if of is None else of
    modules = [make_model("mlp", (5,), 3, run.seed) for run in of]
    return Engine(
        modules,
        images if x is None else x,
        labels if y is None else y,
        of,
        SGD,
        Options(mode=mode, slots=3, **options),
    )


def asked(*rows):
    return np.array(rows), np.ones((len(rows), len(rows[0])), dtype=bool)


def share(run, client):
    return len(run.train[client]) / sum(len(samples) for samples in run.train)


@WAYS
def test_the_model_moves_by_the_shares_of_unequal_clients(mode):
    learner = engine(mode)
    start = learner.models.clone()
    alone = []  # what each client's update adds, asked by itself
    for client in range(4):
        single = engine(mode)
        single.train(0, *asked([client], [client]))
        alone.append(single.models - start)
    learner.train(0, *asked([0, 1, 3], [0, 1, 3]))
    of = learner.runs
    paper = start[0] + alone[0][0] + alone[1][0] + alone[3][0]
    weights = [share(of[1], client) for client in (0, 1, 3)]
    steps = [alone[client][1] * weight for client, weight in zip((0, 1, 3), weights, strict=True)]
    normalised = start[1] + sum(steps) / sum(weights)
    torch.testing.assert_close(
        learner.models, torch.stack([paper, normalised]), rtol=1e-5, atol=1e-6
    )
    assert (alone[3][0].norm(), alone[0][0].norm()) > (0, 0)


@WAYS
def test_shares_are_of_all_training_samples(mode):
    assert runs()[0].shares.tolist() == [size / 30 for size in SIZES]
    np.testing.assert_allclose(
        engine(mode).shares.numpy(),
        [[s / 30 for s in SIZES], [s / 30 for s in SIZES[::-1]]],
        rtol=1e-6,
    )


@WAYS
@pytest.mark.parametrize("poisoned", [0, 1, 3])
def test_a_client_that_does_not_arrive_is_not_trained_and_its_data_do_not_matter(mode, poisoned):
    x, _ = data()
    x[TRAIN[poisoned]] = torch.nan
    of = runs()[:1]
    clients = np.array([[0, 1, 2, 3]])
    arrived = clients != poisoned
    clean, spoilt = engine(mode, of=of), engine(mode, x=x, of=of)
    for learner in (clean, spoilt):
        returned = learner.train(0, clients, arrived)
        assert np.array_equal(returned.valid, arrived)
        assert np.array_equal(np.isfinite(returned.loss), arrived)
    assert torch.equal(clean.models, spoilt.models)
    steps = {0: 1 * 1, 1: 2 * 3, 2: 3 * 1, 3: 1 * 4}  # epochs times batches of four
    assert clean.client_steps == sum(steps.values()) - steps[poisoned]


@WAYS
@pytest.mark.parametrize("poisoned", [0, 1, 3])
@pytest.mark.parametrize("poison", [torch.nan, torch.inf, 1e38])
def test_a_client_whose_data_make_nan_is_rejected_as_if_it_had_not_arrived(mode, poisoned, poison):
    x, _ = data()
    x[TRAIN[poisoned]] = poison
    of = [replace(runs()[0], aggregation=rule) for rule in ("paper", "normalised")]
    clients, everyone = asked([0, 1, 2, 3], [0, 1, 2, 3])
    without, with_it = engine(mode, of=of), engine(mode, x=x, of=of)
    without.train(0, clients, clients != poisoned)
    returned = with_it.train(0, clients, everyone)
    assert np.array_equal(returned.valid, clients != poisoned)
    assert np.array_equal(np.isnan(returned.loss), clients == poisoned)
    assert torch.isfinite(with_it.models).all()
    torch.testing.assert_close(with_it.models, without.models, rtol=1e-6, atol=1e-7)


@WAYS
def test_a_change_longer_than_the_bound_is_rejected_and_a_shorter_one_is_not(mode):
    single, start = engine(mode, of=runs()[:1]), {}
    for client in range(4):
        single = engine(mode, of=runs()[:1])
        before = single.models.clone()
        single.train(0, *asked([client]))
        start[client] = float((single.models - before).norm()) / share(single.runs[0], client)
    bound = float(np.mean(sorted(start.values())[1:3]))
    short = np.array([[start[client] <= bound for client in range(4)]])
    assert short.sum() == 2
    strict, filtered = engine(mode, of=runs()[:1], max_norm=bound), engine(mode, of=runs()[:1])
    returned = strict.train(0, *asked([0, 1, 2, 3]))
    assert np.array_equal(returned.valid, short)
    assert np.array_equal(np.isfinite(returned.loss), short)
    filtered.train(0, np.array([[0, 1, 2, 3]]), short)
    torch.testing.assert_close(strict.models, filtered.models, rtol=1e-6, atol=1e-7)


@WAYS
def test_the_reported_loss_is_that_of_the_job(mode):
    learner = engine(mode, of=[replace(runs()[0], epochs=np.ones(4, dtype=np.int64))])
    before = deepcopy(learner.models)
    returned = learner.train(0, *asked([0, 2]))
    for place, client in enumerate(
        (0, 2)
    ):  # one epoch of one batch: the loss of the model that was sent
        logits = make_forward(learner.module)(before[0], learner.x[TRAIN[client]])
        assert returned.loss[0, place] == pytest.approx(
            cross_entropy(logits, learner.y[TRAIN[client]]).item(), rel=1e-5
        )


@WAYS
def test_accuracy_and_loss_are_those_of_plain_pytorch(mode):
    learner = engine(mode)
    learner.train(0, *asked([0, 1], [2, 3]))
    accuracy, loss = learner.evaluate()
    for place, run in enumerate(learner.runs):
        logits = make_forward(learner.module)(learner.models[place], learner.x[run.test])
        labels = learner.y[run.test]
        assert accuracy[place] == pytest.approx(
            (logits.argmax(dim=1) == labels).double().mean().item()
        )
        assert loss[place] == pytest.approx(cross_entropy(logits, labels).item(), rel=1e-5)


def test_all_runs_can_be_tested_on_the_same_samples_instead_of_their_own():
    learner = engine()
    own = learner.evaluate()
    samples = learner.runs[1].test
    accuracy, loss = learner.evaluate(samples)
    assert (accuracy[1], loss[1]) == (own[0][1], own[1][1])
    alone = engine(of=[replace(run, test=samples) for run in learner.runs])
    np.testing.assert_array_equal((accuracy, loss), alone.evaluate())
    np.testing.assert_array_equal(learner.evaluate(), own)


def test_more_test_samples_than_one_evaluation_batch_are_all_counted(monkeypatch):
    from fedcohort.learning import evaluation as module

    whole = engine().evaluate()
    monkeypatch.setattr(module, "EVALUATION_BATCH", 5)
    np.testing.assert_allclose(engine().evaluate(), whole, rtol=1e-6)


@WAYS
def test_losses_are_means_over_each_clients_own_training_data(mode):
    learner = engine(mode)
    clients = np.array([[3, 0], [1, 2]])
    found = learner.losses([1, 0], clients)
    for row, run in enumerate((1, 0)):
        for column, client in enumerate(clients[row]):
            samples = learner.runs[run].train[client]
            logits = make_forward(learner.module)(learner.models[run], learner.x[samples])
            assert found[row, column] == pytest.approx(
                cross_entropy(logits, learner.y[samples]).item(), rel=1e-5
            )


@WAYS
def test_evaluation_changes_nothing(mode):
    learner = engine(mode)
    before = learner.models.clone()
    learner.evaluate()
    learner.losses([0, 1], np.array([[0], [1]]))
    assert torch.equal(learner.models, before)


@WAYS
def test_a_restored_engine_goes_on_exactly(mode):
    of = [replace(run, server_momentum=0.5) for run in runs()]
    one, other = engine(mode, of=of), engine(mode, of=of)
    one.train(0, *asked([0, 1], [2, 3]))
    other.load_state_dict({name: value.clone() for name, value in one.state_dict().items()})
    for learner in (one, other):
        learner.train(1, *asked([1, 3], [0, 1]))
    assert all(
        torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items()
    )
    assert (one.velocity != 0).any()


@pytest.mark.parametrize("name", ["models", "velocity"])
def test_a_state_of_another_shape_or_without_a_part_is_refused_and_changes_nothing(name):
    learner = engine()
    state = {key: value + 1 for key, value in learner.state_dict().items()}
    before = learner.models.clone()
    with pytest.raises(ValueError, match=rf"{name} .*{learner.models.shape[1]}.*got .*7"):
        learner.load_state_dict(state | {name: torch.zeros(2, 7)})
    with pytest.raises(ValueError, match=rf"{name} .*got nothing"):
        learner.load_state_dict({key: value for key, value in state.items() if key != name})
    assert torch.equal(learner.models, before)


def test_a_change_in_a_state_handed_out_does_not_reach_back():
    learner = engine()
    state = learner.state_dict()
    learner.train(0, *asked([0, 1], [2, 3]))
    again = engine()
    again.load_state_dict(state)
    assert torch.equal(again.models, engine().models)


def test_automatic_mode_is_one_of_the_two_and_leaves_the_models_alone():
    learner, told = engine("auto"), engine("one-by-one")
    assert learner.mode in ("together", "one-by-one")
    assert torch.equal(learner.models, told.models)
    assert learner.client_steps == 0


@WAYS
def test_batches_depend_on_seed_round_and_client_and_not_on_who_else_is_asked(mode):
    def moved(round, clients, seed=0):
        learner = engine(
            mode, of=[replace(runs()[0], seed=seed, epochs=np.ones(4, dtype=np.int64))]
        )
        learner.models = engine(of=runs()[:1]).models.clone()
        return learner.train(round, *asked(clients)).loss[0]

    assert moved(0, [1])[0] == pytest.approx(moved(0, [0, 1, 3])[1], rel=1e-6)
    assert moved(0, [1])[0] != pytest.approx(moved(1, [1])[0], rel=1e-6)
    assert moved(0, [1])[0] != pytest.approx(moved(0, [1], seed=5)[0], rel=1e-6)


@WAYS
def test_a_run_learns_the_same_alone_and_beside_another_to_rounding(mode):
    together, alone = engine(mode), engine(mode, of=runs()[1:])
    for round in range(3):
        together.train(round, *asked([0, 1, 2], [1, 2, 3]))
        alone.train(round, *asked([1, 2, 3]))
    torch.testing.assert_close(together.models[1:], alone.models, rtol=1e-5, atol=1e-6)


def shared(shape, classes):
    layer = nn.Linear(5, 5)
    return nn.Sequential(layer, nn.Tanh(), layer, nn.Tanh(), nn.Linear(5, classes))


def test_a_model_that_uses_a_layer_twice_learns_the_same_both_ways_tested_between_or_not():
    def learnt(mode, of, test):
        learner = Engine(
            [make_model(shared, (5,), 3, run.seed) for run in of],
            *data(),
            of,
            SGD,
            Options(mode=mode, slots=3),
        )
        for round in range(3):
            learner.train(round, *asked(*[[0, 1, 2]] * len(of)))
            if test:
                learner.evaluate()
        return learner.models[:1]

    plain = learnt("together", runs(), test=False)
    for mode in ("together", "one-by-one"):
        for of in (runs(), runs()[:1]):
            torch.testing.assert_close(learnt(mode, of, test=True), plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: engine(precision="bf16"), "precision must be float32 on a CPU, got 'bf16'"),
        (
            lambda: engine(of=[replace(runs()[0], epochs=np.array([1, 0, 1, 1]))]),
            "epochs must be between 1 and .*, got 0",
        ),
        (
            lambda: engine(of=[replace(runs()[0], epochs=np.array([1, 2]))]),
            r"epochs must have shape \(4,\), got \(2,\)",
        ),
    ],
)
def test_what_cannot_be_trained_with_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.skipif(
    torch.cuda.is_available(), reason="asks for a GPU where there is none, and this machine has one"
)
def test_a_device_that_is_not_there_is_refused_by_name():
    with pytest.raises(ValueError, match=r"device must be .*, got 'cuda'"):
        engine(device="cuda")


@pytest.mark.parametrize("name", ["quantum", "cpu:x", ""])
def test_a_device_that_does_not_exist_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"device must be .*, got '{name}'"):
        engine(device=name)


@pytest.mark.parametrize(("option", "value"), [("mode", "both"), ("precision", "float16")])
def test_an_unknown_option_is_refused_with_those_there_are(option, value):
    with pytest.raises(ValueError, match=f"{option} must be one of .*, got '{value}'"):
        engine(**{option: value})


def test_a_client_without_samples_is_refused():
    with pytest.raises(
        ValueError, match="train must hold at least one sample per client, got none for client 3"
    ):
        replace(runs()[0], train=[*TRAIN[:3], np.array([], dtype=np.int64)])


def test_samples_that_there_are_not_are_refused_by_name_bound_and_value():
    x, y = data()
    with pytest.raises(
        ValueError, match=rf"x and y must be equally long, got {len(x)} and {len(y) - 1}"
    ):
        engine(y=y[:-1])
    with pytest.raises(
        ValueError, match=rf"train must be between 0 and {len(y) - 1}, got {len(y)}"
    ):
        engine(of=[replace(runs()[0], train=[*TRAIN[:3], np.array([0, len(y)])])])
    with pytest.raises(ValueError, match=rf"test must be between 0 and {len(y) - 1}, got -1"):
        engine(of=[replace(runs()[0], test=np.array([2, -1]))])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"mu": -1.0}, "mu must be between 0.0 and 1000000.0, got -1.0"),
        ({"mu": float("nan")}, "mu must be between"),
        ({"epochs": np.array([1.5, 1, 1, 1])}, "epochs must be whole numbers, got 1.5"),
        ({"test": np.array([], dtype=np.int64)}, "test must hold at least one sample, got none"),
        ({"train": []}, "train must hold at least one sample per client"),
    ],
)
def test_a_run_that_could_not_learn_is_refused(changes, told):
    with pytest.raises(ValueError, match=told):
        replace(runs()[0], **changes)


@pytest.mark.parametrize(
    "options", [{"slots": 0}, {"slots": -1}, {"max_norm": -1.0}, {"max_norm": float("nan")}]
)
def test_options_out_of_bounds_are_refused_by_name(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be .*, got"):
        Options(**options)


def test_labels_and_samples_of_other_kinds_are_refused():
    x, y = data()
    for wrong, told in ((-100, "got -100"), (3, "got 3")):
        labels = y.clone()
        labels[5] = wrong
        with pytest.raises(ValueError, match=f"y must be between 0 and 2, {told}"):
            engine(y=labels)
    with pytest.raises(
        ValueError, match=r"x must be float32 and y int64, got torch\.float32 and torch\.int32"
    ):
        engine(y=y.int())
    models = [make_model("mlp", (5,), 3, 0) for _ in runs()]
    with pytest.raises(
        ValueError, match=r"x must be float32 and y int64, got torch\.float64 and torch\.int64"
    ):
        Engine(models, x.double(), y, runs(), SGD)
    with pytest.raises(
        ValueError, match="modules must be one per run, at least one, got 0 for 0 runs"
    ):
        Engine([], x, y, [], SGD)
    with pytest.raises(
        ValueError, match="modules must have the same parameters, at least one, got 0 in Identity"
    ):
        Engine([nn.Identity() for _ in runs()], x, y, runs(), SGD)


def test_an_unknown_aggregation_is_refused_before_any_training():
    with pytest.raises(ValueError, match=r"aggregation must be one of .*, got 'mean'"):
        engine(of=[replace(runs()[0], aggregation="mean")])


def test_as_many_models_as_runs_are_needed():
    x, y = data()
    with pytest.raises(ValueError, match="modules"):
        Engine([make_model("mlp", (5,), 3, 0)], x, y, runs(), SGD, Options(mode="one-by-one"))


def test_the_size_of_a_model_is_counted_in_bytes_of_float32():
    learner = engine()
    assert (
        learner.model_bytes
        == 4 * flat_weights(nn.Sequential(nn.Linear(5, 64), nn.Linear(64, 3))).numel()
    )


def test_the_ways_are_measured_without_empty_slots(monkeypatch):
    made = []

    class Seen(BatchedTrainer):
        def __init__(self, workers, x, y, sgd, slots, *rest):
            made.append((slots, workers.count))
            super().__init__(workers, x, y, sgd, slots, *rest)

    monkeypatch.setattr("fedcohort.learning.engine.BatchedTrainer", Seen)
    images, labels = data()
    of = [runs()[0]] * 60
    Engine([make_model("mlp", (5,), 3, 0)] * len(of), images, labels, of, SGD, Options())
    ((slots, workers),) = made
    jobs = 4 * len(of[0].train)  # of four runs
    assert slots == -(-jobs // workers)


@WAYS
def test_other_samples_of_the_same_size_are_other_samples(mode):
    learner = engine(mode)
    found = [
        learner.evaluate(np.arange(start, start + 5))[1] for start in (0, 9)
    ]  # arrays that nobody keeps
    again = [learner.evaluate(samples)[1] for samples in (np.arange(5), np.arange(9, 14))]
    np.testing.assert_array_equal(found, again)
    assert not np.array_equal(*found)
