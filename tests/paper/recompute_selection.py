"""Compute the summary of Figures 3 and 4 anew: who is asked, and who answers.

This file shares no code with fedcohort. It reads the arrays of the simulated schemes and the
training runs of pow-d, and compares what it computes with the tables of the reports.
"""

import json
import re
from pathlib import Path

import numpy as np


class Scheme:
    """Who answered a scheme, and whom it asked. Clients stand in the order of their classes.

    Args:
        seeds: The seed of each simulation or run [S].
        successes: Number of updates that arrived in each round [S, T].
        counts: How often each client was asked [S, K].
        settings: Settings of the simulation, with the cohort size and the rate of each class.
    """

    def __init__(self, seeds, successes, counts, settings):
        self.seeds = seeds
        self.successes = np.asarray(successes, dtype=np.int64)
        self.counts = np.asarray(counts, dtype=np.int64)
        self.by_class = self.counts.reshape(len(seeds), len(settings["rates"]), -1)
        self.cohort = settings["cohort_size"]
        self.shares = self.successes / self.cohort


class Records:
    """Schemes by name, and the bound less the regret of each seed, by case."""

    def __init__(self, schemes, margins):
        self.schemes = schemes
        self.margins = margins

    def measure(self, name, function):
        """Return what a function says of a scheme, by seed; empty if it was not played."""
        scheme = self.schemes.get(name)
        if scheme is None:
            return {}
        return dict(zip(scheme.seeds, function(scheme).tolist(), strict=True))


def read_schemes(folder: Path, runs: list[dict], wanted: dict) -> dict[str, Scheme]:
    """Return the simulated schemes of a folder, and pow-d from its training runs.

    Args:
        folder: Folder with the arrays and the settings of the simulation.
        runs: Training runs, as `recompute.read_runs` returns them.
        wanted: Settings of the runs of pow-d that count.
    """
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    seeds = [settings["first_seed"] + place for place in range(settings["seeds"])]
    schemes = {}
    with np.load(folder / "results.npz") as arrays:
        for name in settings["selectors"]:
            successes = arrays[f"{name}/successes"]
            schemes[name] = Scheme(seeds, successes, arrays[f"{name}/counts"], settings)

    played = (settings["cohort_size"], settings["rounds"])
    powd = {row["seed"]: row for row in runs if is_powd(row, played, wanted)}
    if powd:
        successes = [row["valid"] for row in powd.values()]
        counts = [row["counts"] for row in powd.values()]
        schemes["pow-d"] = Scheme(list(powd), successes, counts, settings)
    return schemes


def is_powd(row, played, wanted):
    """Return whether a run is one of pow-d, finished, non-iid, under FedAvg as in the paper."""
    kind = (row["selector"], row["partition"], row["aggregation"], row["mu"])
    if kind != ("pow-d", "primary-label", "paper", 0.0):
        return False
    if (row["cohort"], len(row["valid"])) != played or row["rounds"] != played[1]:
        return False
    wanted = {"candidates": None, "refill": True, "server_rate": 1.0} | wanted
    return all(row["settings"].get(name) == value for name, value in wanted.items())


def jain(counts):
    """Return Jain's index of counts along the last axis."""
    return counts.sum(axis=-1) ** 2 / (counts.shape[-1] * (counts**2).sum(axis=-1))


def written(number):
    """Write a number as tables do: whole from a thousand on, else with three digits."""
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def read_table(path: Path, title: str) -> list[dict[str, str]]:
    """Return the rows of a table of a report."""
    section = path.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    header, _, *body = [re.split(r"\s*\|\s*", line.strip("| ")) for line in lines]
    return [dict(zip(header, cells, strict=True)) for cells in body]


def participation_rows(schemes: dict[str, Scheme]) -> list[dict[str, str]]:
    """Return the summary of Figures 3 and 4."""
    rows = []
    for name, scheme in schemes.items():
        arrived = scheme.successes.sum(axis=1)
        medians = np.median(scheme.by_class, axis=2).mean(axis=0)
        row = {
            "selector": name,
            "success ratio": written(scheme.shares.mean()),
            "CEP": written(arrived.mean()),
            "CEP sd": written(arrived.std(ddof=1)),
            "Jain": written(jain(scheme.counts).mean()),
            "asked, by class": "/".join(f"{median:.0f}" for median in medians),
        }
        rows.append(row)
    return rows


def check_participation(report: Path, schemes: dict[str, Scheme]) -> tuple[int, list[str]]:
    """Compare the summary of a figure with the schemes; see `check_rows`."""
    return check_rows(read_table(report, "Summary"), participation_rows(schemes))


def check_rows(rows: list[dict], ours: list[dict], names: tuple = ()) -> tuple[int, list[str]]:
    """Compare printed rows with recomputed ones.

    Args:
        rows: The printed rows.
        ours: The recomputed ones, in the same order.
        names: Columns that only say what a row is about.

    Returns:
        The number of values that were compared, and a line for each mismatch.
    """
    compared = 0
    mismatches = []
    if len(rows) != len(ours):
        mismatches.append(f"{len(rows)} rows instead of {len(ours)}")
    for row, own in zip(rows, ours, strict=False):
        if row.keys() != {*names, *own}:
            mismatches.append(f"{row}: other columns than {list(own)}")
            continue
        compared += len(own)
        for name, value in own.items():
            if not is_same(row[name], value):
                mismatches.append(f"{row}: {name} is {value} in the records")
    return compared, mismatches


def is_same(printed: str, value: object) -> bool:
    """Return whether a report prints a value: a text as it is, a number with nine digits.

    A pair is the least and the most that a printed number may be.
    """
    if isinstance(value, tuple):
        least, most = value
        return least <= float(printed.replace(",", "")) <= most
    if isinstance(value, float):
        return bool(np.isclose(float(printed), value, rtol=1e-7, atol=0, equal_nan=True))
    return printed == value
