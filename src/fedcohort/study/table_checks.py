"""Checks of a study's tables: every mistake names the file, and the line or column."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import chain
from math import isfinite
from pathlib import Path

from fedcohort.checks import check_choice, shown
from fedcohort.study.measures import Row
from fedcohort.study.volatility import BASELINE, PARTITION_NAMES, WORLD_NAMES

WORDS = ("dataset", "world", "partition", "selector", "rule")  # columns that hold no numbers
MEASURE_COLUMNS = (
    *WORDS,
    "seed",
    "target",
    "rounds_to_target",
    "client_steps_to_target",
    "seconds_to_target",
    "final",
    "worst_class",
)
# Every run has these. Costs of a target are nan where a run did not reach it.
FINITE = ("seed", "target", "final", "worst_class")
CURVE_COLUMNS = (*WORDS, "round", "accuracy", "sd")
FIRST_LINE = 2  # of a table below its header


def check_columns(path: Path, found: Collection[str], needed: Sequence[str]) -> None:
    """Refuse a table that lacks a column that the report needs.

    Raises:
        ValueError: With the name of the first column that is missing.
    """
    for name in needed:
        if name not in found:
            got = ", ".join(found) or "none"
            raise ValueError(f"{path} must have a column {name}, got {got}")


def check_words(path: Path, rows: Sequence[Row]) -> None:
    """Refuse rows without a word, and those of an unknown world or partition.

    Raises:
        ValueError: With the line and the column of the first mistake.
    """
    for line, row in enumerate(rows, start=FIRST_LINE):
        for name in WORDS:
            if not row[name]:
                raise ValueError(f"{path}, line {line}, column {name}: must be a word, got none")
        check_choice(f"{path}, line {line}, column world:", row["world"], WORLD_NAMES)
        check_choice(f"{path}, line {line}, column partition:", row["partition"], PARTITION_NAMES)


def check_comparable(path: Path, rows: Sequence[Row]) -> None:
    """Refuse runs that cannot be compared with the baseline, paired by seed.

    Args:
        path: The table.
        rows: One row per run.

    Raises:
        ValueError: If a seed, a target or an accuracy is no number, a combination lacks a seed that
            another one has or has it twice, or the baseline, a second combination or a second seed
            is missing.
    """
    if not rows:
        raise ValueError(f"{path} must have at least one row below its header, got none")
    places: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line, row in enumerate(rows, start=FIRST_LINE):
        for name in FINITE:
            if not isfinite(row[name]):
                raise ValueError(
                    f"{path}, line {line}, column {name}: must be a number, got {shown(row[name])}"
                )
        place = ", ".join((row["dataset"], row["world"], row["partition"]))
        places[place][_label(row["selector"], row["rule"])].append(row["seed"])

    for place, seeds in places.items():
        _check_place(f"{path}, {place}", seeds)


def _check_place(about: str, seeds: dict[str, list[float]]) -> None:
    """Check the seeds of one data set, world and partition, by combination."""
    baseline = _label(*BASELINE)
    if baseline not in seeds:
        raise ValueError(f"{about}: must have runs of {baseline}, got {', '.join(seeds)}")
    if len(seeds) < 2:
        raise ValueError(f"{about}: must have runs of two combinations, got {baseline} alone")

    expected = sorted(set(chain.from_iterable(seeds.values())))
    if len(expected) < 2:
        raise ValueError(f"{about}: must have at least 2 seeds, got {len(expected)}")
    for combination, own in seeds.items():
        if sorted(own) != expected:
            raise ValueError(
                f"{about}: {combination} must have the seeds {_listed(expected)}, each once, "
                f"got {_listed(sorted(own))}"
            )


def _label(selector: str, rule: str) -> str:
    return f"{selector} + {rule}"


def _listed(seeds: Sequence[float]) -> str:
    return ", ".join(f"{seed:g}" for seed in seeds)
