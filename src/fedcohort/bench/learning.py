"""Learning: whole rounds beside a bare PyTorch script on a CPU, and beside one client after the other on a GPU.

The data are noise of the paper's shapes: 450 samples per client, batches of 40, one to four epochs, 20 clients a round.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedcohort.arrays import Bools, Ints
from fedcohort.bench.machine import Row, machine, row
from fedcohort.learning import Engine, Options, Run, Sgd, make_model
from fedcohort.learning.weights import flat_weights, named_weights
from fedcohort.rng import stream
from fedcohort.world.classes import class_rates
from fedcohort.world.durations import local_epochs

CLIENTS, COHORT, SAMPLES = 100, 20, 500
SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "emnist-cnn": ((1, 28, 28), 26),
    "cifar-cnn": ((3, 32, 32), 10),
}


def learning(quick: bool = False) -> tuple[list[Row], str]:
    """Measure on the GPU if there is one, else on the CPU."""
    if torch.cuda.is_available():
        return on_gpu(
            quick
        ), f"{machine()}, {torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
    return on_cpu("emnist-cnn", 2 if quick else 5), f"{machine()}, PyTorch {torch.__version__}"


def noise(model: str) -> tuple[Tensor, Tensor]:
    """Return samples and labels of a model's shape for all clients."""
    shape, classes = SHAPES[model]
    chance = stream(0, "bench")
    x = chance.standard_normal((CLIENTS * SAMPLES, *shape), dtype=np.float32)
    return torch.from_numpy(x), torch.from_numpy(chance.integers(0, classes, len(x)))


def engine(model: str, runs: int, options: Options) -> Engine:
    """Return an engine for so many runs, every second one FedProx; each client reserves a tenth."""
    shape, classes = SHAPES[model]
    train = [np.arange(SAMPLES * i, SAMPLES * i + 450) for i in range(CLIENTS)]
    test = np.concatenate([np.arange(SAMPLES * i + 450, SAMPLES * (i + 1)) for i in range(CLIENTS)])
    kinds = [
        Run(seed, train, test, local_epochs(CLIENTS, seed), mu=0.5 * (seed % 2))
        for seed in range(runs)
    ]
    return Engine(
        [make_model(model, shape, classes, 0)] * runs, *noise(model), kinds, Sgd(), options
    )


def cohorts(runs: int, round: int) -> tuple[Ints, Bools]:
    """Return who is asked and whose update arrives, under random selection."""
    chance = stream(round, "bench cohorts")
    clients = np.sort(
        np.stack([chance.permutation(CLIENTS)[:COHORT] for _ in range(runs)]), axis=-1
    )
    return clients, chance.random(clients.shape) < class_rates(CLIENTS)[clients]


def on_gpu(quick: bool) -> list[Row]:
    """Measure client-steps per second, one SGD step on a batch of 40, evaluation of all runs in every round included."""
    cases = [("one client after the other, 1 run, float32", 1, Options("cuda", mode="one-by-one"))]
    for precision in ("float32", "tf32", "bf16"):
        cases.append(
            (
                f"28 runs in lock-step, {precision}, compiled",
                28,
                Options("cuda", precision, compiled=True),
            )
        )
    rows = []
    for name, runs, options in cases:
        trial, speeds = engine("cifar-cnn", runs, options), []
        for round in range(4 if quick else 8):
            before, start = trial.client_steps, perf_counter()
            trial.train(round, *cohorts(runs, round))
            trial.evaluate()
            speeds.append((trial.client_steps - before) / (perf_counter() - start))
        rows.append(row(name, "client-steps/s", 1.0, speeds[2:]))  # compiled and warm
    return rows


def on_cpu(model: str, repeats: int) -> list[Row]:
    """Time rounds of 20 clients, ours and bare PyTorch taking turns: two processes of one thread, longest job first."""
    trial = engine(model, 1, Options())
    ours, bare = [], []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(trial.workers.count, context, _bare_setup, (model,)) as pool:
        for round in range(repeats + 1):
            clients, everyone = cohorts(1, round)[0], np.ones((1, COHORT), dtype=np.bool_)
            start = perf_counter()
            _bare_round(pool, trial, clients[0])
            middle = perf_counter()
            trial.train(round, clients, everyone)
            ours.append(perf_counter() - middle)
            bare.append(middle - start)
    ours, bare = ours[1:], bare[1:]  # the first warms up
    about = f"{model}, {COHORT} clients of 450 samples"
    ratios = [b / a for a, b in zip(ours, bare, strict=True)]
    return [
        row(f"{about}: fedcohort ({trial.mode}), a round", "s", 1.0, ours),
        row(f"{about}: bare PyTorch, {trial.workers.count} processes, a round", "s", 1.0, bare),
        row("bare / fedcohort", "×", 1.0, ratios),
    ]


def _bare_round(pool: ProcessPoolExecutor, trial: Engine, clients: Ints) -> None:
    """Train each client in a process of its own and average, as a script without a framework would."""
    epochs = trial.runs[0].epochs
    order = sorted(clients.tolist(), key=lambda client: -epochs[client])
    weights = trial.models[0].numpy()
    returned = list(
        pool.map(_bare_client, [(weights, client, int(epochs[client])) for client in order])
    )
    np.mean(np.stack(returned), axis=0)


_bare: dict[str, Any] = {}


def _bare_setup(model: str) -> None:
    torch.set_num_threads(1)
    _bare["x"], _bare["y"] = noise(model)
    _bare["module"] = make_model(model, *SHAPES[model], 0)


def _bare_client(task: tuple[Any, int, int]) -> Any:
    weights, client, epochs = task
    module, sgd = _bare["module"], Sgd()
    with torch.no_grad():
        for parameter, value in zip(
            module.parameters(), named_weights(torch.from_numpy(weights), module).values(), strict=True
        ):
            parameter.copy_(value)
    optimiser = torch.optim.SGD(module.parameters(), lr=sgd.rate, momentum=sgd.momentum)
    mine = torch.arange(SAMPLES * client, SAMPLES * client + 450)
    chance = torch.Generator().manual_seed(client)
    for _ in range(epochs):
        for batch in torch.split(mine[torch.randperm(450, generator=chance)], sgd.batch_size):
            optimiser.zero_grad()
            cross_entropy(module(_bare["x"][batch]), _bare["y"][batch]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return flat_weights(module).numpy()
