"""Compute how well Table III fits the paper anew, from the Parquet file and the paper's values.

This file shares no code with fedcohort. It follows the words of results/table3.md; the paper's
values are those that the committed table3.csv prints beside ours.
"""

import csv
import math
from functools import cache
from pathlib import Path

import numpy as np
import recompute
import recompute_claims

ROUNDS = ("@45", "@55", "@65")
PARTITIONS = {"iid": "iid", "primary-label": "non-iid"}
UPDATES = {0.0: "FedAvg", 0.5: "FedProx"}
TURN = 625  # until this round E3CS-inc is E3CS-0


def read_paper(path: Path) -> dict[tuple, float]:
    """Return the paper's values by scheme, partition, mu and quantity; inf for never."""
    values = {}
    for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        if line["paper"]:
            key = (line["selector"], line["partition"], float(line["mu"]), line["quantity"])
            values[key] = float(line["paper"])
    return values


def read_table(path: Path, title: str) -> list[dict[str, str]]:
    """Return the rows of a table of a report."""
    lines = path.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    rows = []
    for line in lines.splitlines():
        if line.startswith("|") and not line.startswith("| ---"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


class Fit:
    """The runs of Table III, and the paper's values.

    Args:
        runs: Rows of the Parquet file.
        paper: What `read_paper` returned.
    """

    def __init__(self, runs: list[dict], paper: dict[tuple, float]) -> None:
        self.paper = paper
        self.runs = []
        for row in runs:
            settings = row["settings"]
            refilled = settings["refill"] or row["partition"] == "iid"
            usual = (row["cohort"], settings["server_rate"], row["aggregation"]) == (
                20,
                1.0,
                "paper",
            )
            if usual and refilled and settings["precision"] == "bf16":
                numbers = {name: recompute.value(row, name) for name in (*ROUNDS, "final")}
                self.runs.append(row | numbers)

    def column(self, model, partition, mu, quantity, is_world, all_known=False):
        """Return the values of each scheme by world, without the worlds that cannot count."""
        group = []
        for row in self.runs:
            kind = (row["settings"]["model"], row["partition"], row["mu"])
            if kind == (model, partition, mu) and is_world(row["seed"]):
                group.append(row)
        is_open = any(math.isnan(row[quantity]) for row in group)
        stopped = {row["seed"] for row in group if len(row["accuracy"]) < row["rounds"]}
        values = {}
        for row in group:
            number = row[quantity]
            if all_known and math.isnan(number):
                continue
            if all_known or not (is_open and row["seed"] in stopped):
                values.setdefault(row["selector"], {})[row["seed"]] = number
        last = values.get("e3cs-inc", {0: math.inf})
        in_same_worlds = last.keys() <= values.get("e3cs-0", {}).keys()
        if quantity != "final" and in_same_worlds and max(last.values()) <= TURN:
            del values["e3cs-inc"]
        return values

    def spread(self, model, quantity):
        """Return the standard deviation from world to world and its degrees of freedom."""
        blocks = []
        for partition in PARTITIONS:
            for mu in UPDATES:
                block = []
                column = self.column(model, partition, mu, quantity, lambda seed: True)
                for scheme, known in column.items():
                    paper = self.paper.get((scheme, partition, mu, quantity), math.inf)
                    if paper < math.inf and max(known.values()) < math.inf:
                        scaled = [scale(known[seed], quantity) for seed in sorted(known)]
                        block.append((tuple(sorted(known)), scaled))
                most = max((seeds for seeds, _ in block), key=len, default=())
                if len(most) > 1:
                    blocks.append(np.array([row for seeds, row in block if seeds == most]))
        if not blocks:
            return 0.0, 0.0
        squares = 0.0
        products = 0.0
        pairs = 0.0
        worlds = 0
        cells = 0
        for block in blocks:
            moves = block - block.mean(axis=1)[:, None]
            count = len(block)
            squares += (moves**2).sum()
            covariances = moves @ moves.T
            products += covariances.sum() - np.trace(covariances)
            pairs += (count - 1) * (moves**2).sum()
            worlds += block.shape[1] - 1
            cells += count * (block.shape[1] - 1)
        correlation = 0.0
        if pairs:
            correlation = min(1.0, max(0.0, products / pairs))
        degrees = cells / (1 + (cells / worlds - 1) * correlation**2)
        return math.sqrt(squares / cells), degrees

    def score(self, model, partition, mu, quantities, is_world):
        """Return what the table of the fit says of one group; None without a cell."""
        sizes = []
        inside = 0
        judged = 0
        with_interval = 0
        nevers = 0
        agree = 0
        worlds = []
        all_degrees = []
        for quantity in quantities:
            sd, degrees = self.spread(model, quantity)
            has_finite = False
            column = self.column(model, partition, mu, quantity, is_world)
            for scheme, known in column.items():
                if not known:
                    continue
                paper = self.paper[scheme, partition, mu, quantity]
                worlds.append(len(known))
                if max(*known.values(), paper) == math.inf:
                    nevers += 1
                    judged += 1
                    agree += min(*known.values(), paper) == math.inf
                    continue
                has_finite = True
                size = distance(known.values(), paper, quantity)
                sizes.append(size)
                if degrees:
                    judged += 1
                    with_interval += 1
                    margin = critical(degrees) * sd * math.sqrt(1 + 1 / len(known))
                    inside += size <= margin
            if has_finite and degrees:
                all_degrees.append(degrees)
        if not sizes and not nevers:
            return None
        return {
            "n": span(worlds),
            "cells": str(len(sizes) + nevers),
            "median": written(float(np.median(sizes)), quantities[0]),
            "worst": written(max(sizes), quantities[0]),
            "inside": f"{inside + agree} of {judged}" if with_interval else "-",
            "df": span(all_degrees),
            "both say never": f"{agree} of {nevers}" if nevers else "-",
        }

    def nearer(self, first, second, partition, mu, quantity):
        """Return what the table of both networks says of one quantity; None without a cell."""
        sides = []
        for model in (first, second):
            sides.append(
                self.column(model, partition, mu, quantity, lambda seed: seed != 0, all_known=True)
            )
        sizes = []
        met = set()
        for scheme in sides[0]:
            paper = self.paper[scheme, partition, mu, quantity]
            known = [side.get(scheme, {}) for side in sides]
            shared = []
            for seed in known[0]:
                if seed in known[1] and max(known[0][seed], known[1][seed]) < math.inf:
                    shared.append(seed)
            if shared and paper < math.inf:
                met |= set(shared)
                pair = []
                for side in known:
                    pair.append(distance([side[seed] for seed in shared], paper, quantity))
                sizes.append(pair)
        if not sizes:
            return None
        ours = np.array(sizes)
        return {
            "worlds": ", ".join(map(str, sorted(met))),
            "cells": str(len(sizes)),
            "median, as printed": written(float(np.median(ours[:, 0])), quantity),
            "median, best-fitting": written(float(np.median(ours[:, 1])), quantity),
            "worst, as printed": written(ours[:, 0].max(), quantity),
            "worst, best-fitting": written(ours[:, 1].max(), quantity),
            "nearer, as printed": str(int((ours[:, 0] < ours[:, 1]).sum())),
            "nearer, best-fitting": str(int((ours[:, 1] < ours[:, 0]).sum())),
        }


def scale(number: float, quantity: str) -> float:
    """Return a logarithm of rounds, or an accuracy."""
    return number if quantity == "final" else math.log(number)


def distance(values, paper: float, quantity: str) -> float:
    """Return how far the mean of our values is from the paper's."""
    scaled = [scale(number, quantity) for number in values]
    return abs(sum(scaled) / len(scaled) - scale(paper, quantity))


def written(size: float, quantity: str) -> str:
    """Write a distance as the tables do."""
    if quantity == "final":
        return f"{100 * size:.2f} points"
    return f"{100 * (math.exp(size) - 1):.1f} %"


def span(found: list[float]) -> str:
    """Write the smallest and the largest of some numbers."""
    if not found:
        return "-"
    ends = [f"{min(found):.3g}", f"{max(found):.3g}"]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


@cache
def critical(degrees: float) -> float:
    """Return the value that Student's t exceeds, to both sides, in one of twenty cases."""
    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        if recompute_claims.student(middle, degrees) > 0.05:
            low = middle
        else:
            high = middle
    return high


def check_fit(report: Path, fit: Fit) -> tuple[int, list[str]]:
    """Compare both tables of the fit with the records.

    Returns:
        The number of rows that were compared, and a line for each mismatch.
    """
    compared = 0
    mismatches = []
    groups = {}
    for partition, split in PARTITIONS.items():
        for mu, update in UPDATES.items():
            groups[f"{split}, {update}"] = (partition, mu)

    for row in read_table(report, "Fit to the paper"):
        model = recompute.READINGS[row["reading"]]
        chose = row["worlds"].startswith("world 0")
        quantities = ROUNDS if row["quantity"] == "rounds" else ("final",)
        ours = fit.score(
            model, *groups[row["group"]], quantities, lambda seed, chose=chose: (seed == 0) == chose
        )
        compared += 1
        mismatches += _differences(row, ours)
    for row in read_table(report, "Nearer to the paper, in worlds of both"):
        models = recompute.READINGS["As printed"], recompute.READINGS["Best-fitting"]
        compared += 1
        mismatches += _differences(row, fit.nearer(*models, *groups[row["group"]], row["quantity"]))
    return compared, mismatches


def _differences(row: dict[str, str], ours: dict[str, str] | None) -> list[str]:
    if ours is None:
        return [f"{row}: nothing of it is in the records"]
    found = []
    for name, text in ours.items():
        if row[name] != text:
            found.append(f"{row}: {name} is {text} in the records")
    return found
