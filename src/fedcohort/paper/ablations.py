"""Ablations (b) to (e): exact sampling, the robust update, the official test set, float32 beside bf16; all on CIFAR-10, FedAvg.

Each stands beside runs that differ in that one thing, most of them of table3; the robust update, which samples exactly, beside
E3CS-0 with both samplers. (d) needs no runs of its own.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort.lab.archive import Result
from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper import published
from fedcohort.paper.artefact import Changes, Pool, about, title_of
from fedcohort.paper.cells import values
from fedcohort.paper.setting import setting, whole_setting
from fedcohort.paper.tabulate import (
    Rows,
    amount,
    columns,
    in_numbers,
    label,
    ours,
    ours_alone,
    quantities,
)
from fedcohort.reports.report import Report
from fedcohort.statistics import estimate

TASK = "cifar10"
E3CS = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc")
FEW = ("random", "e3cs-0.5")  # schemes of (e)
TESTS = "(d) test data"
Variants = Mapping[tuple[str, str], list[Result]]  # variant and scheme: runs


def settings(changes: Changes) -> list[ComparisonConfig]:
    """Return what is trained; without a GPU there is no bf16 to compare."""
    made = [
        setting(TASK, changes, mus=(0.0,)),
        setting(TASK, changes, mus=(0.0,), selectors=(*E3CS, "e3cs-robust"), sampler="systematic"),
    ]
    precisions = ("float32",) if changes.get("device", "cpu") == "cpu" else ("float32", "bf16")
    made += [
        setting(TASK, changes, mus=(0.0,), selectors=FEW, precision=precision)
        for precision in precisions
    ]
    return [of for of in made if of]


def report(changes: Changes, pool: Pool) -> Report:
    """Return one table per ablation and partition."""
    base = whole_setting(TASK, changes, mus=(0.0,))
    exact = whole_setting(
        TASK, changes, mus=(0.0,), selectors=(*E3CS, "e3cs-robust"), sampler="systematic"
    )
    (plain, sampled), others = pool.cells(base, exact)
    precisions = (
        whole_setting(TASK, changes, mus=(0.0,), selectors=FEW, precision=precision, device="cuda")
        for precision in ("float32", "bf16")
    )
    (single, half), _ = pool.cells(*precisions, strict=("precision",))
    tables: dict[str, Rows] = {}
    numbers: Rows = []
    for partition in base.partitions:

        def runs(
            found: Mapping[Any, list[Result]], selector: str, partition: str = partition
        ) -> list[Result]:
            return found[selector, partition, "paper", 0.0]

        ablations: dict[str, Variants] = {
            "(b) sampling": {
                (word, name): runs(found, name)
                for name in E3CS
                for word, found in (("successive", plain), ("exact", sampled))
            },
            "(c) robust update": {
                ("successive", "e3cs-0"): runs(plain, "e3cs-0"),
                ("exact", "e3cs-0"): runs(sampled, "e3cs-0"),
                ("exact", "e3cs-robust"): runs(sampled, "e3cs-robust"),
            },
            TESTS: {("successive", name): runs(plain, name) for name in base.selectors},
            "(e) precision": {
                (word, name): runs(found, name)
                for name in FEW
                for word, found in (("float32", single), ("bf16", half))
            },
        }
        for name, variants in ablations.items():
            tables[f"{name}, {label(partition)}"] = (
                both_tests(variants) if name == TESTS else beside(base, variants)
            )
            numbers += [
                {"ablation": name, "partition": partition, "selector": selector, "variant": variant}
                | in_numbers(ours_alone(here, quantity), here, quantity)
                for (variant, selector), here in variants.items()
                for quantity in (quantities(base) if name != TESTS else ("final", "official"))
            ]
    notes = [
        "difference: final accuracy less that of the first variant of the scheme, paired by seed, in points ± standard error."
    ]
    if not any(half.values()):
        notes.append("(e): bf16 was not run; it needs a GPU.")
    title, notes = (
        f"Ablations: {title_of(base)}, FedAvg",
        notes + others + about(plain, sampled, single, half),
    )
    return Report("ablations", title, tables, notes, {"ablations": numbers})


def beside(of: ComparisonConfig, variants: Variants) -> Rows:
    """Return one row per variant: rounds to the targets, final accuracy, and its difference to the first of the same table."""
    rows = []
    firsts: dict[str, list[Result]] = {}
    for (variant, selector), runs in variants.items():
        first = firsts.setdefault("e3cs-0" if selector == "e3cs-robust" else selector, runs)
        who = {"scheme": published.SCHEMES.get(selector, selector), "variant": variant}
        rows.append(
            who
            | columns(of, runs)
            | {"difference": "" if first is runs else _difference(runs, first)}
        )
    return rows


def _difference(runs: list[Result], first: list[Result]) -> str:
    mine, theirs = values(runs, "final"), values(first, "final")
    gap = estimate([mine[seed] - theirs[seed] for seed in mine if seed in theirs])
    if not gap.runs:
        return "-"
    return f"{100 * gap.mean:+.2f}" + ("" if gap.runs < 2 else f" ± {amount(gap.error, 'final')}")


def both_tests(variants: Variants) -> Rows:
    """Return one row per scheme: final accuracy on the clients' own test data and on the official test set."""
    rows = []
    for (_, selector), runs in variants.items():
        reserved, official = (ours_alone(runs, what) for what in ("final", "official"))
        tested = any(not np.isnan(run.official).all() for run in runs)
        rows.append(
            {
                "scheme": published.SCHEMES[selector],
                "runs": len(runs),
                "clients' reserved data": ours(reserved, runs, "final"),
                "official test set": ours(official, runs, "final")
                if tested or not runs
                else "not tested",
                "difference": f"{100 * (official.mean - reserved.mean):+.2f}"
                if official.values and reserved.values
                else "-",
            }
        )
    return rows
