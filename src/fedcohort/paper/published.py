"""The paper's two tables of results as data: first round at an accuracy, infinite where never reached, and final accuracy."""

import csv
from functools import cache
from importlib.resources import files
from math import inf

SCHEMES = {
    name.lower(): name
    for name in ("E3CS-0", "E3CS-0.5", "E3CS-0.8", "E3CS-inc", "FedCS", "Random", "pow-d")
}
UPDATES = {0.0: "FedAvg", 0.5: "FedProx"}
PARTITIONS = {"iid": "iid", "primary-label": "noniid"}
TABLES = {"emnist-letters": 400, "cifar10": 2500}  # data set: rounds

Key = tuple[str, str, float]  # selector, partition, mu


@cache
def table(dataset: str) -> dict[Key, dict[float | str, float]]:
    """Return by selector, partition and mu: {target: first round, "final": accuracy in [0, 1]}; empty for other data sets."""
    if dataset not in TABLES:
        return {}
    text = files("fedcohort.paper").joinpath("tables", f"{dataset}.csv").read_text()
    rows = {
        (row["selection"].lower(), row["update"]): row for row in csv.DictReader(text.splitlines())
    }
    return {
        (selector, partition, mu): _cell(rows[selector, update], ending)
        for selector in SCHEMES
        for mu, update in UPDATES.items()
        for partition, ending in PARTITIONS.items()
    }


def _cell(row: dict[str, str], ending: str) -> dict[float | str, float]:
    cell: dict[float | str, float] = {}
    for name, text in row.items():
        if name.startswith("rounds_to_") and name.endswith(f"_{ending}"):
            cell[int(name.split("_")[2]) / 100] = float(text) if text else inf
        elif name == f"final_accuracy_{ending}":
            cell["final"] = float(text) / 100
    return cell
