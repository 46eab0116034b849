"""What every benchmark reports: the machine, and each measurement with its spread."""

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.lab.environment import git_commit

Row = dict[str, Any]


def describe_machine() -> str:
    """Return the processor, the number of cores and the versions that were measured."""
    return f"{describe_hardware()}, commit {git_commit(Path(__file__))}"


def describe_hardware() -> str:
    """Return what `describe_machine` does, without the commit."""
    python = f"Python {platform.python_version()}"
    numpy = f"NumPy {np.__version__}"
    return f"{_processor()}, {os.cpu_count()} cores, {python}, {numpy}"


def make_row(what: str, unit: str, scale: float, values: list[float]) -> Row:
    """Return one row of a benchmark's table: the median and the quartiles of its values.

    Args:
        what: What was measured.
        unit: Unit of the scaled values.
        scale: Factor from the values to the unit.
        values: Repeated measurements.
    """
    low, median, high = np.percentile(values, [25, 50, 75]) * scale
    return {
        "what": what,
        "median": float(median),
        "Q1": float(low),
        "Q3": float(high),
        "unit": unit,
        "n": len(values),
    }


def make_missing_row(what: str, unit: str) -> Row:
    """Return a row without numbers; `what` says why nothing could be measured."""
    return {"what": what, "median": None, "Q1": None, "Q3": None, "unit": unit, "n": 0}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    for line in lines:
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()
