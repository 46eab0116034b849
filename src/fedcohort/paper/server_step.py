"""Ablation (a): how much of the speed-up over Random is the size of the server's step?

The paper's rule moves the model by the share of all clients that arrived: 0.18 of the average update under FedCS, 0.095 under
Random. `normalised` moves by the whole average update; `equalised` by the average update times Random's mean share, for all
schemes alike. What is left of a scheme's speed-up with equal steps is owed to whom it asks, not to how far it moves.
"""

from collections.abc import Mapping
from math import inf, isnan, log, nan
from typing import Any

from fedcohort.lab.archive import Result
from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper import published
from fedcohort.paper.artefact import Changes, Pool, about, title_of
from fedcohort.paper.cells import Quantity, value
from fedcohort.paper.setting import SUBSETS, setting
from fedcohort.paper.tabulate import Rows, columns, heading, label, long_rows
from fedcohort.reports.report import Report
from fedcohort.statistics import estimate
from fedcohort.world.classes import class_rates

TASK = "cifar10"
SELECTORS = ("random", "fedcs", "e3cs-0.5", "e3cs-inc")
RULES = ("paper", "normalised", "equalised")


def mean_share(of: ComparisonConfig) -> float:
    """Return the mean share of all clients that arrives under Random: k/K times the mean rate; 0.095 in the paper's setting."""
    return of.cohort / of.clients * float(class_rates(of.clients, of.rates).mean())


def by_rule(changes: Changes) -> dict[str, ComparisonConfig]:
    """Return the setting of each rule; that of the paper is part of table3."""
    base = setting(TASK, changes, selectors=SELECTORS, mus=(0.0,))
    if base is None:
        return {}
    own: dict[str, dict[str, Any]] = {
        "paper": {},
        "normalised": {"aggregations": ("normalised",)},
        "equalised": {"aggregations": ("normalised",), "server_rate": mean_share(base)},
    }
    made = {
        rule: setting(TASK, changes, selectors=SELECTORS, mus=(0.0,), **own[rule]) for rule in RULES
    }
    return {rule: of for rule, of in made.items() if of}


def settings(changes: Changes) -> list[ComparisonConfig]:
    """Return what is trained."""
    return list(by_rule(changes).values())


def report(changes: Changes, pool: Pool) -> Report:
    """Return rounds and final accuracy by rule, and what is left of each speed-up over Random."""
    tables: dict[str, Rows] = {}
    numbers: Rows = []
    runs: dict[tuple[str, str, str], list[Result]] = {}
    asked = by_rule({name: value for name, value in changes.items() if name not in SUBSETS})
    by_rules, others = pool.cells(*asked.values())
    notes = dict.fromkeys(others)
    for (rule, of), found in zip(asked.items(), by_rules, strict=True):
        notes |= dict.fromkeys(about(found))
        for (selector, partition, _, _), here in found.items():
            runs[rule, partition, selector] = here
            row = {"scheme": published.SCHEMES[selector]} | columns(of, here)
            tables.setdefault(f"{label(partition)}, {rule}", []).append(row)
        numbers += [{"rule": rule} | row for row in long_rows(of, found)]
    of = asked["paper"]
    ratios: Rows = []
    for partition in of.partitions:
        logs = {
            selector: {
                rule: ratios_of(runs, rule, partition, selector, of.targets[0]) for rule in RULES
            }
            for selector in SELECTORS
            if selector != "random"
        }
        title = f"speed-up over Random to {heading(of.targets[0])}, {label(partition)}"
        tables[title] = [speed_up(selector, rules) for selector, rules in logs.items()]
        ratios += [
            {
                "partition": partition,
                "selector": selector,
                "rule": rule,
                "seed": seed,
                "log ratio": one,
            }
            for selector, rules in logs.items()
            for rule, by_seed in rules.items()
            for seed, one in by_seed.items()
        ]
    explained = f"equalised: every scheme's average update times {mean_share(of):.3g}, Random's mean share of arrived clients."
    left = "left: log of the speed-up with equal steps over log of the speed-up with the paper's rule; 0: all of it was the step."
    some = (
        "Speed-ups are geometric means over the seeds that all rules have, ± standard error. "
        "(2 of 3): in the third one of both did not get there, or not yet."
    )
    title = f"Server step: {title_of(of)}, FedAvg"
    files = {"server_step": numbers, "speed_up": ratios}
    return Report("server_step", title, tables, [explained, some, left, *notes], files)


def ratios_of(
    runs: Mapping[tuple[str, str, str], list[Result]],
    rule: str,
    partition: str,
    selector: str,
    target: Quantity,
) -> dict[int, float]:
    """Return by seed the log of Random's rounds over a scheme's; nan where one of them did not get there, or not yet."""
    slow, fast = runs[rule, partition, "random"], runs[rule, partition, selector]
    first, second = (
        {run.config.first_seed: value(run, target) for run in found} for found in (slow, fast)
    )
    both = {seed: (first[seed], second[seed]) for seed in first if seed in second}
    return {
        seed: log(one / other) if max(one, other) < inf else nan
        for seed, (one, other) in both.items()
    }


def speed_up(selector: str, rules: Mapping[str, Mapping[int, float]]) -> dict[str, Any]:
    """Return a scheme's speed-up under each rule, of the seeds that all have, and the part left with equal steps."""
    row: dict[str, Any] = {"scheme": published.SCHEMES[selector]}
    shared = (
        set.intersection(*(set(found) for found in rules.values() if found))
        if any(rules.values())
        else set()
    )
    rules = {
        rule: {seed: one for seed, one in found.items() if seed in shared}
        for rule, found in rules.items()
    }
    for rule, found in rules.items():
        there = estimate([one for one in found.values() if not isnan(one)])
        row[rule] = there.as_ratio() + (
            f" ({there.runs} of {len(found)})" if there.runs < len(found) else ""
        )
    paper, equal = rules["paper"], rules["equalised"]
    both = [seed for seed in paper if not isnan(paper[seed]) and not isnan(equal.get(seed, nan))]
    whole = estimate([paper[seed] for seed in both]).mean
    part = estimate([equal[seed] for seed in both]).mean
    row["left"] = f"{100 * part / whole:.0f} %" if both and whole > log(1.05) else "-"
    return row
