"""Table II: first rounds to reach accuracies and final accuracy on EMNIST-Letter."""

from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper import table
from fedcohort.paper.artefact import Changes, Pool
from fedcohort.paper.setting import setting
from fedcohort.reports.report import Report

TASK = "emnist-letters"


def settings(changes: Changes) -> list[ComparisonConfig]:
    """Return what is trained: seven schemes, FedAvg and FedProx, iid and non-iid."""
    return [of for of in [setting(TASK, changes)] if of]


def report(changes: Changes, pool: Pool) -> Report:
    """Return the table beside the paper's."""
    return table.report("table2", TASK, "II", changes, pool)
