"""Compute the numbers of the committed tables anew, from the Parquet files alone.

This file shares no code with fedcohort: it reads the records with pyarrow, works with NumPy, and
parses the committed CSV files with the standard library. A mistake in fedcohort's own cells,
means or spreads shows as a difference.
"""

import csv
import json
import math
from pathlib import Path

import numpy as np
from pyarrow import parquet


def read_runs(path: Path) -> list[dict]:
    """Return the rows of a file of runs with their settings parsed."""
    rows = parquet.read_table(path).to_pylist()
    for row in rows:
        row["settings"] = json.loads(row["settings"])
        row["accuracy"] = np.array(row["accuracy"], dtype=np.float32)
        row["official"] = np.array(row["official"], dtype=np.float32)
    return rows


def value(row: dict, quantity: str) -> float:
    """Return a first round or an accuracy; inf for never, nan for not yet."""
    is_finished = len(row["accuracy"]) >= row["rounds"]
    if quantity in ("final", "official"):
        curve = row["accuracy"] if quantity == "final" else row["official"]
        return float(curve[-1]) if is_finished else math.nan
    # Records are float32: 2,250 of 5,000 correct is 45 %, though its float32 is below 0.45.
    target = np.float32(float(quantity.removeprefix("@")) / 100)
    for round, height in enumerate(row["accuracy"], start=1):
        if height >= target:
            return float(round)
    return math.inf if is_finished else math.nan


def numbers(rows: list[dict], quantity: str) -> dict[str, float]:
    """Return runs, pending, reached, mean and sd of a cell."""
    values = [value(row, quantity) for row in rows]
    known = [number for number in values if not math.isnan(number)]
    finite = [number for number in known if number < math.inf]
    mean = sum(finite) / len(finite) if finite else math.nan
    sd = math.nan
    if len(finite) > 1:
        sd = math.sqrt(sum((number - mean) ** 2 for number in finite) / (len(finite) - 1))
    return {
        "runs": len(rows),
        "pending": len(rows) - len(known),
        "reached": len(finite),
        "mean": mean,
        "sd": sd,
    }


def check_table(path: Path, runs: list[dict], wanted: dict, worlds: bool) -> tuple[int, list[str]]:
    """Compare every row of a committed CSV file with the records.

    Args:
        path: The CSV file.
        runs: All runs on its data.
        wanted: Settings that runs of the table have, beside what the rows say.
        worlds: Whether world 0 stands apart.

    Returns:
        The number of numbers that were compared, and a line for each mismatch.
    """
    compared = 0
    mismatches = []
    for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        settings = dict(wanted)
        if line.get("reading") in READINGS:
            settings["model"] = READINGS[line["reading"]]
        if "k" in line:
            settings["cohort"] = int(line["k"])
        if line.get("rule") == "equalised":
            settings["server_rate"] = 0.095
        cell = []
        for row in runs:
            if (row["selector"], row["partition"]) != (line["selector"], line["partition"]):
                continue
            if "aggregation" in line and row["aggregation"] != line["aggregation"]:
                continue
            if "mu" in line and row["mu"] != float(line["mu"]):
                continue
            if worlds and (row["seed"] == 0) != line["worlds"].startswith("world 0"):
                continue
            if all(_setting(row, name) == settings[name] for name in settings):
                cell.append(row)
        for name, ours in numbers(cell, line["quantity"]).items():
            printed = float(line[name] or "nan")
            compared += 1
            if not np.isclose(printed, ours, rtol=1e-6, equal_nan=True):
                mismatches.append(f"{path} {line}: {name} is {ours} in the records")
    return compared, mismatches


READINGS = {"As printed": "cifar-cnn", "Best-fitting": "cifar-cnn-pool3-ceil"}


def _setting(row: dict, name: str) -> object:
    """Return a setting; dealing labels again matters for one partition only."""
    if name == "refill" and row["partition"] == "iid":
        return ANY
    return row["settings"][name]


class _Any:
    """Equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


ANY = _Any()


def equal_until(runs: list[dict], last: int) -> tuple[int, int]:
    """Count pairs of E3CS-0 and E3CS-inc whose accuracies are equal bit by bit until a round."""
    pairs: dict[str, dict[str, np.ndarray]] = {}
    for row in runs:
        settings = {k: v for k, v in row["settings"].items() if k not in ("selectors", "slots")}
        key = json.dumps(settings, sort_keys=True)
        if row["selector"] in ("e3cs-0", "e3cs-inc") and row["rounds"] == 2500:
            pairs.setdefault(key, {})[row["selector"]] = row["accuracy"][:last]
    both = [pair for pair in pairs.values() if len(pair) == 2]
    return sum(np.array_equal(*pair.values()) for pair in both), len(both)
