"""Figure 6: test accuracy over rounds on CIFAR-10, from the runs of table3."""

from fedcohort.paper import curves
from fedcohort.paper.artefact import Changes, Pool
from fedcohort.paper.table3 import TASK
from fedcohort.paper.table3 import settings as settings
from fedcohort.reports.report import Report


def report(changes: Changes, pool: Pool) -> Report:
    """Return the curves with the paper's table values as marks."""
    return curves.report("figure6", "Figure 6", TASK, changes, pool)
