"""How fast a GPU trains many runs in lock-step, and which kernels take how long.

    python benchmarks/gpu_learning.py                       28 runs of `cifar-cnn` in bf16
    python benchmarks/gpu_learning.py --runs 7 --precision float32 --out record.json

The data are noise in the shapes of the paper (`fedcohort.bench.learning`). Three rounds are
played twice to compile and record their steps, then by turns, each with a test of all runs that is
read one round later, as a comparison does. The arithmetic of a step is also compared with that of
one large product of matrices on the same GPU. `benchmarks/run.py --page` prints the record.
"""

import argparse
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from bench_suites import matmul_row
from torch.profiler import ProfilerActivity, profile

from fedcohort.bench import learning
from fedcohort.bench.measurement import Row, describe_hardware, make_row
from fedcohort.lab.environment import git_commit
from fedcohort.learning import Engine, Options
from fedcohort.learning.options import PRECISIONS
from fedcohort.learning.workers import multiply_adds

ROUNDS = 3
TURNS = 3
SHOWN_KERNELS = 8
PEAK_SIZE = 8192  # rows of the matrices whose product counts as the GPU's peak


def measure_speed(engine: Engine, runs: int, name: str) -> list[Row]:
    """Return client-steps per second of whole rounds, and the milliseconds of a test."""
    for round in 2 * list(range(ROUNDS)):
        engine.train(round, *learning.draw_cohorts(runs, round))
        engine.evaluate()
    speeds = []
    tested = engine.start_evaluation()
    for round in TURNS * list(range(ROUNDS)):
        steps = engine.client_steps
        start = perf_counter()
        engine.train(round, *learning.draw_cohorts(runs, round))
        tested.finish()
        tested = engine.start_evaluation()
        speeds.append((engine.client_steps - steps) / (perf_counter() - start))
    tested.finish()

    seconds = []
    for _ in range(5):
        start = perf_counter()
        engine.evaluate()
        seconds.append(perf_counter() - start)
    return [
        make_row(f"{name}: whole rounds", "client-steps/s", 1.0, speeds) | {"better": "higher"},
        make_row(f"{name}: a test of all runs", "ms", 1e3, seconds) | {"better": "lower"},
    ]


def measure_kernels(engine: Engine, runs: int, name: str) -> list[Row]:
    """Return the microseconds per client-step of a round's longest kernels, and of all."""
    steps = engine.client_steps
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        engine.train(1, *learning.draw_cohorts(runs, 1))
        torch.cuda.synchronize()
    steps = engine.client_steps - steps
    kernels = sorted(profiled.key_averages(), key=lambda kernel: -kernel.device_time_total)
    total = sum(kernel.device_time_total for kernel in kernels)
    times = {"all kernels of training": total}
    for kernel in kernels[:SHOWN_KERNELS]:
        times[f"`{kernel.key[:50]}`"] = kernel.device_time_total
    rows = []
    for what, microseconds in times.items():
        row = make_row(f"{name}: {what}", "µs/client-step", 1.0, [microseconds / steps])
        rows.append(row | {"better": "lower"})
    return rows


def measure_share_of_peak(engine: Engine, speed: float, precision: str, name: str) -> list[Row]:
    """Return the rate of a large product of matrices, and the share of it that training reaches.

    Args:
        engine: The engine that was measured.
        speed: Its client-steps per second.
        precision: Precision of the passes.
        name: What was measured.
    """
    peak = matmul_row("cuda", PRECISIONS[precision], PEAK_SIZE)
    forward = 2 * engine.sgd.batch_size * multiply_adds(engine.module, engine.x[:1])
    operations = 3 * forward  # and as many again for each of the two gradients
    share = 100 * speed * operations / (peak["median"] * 1e9)
    share_row = make_row(f"{name}: share of that product's rate", "%", 1.0, [share])
    return [peak | {"better": "higher"}, share_row | {"better": "higher"}]


def measure(model: str, runs: int, precision: str) -> dict[str, Any]:
    """Return the record of one kind of training."""
    learning.SHAPES.setdefault(model, learning.SHAPES["cifar-cnn"])
    engine = learning.make_engine(model, runs, Options("cuda", precision, compiled=True))
    name = f"{runs} runs of {model}, {precision}"
    rows = measure_speed(engine, runs, name)
    rows += measure_share_of_peak(engine, rows[0]["median"], precision, name)
    rows += measure_kernels(engine, runs, name)
    gpu = torch.cuda.get_device_name()
    about = "Training on a GPU: whole rounds with a test of every run, and the longest kernels."
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{describe_hardware()}, PyTorch {torch.__version__}, {gpu}",
        "commit": git_commit(Path(__file__)),
        "command": f"python benchmarks/gpu_learning.py --model {model} --runs {runs} "
        f"--precision {precision}",
        "load": os.getloadavg()[0],
        "suites": {"gpu": {"about": about, "rows": rows}},
    }


def main() -> None:
    """Measure, print the rows and write the record."""
    parser = argparse.ArgumentParser(description="Measure training on a GPU.")
    parser.add_argument("--model", default="cifar-cnn", help="a network for CIFAR-10")
    parser.add_argument("--runs", type=int, default=28, help="runs in lock-step")
    parser.add_argument("--precision", default="bf16", help="float32, tf32 or bf16")
    parser.add_argument("--out", type=Path, help="file for the record, JSON")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("device must be a GPU that PyTorch can use, got none")
    record = measure(options.model, options.runs, options.precision)
    for row in record["suites"]["gpu"]["rows"]:
        print(f"{row['median']:12.2f} {row['unit']:15s} {row['what']}")
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
