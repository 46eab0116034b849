"""Figure 7: accuracy over rounds for cohorts of k = 10, 20 and 30 clients, under FedAvg.

The runs with k = 20 are those of Tables II and III.
"""

from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper.cells import Cells
from fedcohort.paper.curves import Panels, longest_runs
from fedcohort.paper.labels import describe_origin, partition_label, scheme_label
from fedcohort.paper.results import Results
from fedcohort.paper.setting import COHORTS, Overrides, task_config, without_subsets
from fedcohort.paper.tables import Rows, long_rows, our_columns
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.curves import accuracy_over_rounds
from fedcohort.reports.report import Report

TASK_ORDER = ("cifar10", "emnist-letters")


def configs(overrides: Overrides) -> list[ComparisonConfig]:
    """Return what is trained: seven schemes under FedAvg on both tasks, for each k.

    Two tasks that overrides make equal are trained once, with the targets of the first.
    """
    different: dict[tuple[str, int, int], ComparisonConfig] = {}
    for task in TASK_ORDER:
        for cohort in COHORTS:
            config = task_config(task, overrides, cohort=cohort, mus=(0.0,))
            if config is not None:
                key = (config.dataset, config.rounds, config.cohort)
                different.setdefault(key, config)
    return list(different.values())


def report(results: Results, overrides: Overrides) -> Report:
    """Report one panel per task, partition and k, and rounds and final accuracy by k."""
    wanted = configs(without_subsets(overrides))
    tables_of_cells, notes = results.cells(*wanted)

    panels: Panels = {}
    tables: dict[str, Rows] = {}
    numbers: Rows = []
    for config, cells in zip(wanted, tables_of_cells, strict=True):
        if not any(cells.values()):
            notes.append(f"Not run: {config.dataset}, k={config.cohort}, T={config.rounds}.")
            continue
        _add_rows(config, cells, panels, tables)
        run_with = {"dataset": config.dataset, "rounds": config.rounds, "k": config.cohort}
        for row in long_rows(config, cells):
            numbers.append(run_with | row)
        for line in describe_origin(cells):
            if line not in notes:
                notes.append(line)

    figures: dict[str, Chart] = {}
    if panels:
        in_order = dict(sorted(panels.items()))
        figures["figure7"] = accuracy_over_rounds(in_order, columns=len(COHORTS))

    title = "Figure 7: cohorts of 10, 20 and 30, FedAvg"
    return Report("figure7", title, tables, notes, {"figure7": numbers}, figures)


def _add_rows(
    config: ComparisonConfig, cells: Cells, panels: Panels, tables: dict[str, Rows]
) -> None:
    """Add the curves and the table rows of one cohort size."""
    for (selector, partition, _, _), runs in cells.items():
        played = f"{config.dataset}, T={config.rounds}, {partition_label(partition)}"
        if runs:
            panel = panels.setdefault(f"{played}, k = {config.cohort}", {})
            panel[selector] = longest_runs(runs)
        row = {"scheme": scheme_label(selector), "k": config.cohort}
        tables.setdefault(played, []).append(row | our_columns(config, runs))
