"""Ablations (b) to (f) on CIFAR-10 under FedAvg: each changes one thing.

(b) compares exact sampling with the paper's successive draw, (c) the robust update, which
samples exactly, with E3CS-0 under both samplers, (d) the official test set with the clients'
reserved data, (e) float32 with bf16, and (f) numbers of candidates of pow-d, which the paper does
not state. Most of the runs beside them are those of Table III; (d) needs no runs of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import Result
from fedcohort.metrics import jain
from fedcohort.paper.cells import Cells, Quantity, values_by_seed
from fedcohort.paper.labels import (
    describe_config,
    describe_origin,
    format_amount,
    partition_label,
    scheme_label,
)
from fedcohort.paper.results import Results
from fedcohort.paper.setting import Overrides, full_config, task_config
from fedcohort.paper.tables import Rows, our_cell, our_columns, our_numbers, our_text, quantities
from fedcohort.reports.report import Report
from fedcohort.reports.words import mean_with_sd
from fedcohort.statistics import BySeed, estimate

TASK = "cifar10"
E3CS = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc")
EXACT: dict[str, Any] = {"selectors": (*E3CS, "e3cs-robust"), "sampler": "systematic"}
PRECISION_SELECTORS = ("random", "e3cs-0.5")  # the schemes of (e)
TEST_DATA = "(d) test data"
CANDIDATES = (30, 70)  # of pow-d, beside the default 2.5 k, which is 50
OF_POWD = "(f) candidates of pow-d"
Variants = Mapping[tuple[str, str], list[Result]]  # runs by variant and selector


def configs(overrides: Overrides) -> list[ComparisonConfig]:
    """Return what is trained; without a GPU there is no bf16 to compare with."""
    precisions = ["float32"]
    if overrides.get("device", "cpu") != "cpu":
        precisions.append("bf16")
    wanted = [
        task_config(TASK, overrides, mus=(0.0,)),
        task_config(TASK, overrides, mus=(0.0,), **EXACT),
    ]
    for precision in precisions:
        fixed = {"selectors": PRECISION_SELECTORS, "precision": precision}
        wanted.append(task_config(TASK, overrides, mus=(0.0,), **fixed))
    for candidates in CANDIDATES:
        wanted.append(task_config(TASK, overrides, mus=(0.0,), **_powd_with(candidates)))
    return [config for config in wanted if config is not None]


def _powd_with(candidates: int) -> dict[str, Any]:
    """Return what is special of runs of pow-d with so many candidates."""
    return {"selectors": ("pow-d",), "candidates": candidates}


@dataclass(frozen=True, eq=False)
class AblationRuns:
    """The runs of all ablations.

    Attributes:
        successive: Runs with the paper's sampler.
        exact: Runs with exact sampling.
        float32: Runs of (e) in float32.
        bf16: Runs of (e) in bf16.
        candidates: Runs of (f), by the number of candidates.
    """

    successive: Cells
    exact: Cells
    float32: Cells
    bf16: Cells
    candidates: Mapping[int, Cells]


def report(results: Results, overrides: Overrides) -> Report:
    """Report one table per ablation and partition."""
    config = full_config(TASK, overrides, mus=(0.0,))
    exact = full_config(TASK, overrides, mus=(0.0,), **EXACT)
    of_powd = []
    for candidates in CANDIDATES:
        of_powd.append(full_config(TASK, overrides, mus=(0.0,), **_powd_with(candidates)))
    (successive_cells, exact_cells, *powd_cells), left_out = results.cells(config, exact, *of_powd)

    of_precision = []
    for precision in ("float32", "bf16"):
        fixed = {"selectors": PRECISION_SELECTORS, "precision": precision, "device": "cuda"}
        of_precision.append(full_config(TASK, overrides, mus=(0.0,), **fixed))
    (float32_cells, bf16_cells), _ = results.cells(*of_precision, exact=("precision",))

    candidate_cells = dict(zip(CANDIDATES, powd_cells, strict=True))
    runs = AblationRuns(successive_cells, exact_cells, float32_cells, bf16_cells, candidate_cells)
    tables: dict[str, Rows] = {}
    numbers: Rows = []
    for partition in config.partitions:
        for name, variants in variants_by_ablation(config, runs, partition).items():
            shown: list[Quantity] = quantities(config)
            rows = compare_variants(config, variants)
            if name == TEST_DATA:
                shown = ["final", "official"]
                rows = compare_test_data(variants)
            if name == OF_POWD:
                rows = with_participation(rows, variants)
            tables[f"{name}, {partition_label(partition)}"] = rows
            numbers += _number_rows(name, partition, variants, shown)

    notes = [
        "difference: final accuracy less that of the scheme's first variant, paired by seed, "
        "in points ± standard error."
    ]
    if not any(runs.bf16.values()):
        notes.append("(e): bf16 was not run; it needs a GPU.")
    notes += left_out
    notes += describe_origin(runs.successive, runs.exact, runs.float32, runs.bf16, *powd_cells)
    title = f"Ablations: {describe_config(config)}, FedAvg"
    return Report("ablations", title, tables, notes, {"ablations": numbers})


def variants_by_ablation(
    config: ComparisonConfig, runs: AblationRuns, partition: str
) -> dict[str, Variants]:
    """Return the runs of each ablation with one partition, by variant and selector."""

    def find(cells: Cells, selector: str) -> list[Result]:
        return cells[selector, partition, "paper", 0.0]

    sampling = {}
    for selector in E3CS:
        sampling["successive", selector] = find(runs.successive, selector)
        sampling["exact", selector] = find(runs.exact, selector)
    robust = {
        ("successive", "e3cs-0"): find(runs.successive, "e3cs-0"),
        ("exact", "e3cs-0"): find(runs.exact, "e3cs-0"),
        ("exact", "e3cs-robust"): find(runs.exact, "e3cs-robust"),
    }
    test_data = {}
    for selector in config.selectors:
        test_data["successive", selector] = find(runs.successive, selector)
    precision = {}
    for selector in PRECISION_SELECTORS:
        precision["float32", selector] = find(runs.float32, selector)
        precision["bf16", selector] = find(runs.bf16, selector)
    usual = "2.5 k" if config.candidates is None else config.candidates
    powd = {(f"d = {usual}", "pow-d"): find(runs.successive, "pow-d")}
    for candidates, cells in runs.candidates.items():
        powd[f"d = {candidates}", "pow-d"] = find(cells, "pow-d")
    return {
        "(b) sampling": sampling,
        "(c) robust update": robust,
        TEST_DATA: test_data,
        "(e) precision": precision,
        OF_POWD: powd,
    }


def _number_rows(name: str, partition: str, variants: Variants, shown: list[Quantity]) -> Rows:
    rows: Rows = []
    for (variant, selector), runs in variants.items():
        row = {"ablation": name, "partition": partition, "selector": selector, "variant": variant}
        for quantity in shown:
            rows.append(row | our_numbers(our_cell(runs, quantity), runs, quantity))
    return rows


def compare_variants(config: ComparisonConfig, variants: Variants) -> Rows:
    """Return one row per variant: rounds to the targets, final accuracy, and a difference.

    The difference is to the first variant of the same scheme; that of the robust update is
    to E3CS-0.
    """
    rows = []
    first_runs: dict[str, list[Result]] = {}
    for (variant, selector), runs in variants.items():
        reference = selector
        if selector == "e3cs-robust":
            reference = "e3cs-0"
        first = first_runs.setdefault(reference, runs)
        row = {"scheme": scheme_label(selector), "variant": variant}
        row |= our_columns(config, runs)
        row["difference"] = ""
        if runs is not first:
            row["difference"] = _difference(runs, first)
        rows.append(row)
    return rows


def _difference(runs: list[Result], first: list[Result]) -> str:
    """Return the mean difference in final accuracy, paired by seed, in points."""
    gap = estimate(_pair(values_by_seed(runs, "final"), values_by_seed(first, "final")))
    if not gap.runs:
        return "-"
    mean = f"{100 * gap.mean:+.2f}"
    if gap.runs == 1:
        return mean
    return f"{mean} ± {format_amount(gap.error, 'final')}"


def _pair(values: BySeed, others: BySeed) -> list[float]:
    """Return the differences of values of the same seeds."""
    return [values[seed] - others[seed] for seed in values if seed in others]


def with_participation(rows: Rows, variants: Variants) -> Rows:
    """Add to rows of variants how many updates arrived, and how evenly clients were asked.

    Only finished runs count: both numbers change with the rounds played.
    """
    extended = []
    for row, runs in zip(rows, variants.values(), strict=True):
        finished = [run for run in runs if run.finished]
        ratios = [run.valid.sum() / run.counts.sum() for run in finished]
        fairness = [jain(run.counts) for run in finished]
        extended.append(
            row
            | {
                "success ratio": mean_with_sd(np.array(ratios)),
                "Jain": mean_with_sd(np.array(fairness)),
            }
        )
    return extended


def compare_test_data(variants: Variants) -> Rows:
    """Return one row per scheme: final accuracy on reserved and on official test data.

    The difference is over the runs that have both.
    """
    rows: Rows = []
    for (_, selector), runs in variants.items():
        reserved = our_cell(runs, "final")
        official = our_cell(runs, "official")
        official_text = our_text(official, runs, "final")
        if runs and not any(_was_tested(run) for run in runs):
            official_text = "not tested"
        gaps = _pair(values_by_seed(runs, "official"), values_by_seed(runs, "final"))
        difference = "-"
        if gaps:
            difference = f"{100 * estimate(gaps).mean:+.2f}"
        rows.append(
            {
                "scheme": scheme_label(selector),
                "runs": len(runs),
                "clients' reserved data": our_text(reserved, runs, "final"),
                "official test set": official_text,
                "difference": difference,
            }
        )
    return rows


def _was_tested(run: Result) -> bool:
    """Return whether a run was ever evaluated on the official test set."""
    return not np.isnan(run.official).all()
