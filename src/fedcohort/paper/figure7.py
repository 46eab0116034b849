"""Figure 7: accuracy over rounds for cohorts of k = 10, 20 and 30, FedAvg, both tasks; k = 20 is from the tables' runs."""

from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper import published
from fedcohort.paper.artefact import Changes, Pool, about
from fedcohort.paper.curves import Panels, by_kind
from fedcohort.paper.setting import COHORTS, SUBSETS, TASKS, setting
from fedcohort.paper.tabulate import Rows, columns, label, long_rows
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.curves import accuracy_over_rounds
from fedcohort.reports.report import Report


def settings(changes: Changes) -> list[ComparisonConfig]:
    """Return what is trained: seven schemes under FedAvg on both tasks, for each k; once, if both are played alike."""
    made = [
        setting(task, changes, cohort=k, mus=(0.0,)) for task in reversed(TASKS) for k in COHORTS
    ]
    return list({(of.dataset, of.rounds, of.cohort): of for of in reversed(made) if of}.values())[
        ::-1
    ]


def report(changes: Changes, pool: Pool) -> Report:
    """Return one panel per task, partition and k, and rounds and final accuracy by k."""
    panels: Panels = {}
    tables: dict[str, Rows] = {}
    numbers: Rows = []
    asked = settings({name: value for name, value in changes.items() if name not in SUBSETS})
    by_cohort, notes = pool.cells(*asked)
    for of, found in zip(asked, by_cohort, strict=True):
        if not any(found.values()):
            notes.append(f"Not run: {of.dataset}, k={of.cohort}, T={of.rounds}.")
            continue
        for kind, drawn in by_kind(found).items():
            if drawn:
                panels[f"{of.dataset}, T={of.rounds}, {kind.split(',')[0]}, k = {of.cohort}"] = (
                    drawn
                )
        for (selector, partition, _, _), runs in found.items():
            row = {"scheme": published.SCHEMES.get(selector, selector), "k": of.cohort} | columns(
                of, runs
            )
            tables.setdefault(f"{of.dataset}, T={of.rounds}, {label(partition)}", []).append(row)
        numbers += [
            {"dataset": of.dataset, "rounds": of.rounds, "k": of.cohort} | row
            for row in long_rows(of, found)
        ]
        notes += [line for line in about(found) if line not in notes]

    figures: dict[str, Chart] = {}
    if panels:
        in_order = dict(sorted(panels.items()))
        figures["figure7"] = accuracy_over_rounds(in_order, columns=len(COHORTS))
    return Report(
        "figure7",
        "Figure 7: cohorts of 10, 20 and 30, FedAvg",
        tables,
        notes,
        {"figure7": numbers},
        figures,
    )
