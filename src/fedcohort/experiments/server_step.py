"""Ablation (a): how much of the speed-up over Random is the size of the server's step?

The paper's rule moves the model by the share of all clients that arrived: 0.18 of the average update under FedCS, 0.095 under
Random. `normalised` moves by the whole average update; `equalised` by the average update times Random's mean share, for all
schemes alike. What is left of a scheme's speed-up with equal steps is owed to whom it asks, not to how far it moves.
"""

from math import log
from typing import Any

from fedcohort.experiments import published
from fedcohort.experiments.artefact import Changes, Pool, about, title_of
from fedcohort.experiments.cells import Cell, Quantity, values
from fedcohort.experiments.comparison import Comparison
from fedcohort.experiments.paper import SUBSETS, setting
from fedcohort.experiments.results import Result
from fedcohort.experiments.tabulate import Rows, heading, label, ours, quantities
from fedcohort.reports.report import Report
from fedcohort.statistics import Estimate, estimate
from fedcohort.world.volatility import class_rates

TASK = "cifar10"
SELECTORS = ("random", "fedcs", "e3cs-0.5", "e3cs-inc")
RULES = ("paper", "normalised", "equalised")


def mean_share(of: Comparison) -> float:
    """Return the mean share of all clients that arrives under Random: k/K times the mean rate; 0.095 in the paper's setting."""
    return of.cohort / of.clients * float(class_rates(of.clients, of.rates).mean())


def by_rule(changes: Changes) -> dict[str, Comparison]:
    """Return the setting of each rule; that of the paper is part of table3."""
    base = setting(TASK, changes, selectors=SELECTORS, mus=(0.0,))
    if base is None:
        return {}
    own: dict[str, dict[str, Any]] = {
        "paper": {},
        "normalised": {"aggregations": ("normalised",)},
        "equalised": {"aggregations": ("normalised",), "server_rate": mean_share(base)},
    }
    made = {rule: setting(TASK, changes, selectors=SELECTORS, mus=(0.0,), **own[rule]) for rule in RULES}
    return {rule: of for rule, of in made.items() if of}


def settings(changes: Changes) -> list[Comparison]:
    """Return what is trained."""
    return list(by_rule(changes).values())


def report(changes: Changes, pool: Pool) -> Report:
    """Return rounds and final accuracy by rule, and what is left of each speed-up over Random."""
    tables: dict[str, Rows] = {}
    numbers: Rows = []
    runs: dict[tuple[str, str, str], list[Result]] = {}
    asked = by_rule({name: value for name, value in changes.items() if name not in SUBSETS})
    notes: dict[str, None] = {}
    for rule, of in asked.items():
        found = pool.cells(of)
        notes |= dict.fromkeys(about(found))
        for (selector, partition, _, _), here in found.items():
            runs[rule, partition, selector] = here
            row = {"scheme": published.SCHEMES[selector], "runs": len(here)}
            for quantity in quantities(of):
                row |= {heading(quantity): ours(Cell(tuple(values(here, quantity).values())), here, quantity)}
            tables.setdefault(f"{label(partition)}, {rule}", []).append(row)
            numbers.append({"partition": label(partition), "rule": rule} | row)
    of = asked["paper"]
    for partition in of.partitions:
        rows = [speed_up(runs, partition, selector, of.targets[0]) for selector in SELECTORS if selector != "random"]
        tables[f"speed-up over Random to {heading(of.targets[0])}, {label(partition)}"] = rows
    explained = f"equalised: every scheme's average update times {mean_share(of):.3g}, Random's mean share of arrived clients."
    left = (
        "left: log of the speed-up with equal steps over log of the speed-up with the paper's rule; 0: all of it was the step."
    )
    title = f"Server step: {title_of(of)}, FedAvg"
    return Report("server_step", title, tables, [explained, left, *notes], {"server_step": numbers})


def speed_up(runs: dict[tuple[str, str, str], list[Result]], partition: str, selector: str, target: Quantity) -> dict[str, Any]:
    """Return rounds of Random over rounds of a scheme under each rule, paired by seed, and the part left with equal steps."""
    row: dict[str, Any] = {"scheme": published.SCHEMES[selector]}
    logs: dict[str, Estimate] = {}
    for rule in RULES:
        logs[rule] = ratio(runs[rule, partition, "random"], runs[rule, partition, selector], target)
        row[rule] = logs[rule].as_ratio()
    paper, equal = logs["paper"].mean, logs["equalised"].mean
    row["left"] = f"{100 * equal / paper:.0f} %" if paper == paper and equal == equal and abs(paper) > log(1.05) else "-"
    return row


def ratio(slow: list[Result], fast: list[Result], target: Quantity) -> Estimate:
    """Return the mean over seeds of the log of rounds over rounds, of the seeds in which both got there."""
    first, second = values(slow, target), values(fast, target)
    both = [seed for seed in first if seed in second and max(first[seed], second[seed]) < float("inf")]
    return estimate([log(first[seed] / second[seed]) for seed in both])
