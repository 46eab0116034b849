"""What Tables II and III share: the seven schemes under both update rules and partitions, with the paper's values."""

from fedcohort.paper import published
from fedcohort.paper.artefact import Changes, Pool, about, title_of
from fedcohort.paper.setting import whole_setting
from fedcohort.paper.tabulate import LEGEND, long_rows, tables
from fedcohort.reports.report import Report


def report(name: str, task: str, number: str, changes: Changes, pool: Pool) -> Report:
    """Return the table of a task, all of it: what was not run is shown as such."""
    of = whole_setting(task, changes)
    (found,), others = pool.cells(of)
    notes = (
        [LEGEND]
        if of.dataset in published.TABLES
        else [f"Other data than the paper's Table {number}: no published values."]
    )
    title = f"Table {number}" if of.dataset == task else f"As Table {number}, on other data"
    if of.dataset == task and of.rounds != published.TABLES[task]:
        notes.append(
            f"The paper plays {published.TABLES[task]} rounds: final accuracies are not compared."
        )
    numbers = {name: long_rows(of, found)}
    return Report(
        name, f"{title}: {title_of(of)}", tables(of, found), notes + others + about(found), numbers
    )
