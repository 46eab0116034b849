"""Counts that decide the speed on every machine: files opened, operations of a training step."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fedcohort.lab.comparison import load_comparison

sys.path.append(str(Path(__file__).parents[1] / "reports"))
from run_folders import write_comparison

# Of a step, for each tensor of weights, views included. A budget: a step that is traced badly, such
# as one client after the other, needs many times as many.
OPERATIONS_PER_TENSOR = 40
# Of a small network on a CPU: what differentiating it takes, and choosing samples and updating.
OPERATIONS_PER_STEP = 75
OPERATIONS_PER_ROUND = 90  # beside the steps: starting and ending jobs, and moving the model
_opened = []
_watching = []


def _note_open(event, args):
    if event == "open" and _watching and isinstance(args[0], str | Path):
        _opened.append(str(args[0]))


sys.addaudithook(_note_open)  # a hook cannot be removed, so it listens only when told


def count_opens(folder, call):
    """Return how often each file in the folder is opened during the call."""
    _opened.clear()
    _watching.append(True)
    try:
        call()
    finally:
        _watching.clear()
    return Counter(name for name in _opened if Path(name).is_relative_to(folder))


def test_opens_are_counted(tmp_path):
    file = tmp_path / "a"
    file.write_text("a")
    assert count_opens(tmp_path, lambda: [file.read_text(), file.read_bytes()]) == {str(file): 2}


@pytest.mark.parametrize("chunks", [1, 4])
def test_loading_a_run_opens_its_settings_and_each_chunk_of_records_once(tmp_path, chunks):
    folder = tmp_path / "run"
    write_comparison(folder, chunks=chunks)
    opens = count_opens(folder, lambda: load_comparison(folder))
    assert set(opens.values()) == {1}
    assert len(opens) == 1 + chunks


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def count_operations(torch, slots, shape=(1, 28, 28), model="emnist-cnn"):
    """Return how many operations one training step of so many models takes."""
    from fedcohort.learning import Sgd, make_model
    from fedcohort.learning.compilation import record
    from fedcohort.learning.sgd import make_gradients
    from fedcohort.learning.weights import flat_weights

    module = make_model(model, shape, 10, 0)
    weights = flat_weights(module).expand(slots, -1).clone()
    batch = Sgd().batch_size
    x = torch.zeros(slots, batch, *shape)
    y = torch.zeros(slots, batch, dtype=torch.int64)
    graph = record(make_gradients(module), (weights, x, y, torch.ones(slots, batch)))
    return sum(node.op == "call_function" for node in graph.graph.nodes)


@pytest.mark.parametrize(("model", "shape"), [("mlp", (64,)), ("emnist-cnn", (1, 28, 28))])
def test_a_training_step_takes_as_many_operations_for_many_models_as_for_two(torch, model, shape):
    two = count_operations(torch, 2, shape, model)
    assert two > 0
    assert count_operations(torch, 5, shape, model) == two


@pytest.mark.parametrize(
    ("model", "shape", "parameters"), [("mlp", (64,), 4), ("emnist-cnn", (1, 28, 28), 10)]
)
def test_a_training_step_takes_at_most_40_operations_per_tensor(torch, model, shape, parameters):
    from fedcohort.learning import make_model

    assert len(list(make_model(model, shape, 10, 0).parameters())) == parameters
    assert count_operations(torch, 2, shape, model) <= OPERATIONS_PER_TENSOR * parameters


def count_round(torch, num_runs, cohort_size, epochs):
    """Return how many operations PyTorch starts in a round of training on a CPU."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from fedcohort.learning import Engine, Options, Run, Sgd, make_model

    class Counter(TorchDispatchMode):
        started = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.started += 1
            return function(*args, **(kwargs or {}))

    train = list(np.arange(240).reshape(12, 20))
    runs = [Run(seed, train, np.arange(20), np.full(12, epochs)) for seed in range(num_runs)]
    modules = [make_model("mlp", (64,), 10, seed=0) for _ in runs]
    options = Options(mode="together", slots=num_runs * cohort_size)
    x = torch.zeros(240, 64)
    y = torch.zeros(240, dtype=torch.int64)
    engine = Engine(modules, x, y, runs, Sgd(batch_size=5), options)
    clients = np.tile(np.arange(cohort_size), (num_runs, 1))
    everyone = np.ones(clients.shape, dtype=bool)
    # A mode counts in its own thread alone, so the caller does the work.
    engine.workers.map = lambda work, items: [work(item) for item in items]
    for round in range(10):  # the first rounds record the step
        engine.train(round, clients, everyone)
    with Counter() as counter:
        engine.train(10, clients, everyone)
    return counter.started


def test_a_round_starts_as_many_operations_for_many_clients_and_runs_as_for_few(torch):
    few = count_round(torch, num_runs=1, cohort_size=2, epochs=1)
    assert few > 0
    assert count_round(torch, num_runs=1, cohort_size=12, epochs=1) == few
    assert count_round(torch, num_runs=3, cohort_size=12, epochs=1) == few


def test_a_round_starts_no_more_operations_than_its_steps_need(torch):
    one = count_round(torch, num_runs=1, cohort_size=3, epochs=1)  # 4 steps
    three = count_round(torch, num_runs=1, cohort_size=3, epochs=3)  # 12 steps
    assert (three - one) / 8 <= OPERATIONS_PER_STEP
    assert one - 4 * (three - one) / 8 <= OPERATIONS_PER_ROUND
