"""Figure 5: test accuracy over rounds on EMNIST-Letter, from the runs of table2."""

from fedcohort.paper import curves
from fedcohort.paper.artefact import Changes, Pool
from fedcohort.paper.table2 import TASK
from fedcohort.paper.table2 import settings as settings
from fedcohort.reports.report import Report


def report(changes: Changes, pool: Pool) -> Report:
    """Return the curves with the paper's table values as marks."""
    return curves.report("figure5", "Figure 5", TASK, changes, pool)
