"""The suites of `run.py` that are not part of the package; each returns rows.

Modules that a suite measures are imported by the suite: the others must run without them.
"""

import importlib
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from bench_records import not_measured

from fedcohort.bench import BENCHES, selection
from fedcohort.bench.measurement import Row, make_row

MOST_CLIENTS = 10**8  # of the curve of selection, with `selection.BYTES_PER_CLIENT` each


def measure_selection(quick: bool) -> list[Row]:
    """Measure what `fedcohort bench selection` does, up to a hundred million clients."""
    return selection.measure_selection(quick, None if quick else MOST_CLIENTS)[0]


def measure_learning(quick: bool) -> list[Row]:
    """Measure what `fedcohort bench learning` does."""
    return BENCHES["learning"](quick)[0]


def measure_cpu(quick: bool) -> list[Row]:
    """Measure what `cpu_learning.py` does; a ratio below 1 means that we are faster."""
    import cpu_learning

    return [as_ratio_row(row) for row in cpu_learning.measure_all(8 if quick else 40)]


def measure_rules(quick: bool) -> list[Row]:
    """Measure what `rules.py` does: many runs on a GPU if there is one, otherwise one run."""
    import torch
    from rules import measure

    rounds = 4 if quick else 12
    if torch.cuda.is_available():
        return measure("cifar-cnn", runs=28, rounds=rounds, device="cuda")
    return measure("emnist-cnn", runs=1, rounds=rounds, device="cpu")


def as_ratio_row(comparison: dict[str, Any]) -> Row:
    """Return the ratio of a comparison of `cpu_learning.py` as a row."""
    return {
        "what": comparison["what"],
        "median": comparison["ratio"],
        "Q1": comparison["ratio Q1"],
        "Q3": comparison["ratio Q3"],
        "unit": "×",
        "n": comparison["rounds"],
    }


def measure_floors(quick: bool) -> list[Row]:
    """Measure how fast this machine copies memory and multiplies matrices."""
    import torch

    megabytes = 64 if quick else 512
    size = 1024 if quick else 4096
    source = np.ones(megabytes * 2**18, dtype=np.float32)
    target = np.zeros_like(source)
    rows = [bandwidth_row("NumPy copy", lambda: np.copyto(target, source), 2 * source.nbytes)]
    for device in ("cpu", "cuda"):
        if device == "cuda" and not torch.cuda.is_available():
            continue
        numbers = torch.ones(source.size, device=device)
        copy = torch.zeros_like(numbers)

        def copy_all(copy: torch.Tensor = copy, numbers: torch.Tensor = numbers) -> None:
            copy.copy_(numbers)
            wait_for(copy)

        rows.append(bandwidth_row(f"torch copy, {device}", copy_all, 2 * source.nbytes))
        for dtype in (torch.float32, torch.bfloat16):
            rows.append(matmul_row(device, dtype, size))
    return rows


def wait_for(tensor: Any) -> None:
    """Wait until a GPU has computed the tensor."""
    import torch

    if tensor.is_cuda:
        torch.cuda.synchronize()


def bandwidth_row(what: str, copy: Callable[[], object], num_bytes: int) -> Row:
    """Return the bytes read and written per second."""
    speeds = [num_bytes / seconds for seconds in time_calls(copy)]
    return make_row(f"{what}: bytes read and written", "GB/s", 1e-9, speeds)


def matmul_row(device: str, dtype: Any, size: int) -> Row:
    """Return the operations per second of a product of square matrices."""
    import torch

    left = torch.randn(size, size, device=device).to(dtype)  # a GPU multiplies ones faster
    speeds = [2 * size**3 / seconds for seconds in time_calls(lambda: wait_for(left @ left))]
    name = str(dtype).removeprefix("torch.")
    return make_row(f"matmul {size} x {size}, {name}, {device}", "GFLOP/s", 1e-9, speeds)


def time_calls(call: Callable[[], object], repeats: int = 7) -> list[float]:
    """Return the seconds of repeated calls, without the first."""
    return time_by_turns([call], repeats)[0]


def time_by_turns(calls: Sequence[Callable[[], object]], repeats: int) -> list[list[float]]:
    """Return the seconds of repeated turns of some calls, a list for each; without the first."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(1 + repeats):
        for call, own_seconds in zip(calls, seconds, strict=True):
            start = perf_counter()
            call()
            own_seconds.append(perf_counter() - start)
    return [own_seconds[1:] for own_seconds in seconds]


def measure_report(quick: bool) -> list[Row]:
    """Measure drawing the page of a small stored run beside reading the same files."""
    from fedcohort.cli.pages import write_report
    from fedcohort.lab.comparison import load_comparison, run_comparison
    from fedcohort.lab.config import ComparisonConfig

    repeats = 3 if quick else 10
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        config = {"rounds": 5, "seeds": 2, "clients": 10, "cohort": 4}
        run_comparison(ComparisonConfig.from_dict(config), folder)
        files = [path for path in folder.rglob("*") if path.is_file()]
        calls = [
            lambda: [path.read_bytes() for path in files],
            lambda: load_comparison(folder),
            lambda: write_report(folder),
        ]
        read, load, draw = time_by_turns(calls, repeats)
    ratios = (np.array(draw) / np.array(load)).tolist()
    return [
        make_row("read the bytes of all files", "ms", 1e3, read),
        make_row("load and check the records", "ms", 1e3, load),
        make_row("write report.html", "ms", 1e3, draw),
        make_row("write report.html / load", "×", 1.0, ratios),
    ]


def measure_flower(quick: bool) -> list[Row]:
    """Measure what `flower/bench.py` does."""
    if find_spec("flwr") is None:
        return [not_measured("rounds on Flower: flwr is not installed")]
    return importlib.import_module("flower.bench").measure(quick)


def measure_peers(quick: bool) -> list[Row]:
    """Measure a round of 20 clients in other frameworks beside ours."""
    rows = []
    if find_spec("flwr") is None or find_spec("ray") is None:
        rows.append(not_measured("flwr[simulation]: not installed"))
    else:
        rows += importlib.import_module("peers").measure_flower(2 if quick else 5)
    if find_spec("pfl") is None:
        rows.append(not_measured("pfl: not installed"))
    else:
        rows += importlib.import_module("peer_pfl").measure_pfl(2 if quick else 5)
    return rows
