"""What every benchmark says of itself: the machine, the number of repetitions, median and quartiles."""

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.lab.environment import git_commit

Row = dict[str, Any]


def machine() -> str:
    """Return what a figure was measured on."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, commit {git_commit(Path(__file__))}"
    return f"{_cpu()}, {os.cpu_count()} cores, {versions}"


def row(what: str, unit: str, scale: float, times: list[float]) -> Row:
    """Return one figure with its spread: median and quartiles of repeated measurements."""
    low, median, high = np.percentile(times, [25, 50, 75]) * scale
    return {
        "what": what,
        "median": float(median),
        "Q1": float(low),
        "Q3": float(high),
        "unit": unit,
        "n": len(times),
    }


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(
                (line.split(":")[1].strip() for line in file if line.startswith("model name")),
                platform.machine(),
            )
    except OSError:
        return platform.processor() or platform.machine()
