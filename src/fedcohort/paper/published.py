"""The paper's two tables of results: first rounds at an accuracy, and final accuracies.

A first round is infinite where the paper's run never reached the accuracy.
"""

import csv
from functools import cache
from importlib.resources import files
from math import inf

SCHEMES = {
    "e3cs-0": "E3CS-0",
    "e3cs-0.5": "E3CS-0.5",
    "e3cs-0.8": "E3CS-0.8",
    "e3cs-inc": "E3CS-inc",
    "fedcs": "FedCS",
    "random": "Random",
    "pow-d": "pow-d",
}
UPDATES = {0.0: "FedAvg", 0.5: "FedProx"}  # by mu
PARTITIONS = {"iid": "iid", "primary-label": "noniid"}  # as the columns of the tables end
ROUNDS = {"emnist-letters": 400, "cifar10": 2500}  # played by the paper, by data set

Key = tuple[str, str, float]  # selector, partition, mu
Values = dict[float | str, float]


@cache
def table(dataset: str) -> dict[Key, Values]:
    """Return the paper's table of a data set.

    Args:
        dataset: Name of a data set.

    Returns:
        By selector, partition and mu: the first round at each target accuracy, and under
        "final" the accuracy in the last round, in [0, 1]. Empty if the paper has no table
        of this data set.
    """
    if dataset not in ROUNDS:
        return {}
    text = files("fedcohort.paper").joinpath("tables", f"{dataset}.csv").read_text()
    rows = {}
    for row in csv.DictReader(text.splitlines()):
        rows[row["selection"].lower(), row["update"]] = row

    cells: dict[Key, Values] = {}
    for selector in SCHEMES:
        for mu, update in UPDATES.items():
            for partition, ending in PARTITIONS.items():
                cells[selector, partition, mu] = _values(rows[selector, update], ending)
    return cells


def _values(row: dict[str, str], ending: str) -> Values:
    values: Values = {}
    for column, text in row.items():
        if column.startswith("rounds_to_") and column.endswith(f"_{ending}"):
            target = int(column.split("_")[2]) / 100
            values[target] = float(text or inf)
        elif column == f"final_accuracy_{ending}":
            values["final"] = float(text) / 100
    return values
