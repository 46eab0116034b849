"""What is still to be trained, in parts. A part is one run folder with runs in lock-step."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.named_parts import aggregation_labels
from fedcohort.lab.result import identity, single_run
from fedcohort.lab.runs import RunKey, run_keys

AXES = tuple(field.name for field in fields(RunKey))
SPLIT_ORDER = ("seed", "mu", "aggregation", "partition", "selector")
# A part takes these from the comparison that goes on with it: they do not change its results.
TAKEN_OVER = ("targets", "checkpoint_every", "device", "compiled", "slots")


def remaining_parts(config: ComparisonConfig, finished: Collection[str]) -> list[ComparisonConfig]:
    """Return comparisons of the unfinished runs, in as few parts as a simple rule finds.

    Args:
        config: The comparison.
        finished: Identities of the runs that are finished.
    """
    keys = []
    for key in run_keys(config):
        if identity(single_run(config, key)) not in finished:
            keys.append(key)
    return [_part(config, block) for block in split_into_blocks(keys)]


def split_into_blocks(keys: list[RunKey]) -> list[list[RunKey]]:
    """Split runs into full products of their axes, with consecutive seeds."""
    if not keys:
        return []
    seeds = sorted({key.seed for key in keys})
    for seed, following in pairwise(seeds):
        if following != seed + 1:
            before = [key for key in keys if key.seed <= seed]
            after = [key for key in keys if key.seed > seed]
            return split_into_blocks(before) + split_into_blocks(after)
    if prod(len(_values(keys, axis)) for axis in AXES) == len(keys):
        return [keys]
    for axis in SPLIT_ORDER:
        groups = _group_alike(keys, axis)
        if len(groups) > 1:
            blocks = []
            for group in groups:
                blocks += split_into_blocks(group)
            return blocks
    raise AssertionError("runs that differ on no axis are a full product")


def _values(keys: list[RunKey], axis: str) -> list[Any]:
    """Return the values of an axis, each once, in order of their first run."""
    return list(dict.fromkeys(getattr(key, axis) for key in keys))


def _group_alike(keys: list[RunKey], axis: str) -> list[list[RunKey]]:
    """Return the runs in groups: values of the axis with the same other runs go together."""
    groups: dict[frozenset[RunKey], list[RunKey]] = {}
    any_value = getattr(keys[0], axis)
    for value in sorted({getattr(key, axis) for key in keys}):
        own = [key for key in keys if getattr(key, axis) == value]
        others = frozenset(replace(key, **{axis: any_value}) for key in own)
        groups.setdefault(others, []).extend(own)
    return list(groups.values())


def _part(config: ComparisonConfig, keys: list[RunKey]) -> ComparisonConfig:
    seeds = {key.seed for key in keys}
    return replace(
        config,
        selectors=tuple(_values(keys, "selector")),
        partitions=tuple(_values(keys, "partition")),
        aggregations=tuple(_values(keys, "aggregation")),
        mus=tuple(_values(keys, "mu")),
        seeds=len(seeds),
        first_seed=min(seeds),
    )


def part_folder(config: ComparisonConfig, home: Path) -> Path:
    """Return the folder of a part: a few words, and a digest of all that decides its results."""
    digest = hashlib.sha256(identity(config).encode()).hexdigest()[:8]
    words = [
        Path(config.dataset).stem,
        f"k{config.cohort}",
        *aggregation_labels(config).values(),
        f"T{config.rounds}",
        digest,
    ]
    return home / "-".join(words)


def unfinished_parts(
    config: ComparisonConfig, parts: Mapping[Path, ComparisonConfig]
) -> list[tuple[Path, ComparisonConfig]]:
    """Return the parts that can go on: a checkpoint, rounds left, no run outside config.

    Args:
        config: The comparison. The parts are computed on its device and with its options.
        parts: The settings of all parts, by folder.
    """
    wanted = identities(config)
    unfinished = []
    for folder, part in sorted(parts.items()):
        if not identities(part) <= wanted:
            continue
        state = run_folder.load_comparison_checkpoint(folder)
        if state is not None and state["round"] < part.rounds:
            options = {name: getattr(config, name) for name in TAKEN_OVER}
            unfinished.append((folder, replace(part, **options)))
    return unfinished


def identities(config: ComparisonConfig) -> set[str]:
    """Return the identities of all runs of a comparison."""
    return {identity(single_run(config, key)) for key in run_keys(config)}
