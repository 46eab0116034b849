"""How fast learning is: whole rounds of training.

On a CPU the engine takes turns with a bare PyTorch script. On a GPU many runs in lock-step stand
beside one client after the other. The data are noise in the shapes of the paper: 450 training
samples per client, batches of 40, one to four epochs, 20 clients asked in each round.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.bench.measurement import Row, describe_machine, make_row
from fedcohort.learning import Engine, Options, Run, Sgd, make_model
from fedcohort.learning.weights import flat_weights, named_weights
from fedcohort.rng import stream
from fedcohort.world.classes import class_rates
from fedcohort.world.durations import local_epochs

CLIENTS = 100
COHORT = 20
SAMPLES = 500  # of each client
TRAINING_SAMPLES = 450  # of these; the client reserves the rest for testing
SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "emnist-cnn": ((1, 28, 28), 26),
    "cifar-cnn": ((3, 32, 32), 10),
}


def measure_learning(quick: bool = False) -> tuple[list[Row], str]:
    """Measure on the GPU if there is one, else on the CPU.

    Args:
        quick: Whether to measure fewer rounds.

    Returns:
        The rows of the table and a description of the machine.
    """
    torch_version = f"PyTorch {torch.__version__}"
    if torch.cuda.is_available():
        rows = measure_on_gpu(rounds=4 if quick else 8)
        return rows, f"{describe_machine()}, {torch.cuda.get_device_name()}, {torch_version}"
    rows = measure_on_cpu("emnist-cnn", rounds=2 if quick else 5)
    return rows, f"{describe_machine()}, {torch_version}"


def measure_on_gpu(rounds: int) -> list[Row]:
    """Measure client-steps per second, with a test of all runs in every round.

    A client-step is one SGD step on a batch of 40. The first two rounds compile and warm up.
    """
    alone = Options("cuda", mode="one-by-one")
    rows = [_measure_speed("one client after the other, 1 run, float32", 1, alone, rounds)]
    for precision in ("float32", "tf32", "bf16"):
        options = Options("cuda", precision, compiled=True)
        what = f"28 runs in lock-step, {precision}, compiled"
        rows.append(_measure_speed(what, 28, options, rounds))
    return rows


def measure_on_cpu(model: str, rounds: int) -> list[Row]:
    """Time rounds of 20 clients, by turns ours and of bare PyTorch.

    The bare script has one process per core, of one thread each, and trains the longest job
    first. The first round warms up.
    """
    engine = make_engine(model, 1, Options())
    everyone = np.ones((1, COHORT), dtype=np.bool_)
    own_seconds = []
    bare_seconds = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(engine.workers.count, context, _set_up_process, (model,)) as pool:
        for round in range(1 + rounds):
            clients, _ = draw_cohorts(1, round)
            start = perf_counter()
            _play_bare_round(pool, engine, clients[0])
            middle = perf_counter()
            engine.train(round, clients, everyone)
            own_seconds.append(perf_counter() - middle)
            bare_seconds.append(middle - start)
    own_seconds = own_seconds[1:]
    bare_seconds = bare_seconds[1:]

    ratios = (np.array(bare_seconds) / np.array(own_seconds)).tolist()
    name = f"{model}, {COHORT} clients of {TRAINING_SAMPLES} samples"
    bare_name = f"{name}: bare PyTorch, {engine.workers.count} processes, a round"
    return [
        make_row(f"{name}: fedcohort ({engine.mode}), a round", "s", 1.0, own_seconds),
        make_row(bare_name, "s", 1.0, bare_seconds),
        make_row("bare / fedcohort", "×", 1.0, ratios),
    ]


def make_engine(model: str, num_runs: int, options: Options) -> Engine:
    """Return an engine for some runs, every second one FedProx."""
    shape, classes = SHAPES[model]
    train = []
    test = []
    for client in range(CLIENTS):
        first = SAMPLES * client
        train.append(np.arange(first, first + TRAINING_SAMPLES))
        test.append(np.arange(first + TRAINING_SAMPLES, first + SAMPLES))

    tested = np.concatenate(test)
    runs = []
    for seed in range(num_runs):
        epochs = local_epochs(CLIENTS, seed)
        runs.append(Run(seed, train, tested, epochs, mu=0.5 * (seed % 2)))
    modules = [make_model(model, shape, classes, 0)] * num_runs
    x, y = make_noise(model)
    return Engine(modules, x, y, runs, Sgd(), options)


def make_noise(model: str) -> tuple[Tensor, Tensor]:
    """Return random inputs and labels for all clients, in the model's shape."""
    shape, classes = SHAPES[model]
    rng = stream(0, "bench")
    x = rng.standard_normal((CLIENTS * SAMPLES, *shape), dtype=np.float32)
    y = rng.integers(0, classes, len(x))
    return torch.from_numpy(x), torch.from_numpy(y)


def draw_cohorts(runs: int, round: int) -> tuple[Ints, Bools]:
    """Return who is asked and whose update arrives, both [runs, k], at random."""
    rng = stream(round, "bench cohorts")
    clients = np.stack([rng.permutation(CLIENTS)[:COHORT] for _ in range(runs)])
    clients = np.sort(clients, axis=-1)
    return clients, rng.random(clients.shape) < class_rates(CLIENTS)[clients]


def _measure_speed(what: str, runs: int, options: Options, rounds: int) -> Row:
    engine = make_engine("cifar-cnn", runs, options)
    speeds = []
    tested = engine.start_evaluation()
    for round in range(rounds):
        steps_before = engine.client_steps
        start = perf_counter()
        engine.train(round, *draw_cohorts(runs, round))
        tested.finish()  # of the round before, as a comparison does
        tested = engine.start_evaluation()
        speeds.append((engine.client_steps - steps_before) / (perf_counter() - start))
    tested.finish()
    return make_row(what, "client-steps/s", 1.0, speeds[2:])


def _play_bare_round(pool: ProcessPoolExecutor, engine: Engine, clients: Ints) -> None:
    """Train each client in some process and average, as a script without a framework does."""
    epochs = engine.runs[0].epochs
    weights = engine.models[0].numpy()
    longest_first = sorted(clients.tolist(), key=lambda client: -epochs[client])
    tasks = [(weights, client, int(epochs[client])) for client in longest_first]
    np.mean(np.stack(list(pool.map(_train_bare_client, tasks))), axis=0)


_process: dict[str, Any] = {}  # data and model of a process of the bare script


def _set_up_process(model: str) -> None:
    torch.set_num_threads(1)
    _process["x"], _process["y"] = make_noise(model)
    _process["module"] = make_model(model, *SHAPES[model], 0)


def _train_bare_client(task: tuple[Any, int, int]) -> Floats:
    """Return the trained weights of one client."""
    weights, client, epochs = task
    module = _process["module"]
    sgd = Sgd()
    start = named_weights(torch.from_numpy(weights), module)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(start[name])

    optimiser = torch.optim.SGD(module.parameters(), lr=sgd.rate, momentum=sgd.momentum)
    first = SAMPLES * client
    samples = torch.arange(first, first + TRAINING_SAMPLES)
    generator = torch.Generator().manual_seed(client)
    for _ in range(epochs):
        order = samples[torch.randperm(TRAINING_SAMPLES, generator=generator)]
        for batch in torch.split(order, sgd.batch_size):
            optimiser.zero_grad()
            loss = cross_entropy(module(_process["x"][batch]), _process["y"][batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    trained: Floats = flat_weights(module).numpy()
    return trained
