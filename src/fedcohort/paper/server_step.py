"""Ablation (a): how much of the speed-up over Random is the size of the server's step?

The paper's rule moves the model by the share of all clients that arrived: 0.18 of the average
update under FedCS, 0.095 under Random. `normalised` moves it by the whole average update.
`equalised` moves it, for all schemes alike, by the average update times Random's mean share.
What remains of a scheme's speed-up with equal steps comes from which clients it asks, not
from how far the model moves.
"""

from collections.abc import Mapping
from math import inf, isnan, log, nan
from typing import Any

from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import Result
from fedcohort.paper.cells import Quantity, run_value
from fedcohort.paper.labels import (
    describe_config,
    describe_origin,
    heading,
    partition_label,
    scheme_label,
)
from fedcohort.paper.results import Results
from fedcohort.paper.setting import Overrides, task_config, without_subsets
from fedcohort.paper.tables import Rows, long_rows, our_columns
from fedcohort.reports.report import Report
from fedcohort.statistics import estimate
from fedcohort.world.classes import class_rates

TASK = "cifar10"
SELECTORS = ("random", "fedcs", "e3cs-0.5", "e3cs-inc")
RULES = ("paper", "normalised", "equalised")
LogRatios = Mapping[int, float]  # log of Random's rounds over a scheme's, by seed


def mean_share(config: ComparisonConfig) -> float:
    """Return the mean share of all clients that arrives under Random.

    It is k/K times the mean success rate: 0.095 in the paper's setting.
    """
    rates = class_rates(config.clients, config.rates)
    return config.cohort / config.clients * float(rates.mean())


def configs_by_rule(overrides: Overrides) -> dict[str, ComparisonConfig]:
    """Return the config of each rule; the runs of the paper's rule are part of Table III."""
    paper = task_config(TASK, overrides, selectors=SELECTORS, mus=(0.0,))
    if paper is None:
        return {}
    fields: dict[str, dict[str, Any]] = {
        "paper": {},
        "normalised": {"aggregations": ("normalised",)},
        "equalised": {"aggregations": ("normalised",), "server_rate": mean_share(paper)},
    }
    configs = {}
    for rule in RULES:
        config = task_config(TASK, overrides, selectors=SELECTORS, mus=(0.0,), **fields[rule])
        if config is not None:
            configs[rule] = config
    return configs


def configs(overrides: Overrides) -> list[ComparisonConfig]:
    """Return what is trained."""
    return list(configs_by_rule(overrides).values())


def report(results: Results, overrides: Overrides) -> Report:
    """Report rounds and accuracy by rule, and what is left of each speed-up over Random."""
    wanted = configs_by_rule(without_subsets(overrides))
    cells_by_rule, left_out = results.cells(*wanted.values())

    tables: dict[str, Rows] = {}
    numbers: Rows = []
    runs: dict[tuple[str, str, str], list[Result]] = {}
    notes = dict.fromkeys(left_out)
    for (rule, config), cells in zip(wanted.items(), cells_by_rule, strict=True):
        notes |= dict.fromkeys(describe_origin(cells))
        for (selector, partition, _, _), cell_runs in cells.items():
            runs[rule, partition, selector] = cell_runs
            row = {"scheme": scheme_label(selector)} | our_columns(config, cell_runs)
            tables.setdefault(f"{partition_label(partition)}, {rule}", []).append(row)
        for row in long_rows(config, cells):
            numbers.append({"rule": rule} | row)

    config = wanted["paper"]
    target = config.targets[0]
    ratio_rows: Rows = []
    for partition in config.partitions:
        title = f"speed-up over Random to {heading(target)}, {partition_label(partition)}"
        tables[title] = []
        for selector in SELECTORS[1:]:
            by_rule = {}
            for rule in RULES:
                by_rule[rule] = log_ratios(
                    slow=runs[rule, partition, "random"],
                    fast=runs[rule, partition, selector],
                    target=target,
                )
            tables[title].append(speed_up_row(selector, by_rule))
            ratio_rows += _ratio_rows(partition, selector, by_rule)

    legend = [
        f"equalised: every scheme moves by its average update times {mean_share(config):.3g}, "
        "Random's mean share of arrived clients.",
        "Speed-ups are geometric means over the seeds that all rules have, ± standard error. "
        "(2 of 3): in the third seed, Random or the scheme has not reached the accuracy.",
        "left: log of the speed-up under another rule divided by log of the speed-up with the "
        "paper's rule. 0 %: all of the speed-up came from the step.",
    ]
    return Report(
        "server_step",
        f"Server step: {describe_config(config)}, FedAvg",
        tables,
        [*legend, *notes],
        {"server_step": numbers, "speed_up": ratio_rows},
    )


def log_ratios(slow: list[Result], fast: list[Result], target: Quantity) -> dict[int, float]:
    """Return the log of the slow runs' rounds over the fast runs', by seed.

    Args:
        slow: Runs of Random.
        fast: Runs of a scheme.
        target: The accuracy to reach.

    Returns:
        For the seeds of both: the log ratio, or nan where one has not reached the target.
    """
    rounds_slow = {run.config.first_seed: run_value(run, target) for run in slow}
    rounds_fast = {run.config.first_seed: run_value(run, target) for run in fast}
    ratios = {}
    for seed, rounds in rounds_slow.items():
        if seed not in rounds_fast:
            continue
        ratios[seed] = nan
        if max(rounds, rounds_fast[seed]) < inf:
            ratios[seed] = log(rounds / rounds_fast[seed])
    return ratios


def _ratio_rows(partition: str, selector: str, by_rule: Mapping[str, LogRatios]) -> Rows:
    rows: Rows = []
    for rule, ratios in by_rule.items():
        for seed, ratio in ratios.items():
            row = {"partition": partition, "selector": selector, "rule": rule, "seed": seed}
            rows.append(row | {"log ratio": ratio})
    return rows


def speed_up_row(selector: str, by_rule: Mapping[str, LogRatios]) -> dict[str, Any]:
    """Return a scheme's speed-up under each rule, and the part that the other rules leave.

    Only seeds that all rules with runs have are counted.
    """
    by_rule = _of_shared_seeds(by_rule)
    row: dict[str, Any] = {"scheme": scheme_label(selector)}
    for rule, ratios in by_rule.items():
        reached = estimate([ratio for ratio in ratios.values() if not isnan(ratio)])
        row[rule] = reached.as_ratio()
        if reached.runs < len(ratios):
            row[rule] += f" ({reached.runs} of {len(ratios)})"
    for rule in ("normalised", "equalised"):
        row[f"left, {rule}"] = _part_left(by_rule["paper"], by_rule[rule])
    return row


def _of_shared_seeds(by_rule: Mapping[str, LogRatios]) -> dict[str, dict[int, float]]:
    with_runs = [set(ratios) for ratios in by_rule.values() if ratios]
    shared: set[int] = set()
    if with_runs:
        shared = set.intersection(*with_runs)
    of_shared: dict[str, dict[int, float]] = {}
    for rule, ratios in by_rule.items():
        of_shared[rule] = {seed: ratios[seed] for seed in ratios if seed in shared}
    return of_shared


def _part_left(paper: LogRatios, other: LogRatios) -> str:
    """Return the part of the speed-up that another rule leaves; "-" if there was none."""
    both = []
    for seed in paper:
        if not isnan(paper[seed]) and not isnan(other.get(seed, nan)):
            both.append(seed)
    if not both:
        return "-"
    whole = estimate([paper[seed] for seed in both]).mean
    part = estimate([other[seed] for seed in both]).mean
    if whole <= log(1.05):
        return "-"
    return f"{100 * part / whole:.0f} %"
