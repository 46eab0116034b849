"""From cells to the paper's tables: rows for people, with marks, and rows for machines."""

from collections.abc import Sequence
from math import inf, isnan
from typing import Any

from fedcohort.lab.archive import Result
from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper import published
from fedcohort.paper.cells import Cell, Cells, Key, Quantity, values

Rows = list[dict[str, Any]]
NON_IID = "non-iid"  # the paper's word for `primary-label`
LEGEND = (
    "Mean ± standard deviation over seeds; beside it the paper's value, and in brackets ours less the paper's. "
    "*: the paper's value lies outside mean ± 2 sd. ?: one seed, or a run that has not come that far: the spread is unknown. "
    "never: no run reached it. (2 of 3): of two runs; the third did not get there, or not yet."
)


def quantities(of: ComparisonConfig) -> list[Quantity]:
    """Return the columns of a table: rounds to each target, final accuracy."""
    return [*of.targets, "final"]


def cell_of(of: ComparisonConfig, key: Key, runs: Sequence[Result], quantity: Quantity) -> Cell:
    """Return a cell with the paper's value, if the table is of the paper's data and the value can be compared."""
    selector, partition, aggregation, mu = key
    paper = (
        published.table(of.dataset).get((selector, partition, mu), {})
        if aggregation == "paper"
        else {}
    )
    theirs = published.TABLES.get(of.dataset, 0)
    value = paper.get(quantity) if _same_setting(of) else None
    if of.rounds != theirs and (
        quantity == "final" or selector == "e3cs-inc"
    ):  # which turns at a quarter of the rounds
        value = None
    if of.rounds > theirs and value == inf:  # of never within fewer rounds more rounds say nothing
        value = None
    known = tuple(values(runs, quantity).values())
    return Cell(known, value, _played(of), len(runs) - len(known))


def _played(of: ComparisonConfig) -> float:
    """Return the rounds, if they are fewer than the paper's: what was not reached in these may be reached later."""
    return of.rounds if of.rounds < published.TABLES.get(of.dataset, 0) else inf


def _same_setting(of: ComparisonConfig) -> bool:
    return (of.clients, of.cohort, of.server_rate) == (100, 20, 1.0)


def tables(of: ComparisonConfig, found: Cells) -> dict[str, Rows]:
    """Return one table per partition and update rule, one row per scheme, two columns per quantity."""
    made: dict[str, Rows] = {}
    for key, runs in found.items():
        selector, partition, aggregation, mu = key
        title = f"{label(partition)}, {update(mu)}" + (
            "" if aggregation == "paper" else f", {aggregation}"
        )
        row: dict[str, Any] = {
            "scheme": published.SCHEMES.get(selector, selector),
            "runs": len(runs),
        }
        for quantity in quantities(of):
            cell = cell_of(of, key, runs, quantity)
            row[heading(quantity)] = ours(cell, runs, quantity)
            if cell.paper is not None:
                row[f"paper {heading(quantity)}"] = theirs(cell, quantity)
        made.setdefault(title, []).append(row)
    for (
        title,
        rows,
    ) in (
        made.items()
    ):  # one column for all: the paper may have a value for some of the schemes alone
        columns = max(rows, key=len)
        made[title] = [{name: row.get(name, "-") for name in columns} for row in rows]
    return made


def long_rows(of: ComparisonConfig, found: Cells) -> Rows:
    """Return one row per cell and quantity, in numbers."""
    rows = []
    for key, runs in found.items():
        for quantity in quantities(of):
            cell = cell_of(of, key, runs, quantity)
            rows.append(
                dict(zip(("selector", "partition", "aggregation", "mu"), key, strict=True))
                | in_numbers(cell, runs, quantity)
                | {
                    "paper": cell.paper,
                    "difference": cell.difference,
                    "paper outside mean ± 2 sd": cell.outside,
                }
            )
    return rows


def ours_alone(runs: Sequence[Result], quantity: Quantity) -> Cell:
    """Return a cell without the paper's side."""
    known = tuple(values(runs, quantity).values())
    return Cell(known, None, _played(runs[0].config) if runs else inf, len(runs) - len(known))


def columns(of: ComparisonConfig, runs: Sequence[Result]) -> dict[str, Any]:
    """Return how many runs there are, and our side of each quantity."""
    return {"runs": len(runs)} | {
        heading(one): ours(ours_alone(runs, one), runs, one) for one in quantities(of)
    }


def in_numbers(cell: Cell, runs: Sequence[Result], quantity: Quantity) -> dict[str, Any]:
    """Return our side of a cell in numbers."""
    said = {"pending": cell.pending, "reached": cell.reached.size, "mean": cell.mean, "sd": cell.sd}
    return {"quantity": heading(quantity), "runs": len(runs)} | said


def heading(quantity: Quantity) -> str:
    """Return a column's name: @45 for the first round at 45 %."""
    return quantity if isinstance(quantity, str) else f"@{100 * quantity:g}"


def label(partition: str) -> str:
    """Return a partition in the paper's words."""
    return NON_IID if partition == "primary-label" else partition


def partition_of(word: str) -> str:
    """Return the partition that the paper's word means; a name of ours means itself."""
    return "primary-label" if word == NON_IID else word


def update(mu: float) -> str:
    """Return an update rule in the paper's words."""
    return published.UPDATES.get(mu, f"FedProx with mu {mu:g}")


def ours(cell: Cell, runs: Sequence[Result], quantity: Quantity) -> str:
    """Return our side of a cell."""
    if not runs:
        return "not run"
    if not cell.values:
        return (
            f"not by {max(len(run.accuracy) for run in runs)}"
            if quantity != "final"
            else "unfinished"
        )
    said = cell.reached.size or len(
        cell.values
    )  # of those that got there, or if none did, of those that never will
    some = "" if said == len(runs) else f" ({said} of {len(runs)})"
    if not cell.reached.size:
        return ("never" if cell.played == inf else f"not in {cell.played:g}") + some
    spread = "" if isnan(cell.sd) else f" ± {amount(cell.sd, quantity)}"
    return f"{amount(cell.mean, quantity)}{spread}{some}"


def theirs(cell: Cell, quantity: Quantity) -> str:
    """Return the paper's side of a cell: value, difference, mark."""
    paper = cell.paper if cell.paper is not None else inf
    value = "never" if paper == inf else amount(paper, quantity)
    gap = (
        ""
        if isnan(cell.difference)
        else f" ({'+' if cell.difference >= 0 else '−'}{amount(abs(cell.difference), quantity)})"
    )
    unsure = len(cell.values) == 1 or cell.reached.size == 1 or (cell.values and cell.pending)
    return value + gap + {True: "*", False: "", None: "?" if unsure else ""}[cell.outside]


def amount(number: float, quantity: Quantity) -> str:
    """Return rounds as whole numbers, accuracies in percent."""
    return f"{100 * number:.2f}" if isinstance(quantity, str) else f"{number:.0f}"
