"""How fast a CPU trains, beside what a script without a framework takes in the same run.

    python benchmarks/cpu_learning.py               prints ratios; below 1 we are faster
    python benchmarks/cpu_learning.py --json FILE   writes them too

A small network (64-64-10, 20 clients of 100 samples) stands beside plain `torch.func.vmap` over
the same clients. The paper's network for EMNIST stands beside one bare process per core, each of
which trains half of the clients with plain PyTorch; once we train everyone, and once only those
whose update arrives, while the bare processes train everyone. Both sides take turns, so that
other work on the machine disturbs them alike.
"""

import argparse
import json
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from fedcohort.bench import learning
from fedcohort.bench.measurement import describe_machine
from fedcohort.learning import Engine, Options, Run, Sgd, make_model

CLIENTS = 100
COHORT = 20
SAMPLES = 100
EPOCHS = 2
SMALL_SGD = Sgd(batch_size=20)
WARM_UP = {"mlp": 6, "emnist-cnn": 1}  # rounds that do not count: a step is recorded first
Play = Callable[[int], None]


def take_turns(floor: Play, ours: Play, warm_up: int, rounds: int) -> dict[str, list[float]]:
    """Play rounds by turns and return the seconds of each."""
    for round in range(warm_up):
        floor(round)
        ours(round)
    seconds: dict[str, list[float]] = {"floor": [], "ours": []}
    for round in range(warm_up, warm_up + rounds):
        for name, play in (("floor", floor), ("ours", ours)):
            start = perf_counter()
            play(round)
            seconds[name].append(perf_counter() - start)
    return seconds


def measure_small(num_runs: int, rounds: int) -> dict[str, Any]:
    """Measure the small network: some runs in lock-step beside one run by plain `vmap`."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(CLIENTS * SAMPLES, 64, generator=generator)
    y = torch.randint(10, (len(x),), generator=generator)
    train = [np.arange(SAMPLES * client, SAMPLES * (client + 1)) for client in range(CLIENTS)]
    runs = []
    for seed in range(num_runs):
        runs.append(Run(seed, train, np.arange(SAMPLES), np.full(CLIENTS, EPOCHS)))
    model = make_model("mlp", (64,), 10, seed=0)
    engine = Engine([model] * num_runs, x, y, runs, SMALL_SGD, Options())
    everyone = np.ones((num_runs, COHORT), dtype=np.bool_)
    plain = PlainVmap(x, y)

    def floor(round: int) -> None:
        plain.play_round(draw_clients(1, round)[0])

    # On a busy machine PyTorch's threads wait for each other: take the faster number of them.
    seconds_by_threads = {}
    for threads in (torch.get_num_threads(), 1):
        torch.set_num_threads(threads)
        seconds_by_threads[threads] = np.median(take_turns(floor, floor, 3, 5)["floor"])
    torch.set_num_threads(min(seconds_by_threads, key=seconds_by_threads.__getitem__))

    def ours(round: int) -> None:
        engine.train(round, draw_clients(num_runs, round), everyone)

    seconds = take_turns(floor, ours, WARM_UP["mlp"], rounds)
    return summarise(f"mlp, {num_runs} runs ({engine.mode}) / vmap, a run", seconds, num_runs)


class PlainVmap:
    """Federated averaging as a script with `torch.func` does it."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        module = make_model("mlp", (64,), 10, seed=0)
        self.x = x
        self.y = y
        self.model = {name: weight.detach() for name, weight in module.named_parameters()}

        def loss(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            return cross_entropy(functional_call(module, weights, (x,)), y)

        self.gradients = vmap(grad(loss))

    def play_round(self, clients: np.ndarray) -> None:
        """Train the clients side by side and average them."""
        weights = {}
        velocity = {}
        for name, weight in self.model.items():
            weights[name] = weight.expand(COHORT, *weight.shape).clone()
            velocity[name] = torch.zeros_like(weights[name])
        first = torch.from_numpy(SAMPLES * clients)[:, None]
        for _ in range(EPOCHS):
            orders = torch.stack([torch.randperm(SAMPLES) for _ in clients])
            for batch in torch.split(first + orders, SMALL_SGD.batch_size, dim=1):
                gradients = self.gradients(weights, self.x[batch], self.y[batch])
                for name, gradient in gradients.items():
                    velocity[name].mul_(SMALL_SGD.momentum).add_(gradient)
                    weights[name] = weights[name] - SMALL_SGD.rate * velocity[name]
        self.model = {name: weight.mean(dim=0) for name, weight in weights.items()}


def measure_cnn(rounds: int, trains_everyone: bool) -> dict[str, Any]:
    """Measure the paper's network for EMNIST beside bare processes."""
    engine = learning.make_engine("emnist-cnn", 1, Options())
    context = multiprocessing.get_context("spawn")
    count = engine.workers.count
    with ProcessPoolExecutor(count, context, learning._set_up_process, ("emnist-cnn",)) as pool:

        def floor(round: int) -> None:
            clients, _ = learning.draw_cohorts(1, round)
            learning._play_bare_round(pool, engine, clients[0])

        def ours(round: int) -> None:
            clients, arrived = learning.draw_cohorts(1, round)
            engine.train(round, clients, arrived | trains_everyone)

        seconds = take_turns(floor, ours, WARM_UP["emnist-cnn"], rounds)
    who = "everyone" if trains_everyone else "failed clients skipped"
    return summarise(f"emnist-cnn, {who} ({engine.mode}) / {count} bare processes", seconds, 1)


def draw_clients(num_runs: int, round: int) -> np.ndarray:
    """Return whom each run asks, [R, k]."""
    rng = np.random.default_rng(round)
    return np.stack([np.sort(rng.permutation(CLIENTS)[:COHORT]) for _ in range(num_runs)])


def summarise(what: str, seconds: dict[str, list[float]], num_runs: int) -> dict[str, Any]:
    """Return the medians of a comparison, and the median and quartiles of its ratios."""
    ours = np.array(seconds["ours"]) / num_runs
    floor = np.array(seconds["floor"])
    low, median, high = np.percentile(ours / floor, [25, 50, 75])
    return {
        "what": what,
        "ratio": float(median),
        "ratio Q1": float(low),
        "ratio Q3": float(high),
        "ours seconds": float(np.median(ours)),
        "floor seconds": float(np.median(floor)),
        "rounds": len(floor),
    }


def measure_all(rounds: int) -> Iterator[dict[str, Any]]:
    """Yield one comparison after the other; the slow ones take fewer rounds."""
    few = max(2, rounds // 8)
    yield measure_small(1, rounds)
    yield measure_small(14, rounds)
    yield measure_cnn(few, trains_everyone=True)
    yield measure_cnn(few, trains_everyone=False)


def main() -> None:
    """Print one line per comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    machine = describe_machine()
    print(machine, flush=True)
    rows = []
    for row in measure_all(arguments.rounds):
        spread = f"{row['ratio Q1']:.2f} to {row['ratio Q3']:.2f}"
        print(f"{row['ratio']:6.2f} x ({spread}, n = {row['rounds']})  {row['what']}", flush=True)
        rows.append(row)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
