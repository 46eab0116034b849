"""How the cells of Tables II and III, and of any other table, are written."""

from collections.abc import Sequence
from math import inf, isnan
from typing import Any

from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import Result
from fedcohort.paper import published
from fedcohort.paper.cells import Cell, CellKey, Cells, Quantity, values_by_seed
from fedcohort.paper.labels import (
    format_amount,
    heading,
    partition_label,
    rounded,
    scheme_label,
    update_label,
)
from fedcohort.paper.setting import (
    INDEPENDENT_DRAWS,
    PAPER,
)

Rows = list[dict[str, Any]]
PARTITIONS = (*PAPER["partitions"], INDEPENDENT_DRAWS)


def make_tables(config: ComparisonConfig, cells: Cells) -> dict[str, Rows]:
    """Return one table per partition and update rule, with one row per scheme.

    Each quantity has a column with our value, and one with the paper's where it has any.
    """
    tables: dict[str, Rows] = {}
    for key, runs in cells.items():
        selector, partition, aggregation, mu = key
        title = f"{partition_label(partition)}, {update_label(mu)}"
        if aggregation != "paper":
            title += f", {aggregation}"
        row: dict[str, Any] = {"scheme": scheme_label(selector), "runs": len(runs)}
        for quantity in quantities(config):
            cell = paper_cell(config, key, runs, quantity)
            row[heading(quantity)] = our_text(cell, runs, quantity)
            if cell.paper is not None:
                row[f"paper {heading(quantity)}"] = paper_text(cell, quantity)
        tables.setdefault(title, []).append(row)

    for title, rows in tables.items():
        tables[title] = _with_equal_columns(rows)
    return tables


def _with_equal_columns(rows: Rows) -> Rows:
    """Fill up rows: the paper may have comparable values for some of the schemes only."""
    columns = max(rows, key=len)
    filled = []
    for row in rows:
        filled.append({column: row.get(column, "-") for column in columns})
    return filled


def long_rows(config: ComparisonConfig, cells: Cells) -> Rows:
    """Return one row of numbers per cell and quantity."""
    rows = []
    for key, runs in cells.items():
        for quantity in quantities(config):
            cell = paper_cell(config, key, runs, quantity)
            row: dict[str, Any] = {
                "selector": key[0],
                "partition": key[1],
                "aggregation": key[2],
                "mu": key[3],
            }
            row |= our_numbers(cell, runs, quantity)
            row |= {
                "paper": cell.paper,
                "difference": cell.difference,
                "paper outside 95 % prediction interval": cell.outside,
            }
            rows.append(row)
    return rows


def quantities(config: ComparisonConfig) -> list[Quantity]:
    """Return the quantities of a table: the round at each target, and the final accuracy."""
    return [*config.targets, "final"]


def paper_cell(
    config: ComparisonConfig, key: CellKey, runs: Sequence[Result], quantity: Quantity
) -> Cell:
    """Return a cell with the paper's value, where the two can be compared."""
    values = values_by_seed(runs, quantity)
    return Cell(
        tuple(values.values()),
        paper=_comparable_value(config, key, quantity),
        rounds_played=_rounds_if_fewer(config),
        pending=len(runs) - len(values),
        seeds=tuple(values),
    )


def our_cell(runs: Sequence[Result], quantity: Quantity) -> Cell:
    """Return a cell without the paper's value."""
    values = tuple(values_by_seed(runs, quantity).values())
    rounds_played = inf
    if runs:
        rounds_played = _rounds_if_fewer(runs[0].config)
    return Cell(values, rounds_played=rounds_played, pending=len(runs) - len(values))


def _comparable_value(config: ComparisonConfig, key: CellKey, quantity: Quantity) -> float | None:
    """Return the paper's value; None if it has none or played something else."""
    selector, partition, aggregation, mu = key
    if aggregation != "paper":
        return None
    if (config.clients, config.cohort, config.server_rate) != (100, 20, 1.0):
        return None
    if partition == INDEPENDENT_DRAWS:
        partition = "primary-label"  # another reading of the paper's non-iid split
    value = published.table(config.dataset).get((selector, partition, mu), {}).get(quantity)
    paper_rounds = published.ROUNDS.get(config.dataset, 0)
    if config.rounds != paper_rounds:
        if quantity == "final":
            return None
        if selector == "e3cs-inc":  # it changes its quota at a quarter of the rounds
            return None
    if config.rounds > paper_rounds and value == inf:
        # We played longer than the paper did, so its "never" cannot be compared.
        return None
    return value


def _rounds_if_fewer(config: ComparisonConfig) -> float:
    """Return the number of rounds if it is below the paper's, otherwise infinity."""
    if config.rounds < published.ROUNDS.get(config.dataset, 0):
        return config.rounds
    return inf


def our_columns(config: ComparisonConfig, runs: Sequence[Result]) -> dict[str, Any]:
    """Return the number of runs and our value of each quantity, as text."""
    columns: dict[str, Any] = {"runs": len(runs)}
    for quantity in quantities(config):
        columns[heading(quantity)] = our_text(our_cell(runs, quantity), runs, quantity)
    return columns


def our_numbers(cell: Cell, runs: Sequence[Result], quantity: Quantity) -> dict[str, Any]:
    """Return our side of a cell in numbers."""
    return {
        "quantity": heading(quantity),
        "runs": len(runs),
        "pending": cell.pending,
        "reached": cell.reached.size,
        "mean": cell.mean,
        "sd": cell.sd,
    }


def our_text(cell: Cell, runs: Sequence[Result], quantity: Quantity) -> str:
    """Return our side of a cell as text, such as "110 ± 10 (3 of 4)"."""
    if not runs:
        return "not run"
    if not cell.values and quantity == "final":
        return "unfinished"
    if not cell.values:
        return f"not by {max(len(run.accuracy) for run in runs)}"

    # Count the runs that reached it or, if none did, the runs that never will.
    counted_runs = cell.reached.size or len(cell.values)
    some = ""
    if counted_runs < len(runs):
        some = f" ({counted_runs} of {len(runs)})"

    if not cell.reached.size and cell.rounds_played == inf:
        return f"never{some}"
    if not cell.reached.size:
        return f"not in {cell.rounds_played:g}{some}"
    spread = ""
    if not isnan(cell.sd):
        spread = f" ± {format_amount(cell.sd, quantity)}"
    return f"{format_amount(cell.mean, quantity)}{spread}{some}"


def paper_text(cell: Cell, quantity: Quantity) -> str:
    """Return the paper's side of a cell as text: value, difference and mark."""
    if cell.paper is None or cell.paper == inf:
        value = "never"
    else:
        value = format_amount(cell.paper, quantity)

    gap = ""
    if not isnan(cell.difference):
        assert cell.paper is not None
        # Of the numbers as shown, so that a reader who subtracts them finds the same.
        difference = rounded(cell.mean, quantity) - cell.paper
        sign = "+" if difference >= 0 else "−"
        gap = f" ({sign}{format_amount(abs(difference), quantity)})"
    return f"{value}{gap}{_mark(cell)}"


def _mark(cell: Cell) -> str:
    """Return * if the paper's value is outside the spread, ? if the spread is unknown."""
    if cell.outside:
        return "*"
    one_value = len(cell.values) == 1 or cell.reached.size == 1
    some_pending = cell.values and cell.pending
    if cell.outside is None and (one_value or some_pending):
        return "?"
    return ""
