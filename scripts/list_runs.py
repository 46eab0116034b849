"""List the committed records: which cells were trained, in which worlds, for how many rounds.

`python scripts/list_runs.py` writes results/records/runs.md; a test checks that it is current.
`facts()` has words for pages that say what was trained.
"""

import json
from pathlib import Path
from typing import Any

from pyarrow import parquet

RESULTS = Path(__file__).parents[1] / "results"
REPORT = RESULTS / "records" / "runs.md"
CELLS = "Cells of Table III by reading and world"
READINGS = {
    "cifar-cnn": "as printed",
    "cifar-cnn-pool3-ceil": "best-fitting",
    "cifar-cnn-pool3": "chosen first",
}
SPEEDS = "Speed of training on a GPU"
COLUMNS = ("network", "precision", "partition", "update", "rule", "k", "sampler", "of rounds")
PRECISION = "bf16"  # of Table III


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
    return (settings["model"], settings["precision"], partition, update, rule, *sizes)


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


def cells_by_world(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[int, list[int]]]:
    """Return the rounds played of each cell of Table III, by reading, group and world."""
    cells: dict[tuple[str, str, str], dict[int, list[int]]] = {}
    for row in rows:
        model, precision, partition, update, rule, cohort, sampler, _ = describe(row)
        usual = (rule, cohort, sampler, precision) == ("paper", "20", "successive", PRECISION)
        if model in READINGS and usual:
            worlds = cells.setdefault((model, partition, update), {})
            worlds.setdefault(row["seed"], []).append(len(row["accuracy"]))
    return cells


def describe_cells(played: list[int], rounds: int) -> str:
    """Say how many schemes were trained in a world, and how far if not to the end."""
    if not played:
        return "-"
    words = f"{len(played)}"
    if min(played) < rounds:
        words += f" to round {min(played):,}"
    return words


def cell_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the table of cells: a line for each reading and group, a column for each world."""
    cells = cells_by_world(rows)
    worlds = sorted(set().union(*cells.values()))
    rounds = max(row["rounds"] for row in rows)
    head = ["reading", "network", "partition", "update", *(f"world {seed}" for seed in worlds)]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"]
    for model, name in READINGS.items():
        for (own_model, partition, update), own in sorted(cells.items()):
            if own_model == model:
                texts = [describe_cells(own.get(seed, []), rounds) for seed in worlds]
                lines.append("| " + " | ".join([name, model, partition, update, *texts]) + " |")
    return lines


def speed_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the table of speeds: a line for each part, which is trained in lock-step."""
    head = ("network", "precision", "runs in lock-step", "rounds", "seconds", "client-steps/s")
    head = (*head, "GPU", "PyTorch", "commit")
    lines: dict[str, None] = {}
    for row in rows:
        settings = json.loads(row["settings"])
        about = json.loads(row["about"])
        if about.get("gpu") and about.get("seconds") and about.get("client_steps"):
            speed = about["client_steps"] / about["seconds"]
            cells = [settings["model"], settings["precision"], str(about["runs"])]
            cells += [f"{about['timed_rounds']:,}", f"{about['seconds']:,.0f}", f"{speed:,.0f}"]
            cells += [about["gpu"], about["torch"], about["commit"]]
            lines["| " + " | ".join(cells) + " |"] = None
    top = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"]
    return [*top, *sorted(lines)]


def equal_pairs(rows: list[dict[str, Any]]) -> str:
    """Count pairs of E3CS-0 and E3CS-inc that are equal bit by bit while they are one scheme."""
    pairs: dict[str, list[Any]] = {}
    for row in rows:
        if row["selector"] in ("e3cs-0", "e3cs-inc"):
            kind = (*describe(row), row["seed"])
            pairs.setdefault(str(kind), []).append(row["accuracy"][: row["rounds"] // 4 - 1])
    both = [pair for pair in pairs.values() if len(pair) == 2]
    return f"{sum(first == second for first, second in both)} of {len(both)}"


def count_without_commit(rows: list[dict[str, Any]]) -> str:
    """Say how many records do not name the commit of their code, and of which networks."""
    by_network: dict[str, int] = {}
    for row in rows:
        if json.loads(row["about"])["commit"] == "-":
            network = json.loads(row["settings"])["model"]
            by_network[network] = by_network.get(network, 0) + 1
    networks = " and ".join(f"{count} of `{name}`" for name, count in sorted(by_network.items()))
    return f"{sum(by_network.values())} of {len(rows)} records ({networks})"


def facts() -> dict[str, str]:
    """Say where the network as printed was trained, which runs repeat and which lack a commit."""
    rows = parquet.read_table(RESULTS / "runs-cifar10.parquet").to_pylist()
    rounds = max(row["rounds"] for row in rows)
    found = {"equal-pairs": equal_pairs(rows), "without-commit": count_without_commit(rows)}
    for partition in ("iid", "non-iid"):
        worlds = cells_by_world(rows).get(("cifar-cnn", partition, "FedAvg"), {})
        seeds_by_rounds: dict[int, list[str]] = {}
        for seed, played in sorted(worlds.items()):
            seeds_by_rounds.setdefault(min(played), []).append(str(seed))
        parts = []
        for played, seeds in seeds_by_rounds.items():
            words = f"world{'s' * (len(seeds) > 1)} {' and '.join(seeds)}"
            if played < rounds:
                words += f" to round {played:,}"
            elif len(seeds_by_rounds) > 1:
                words += " to the end"
            parts.append(words)
        found[f"printed-{partition}"] = " and ".join(parts) or "no world"
    return found


def write() -> str:
    """Return the report: the cells of Table III, and one table for each data set."""
    parts = ["# Records", "", "Written by `python scripts/list_runs.py`. A world is a seed.", ""]
    head = (*COLUMNS, "rounds played", "schemes", "worlds", "runs")
    rows = parquet.read_table(RESULTS / "runs-cifar10.parquet").to_pylist()
    parts += [f"## {CELLS}", "", *cell_lines(rows), ""]
    parts += [f"## {SPEEDS}", "", *speed_lines(rows), ""]
    for path in sorted(RESULTS.glob("runs-*.parquet")):
        rows = parquet.read_table(path).to_pylist()
        parts += [f"## {path.stem.removeprefix('runs-')}", ""]
        parts += ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"]
        parts += [*count_runs(rows), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(write(), encoding="utf-8")
