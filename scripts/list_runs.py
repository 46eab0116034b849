"""List the committed records: which cells were trained, in which worlds, for how many rounds.

`python scripts/list_runs.py` writes results/records/runs.md; a test checks that it is current.
"""

import json
from pathlib import Path
from typing import Any

from pyarrow import parquet

RESULTS = Path(__file__).parents[1] / "results"
REPORT = RESULTS / "records" / "runs.md"
COLUMNS = ("network", "partition", "update", "rule", "k", "sampler", "of rounds")


def describe(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the kind of a run: all columns but schemes, worlds and rounds played."""
    settings = json.loads(row["settings"])
    partition = row["partition"]
    if partition == "primary-label":
        partition = "non-iid" if settings["refill"] else "non-iid, disjoint"
    rule = row["aggregation"]
    if settings["server_rate"] != 1:
        rule = "equalised"
    update = "FedProx" if row["mu"] else "FedAvg"
    sampler = settings["sampler"]
    if settings["candidates"] is not None:
        sampler += f", {settings['candidates']} candidates"
    sizes = (str(row["cohort"]), sampler, str(row["rounds"]))
    return (settings["model"], partition, update, rule, *sizes)


def count_runs(rows: list[dict[str, Any]]) -> list[str]:
    """Return one line of a table for each kind of run and each set of schemes."""
    kinds: dict[tuple[tuple[str, ...], int], dict[int, list[str]]] = {}
    for row in rows:
        worlds = kinds.setdefault((describe(row), len(row["accuracy"])), {})
        worlds.setdefault(row["seed"], []).append(row["selector"])
    lines = []
    for (kind, played), worlds in sorted(kinds.items()):
        schemes: dict[tuple[str, ...], list[int]] = {}
        for seed, names in sorted(worlds.items()):
            schemes.setdefault(tuple(sorted(names)), []).append(seed)
        for names, seeds in schemes.items():
            cells = [*kind, str(played), str(len(names)), ", ".join(map(str, seeds))]
            cells.append(str(len(names) * len(seeds)))
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def write() -> str:
    """Return the report: one table for each data set."""
    parts = ["# Records", "", "Printed by `python scripts/list_runs.py`. A world is a seed.", ""]
    head = (*COLUMNS, "rounds played", "schemes", "worlds", "runs")
    for path in sorted(RESULTS.glob("runs-*.parquet")):
        rows = parquet.read_table(path).to_pylist()
        parts += [f"## {path.stem.removeprefix('runs-')}", ""]
        parts += ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"]
        parts += [*count_runs(rows), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(write(), encoding="utf-8")
