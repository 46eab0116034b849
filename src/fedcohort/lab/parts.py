"""What is still to be trained, in parts: a part is one run folder whose runs go through the rounds in lock-step."""

import hashlib
from collections.abc import Collection
from dataclasses import fields, replace
from itertools import pairwise
from math import prod
from pathlib import Path

from fedcohort.lab import folder as rundir
from fedcohort.lab.archive import identity, single_run
from fedcohort.lab.config import ComparisonConfig, RunKey, run_keys
from fedcohort.lab.records import read_config

AXES = tuple(field.name for field in fields(RunKey))
SPLIT_BY = ("seed", "mu", "aggregation", "partition", "selector")


def remaining_parts(of: ComparisonConfig, finished: Collection[str]) -> list[ComparisonConfig]:
    """Return comparisons whose runs are those of `of` that are not finished, in as few parts as a simple rule finds."""
    left = [place for place in run_keys(of) if identity(single_run(of, place)) not in finished]
    return [_comparison(of, block) for block in blocks(left)]


def blocks(left: list[RunKey]) -> list[list[RunKey]]:
    """Split runs into full products of schemes, partitions, rules, mus and consecutive seeds."""
    if not left:
        return []
    seeds = sorted({place.seed for place in left})
    gap = next((seed for seed, after in pairwise(seeds) if after != seed + 1), None)
    if gap is not None:
        return blocks([p for p in left if p.seed <= gap]) + blocks(
            [p for p in left if p.seed > gap]
        )
    if prod(len({getattr(place, axis) for place in left}) for axis in AXES) == len(left):
        return [left]
    for axis in SPLIT_BY:
        alike: dict[
            frozenset[RunKey], list[RunKey]
        ] = {}  # values of this axis that have the same runs left go together
        for value in sorted({getattr(place, axis) for place in left}):
            mine = [place for place in left if getattr(place, axis) == value]
            rest = frozenset(replace(place, **{axis: getattr(left[0], axis)}) for place in mine)
            alike.setdefault(rest, []).extend(mine)
        if len(alike) > 1:
            return [block for group in alike.values() for block in blocks(group)]
    raise AssertionError("runs that differ on no axis are a full product")


def _comparison(of: ComparisonConfig, block: list[RunKey]) -> ComparisonConfig:
    values = {axis: tuple(dict.fromkeys(getattr(place, axis) for place in block)) for axis in AXES}
    return replace(
        of,
        selectors=values["selector"],
        partitions=values["partition"],
        aggregations=values["aggregation"],
        mus=values["mu"],
        seeds=len(values["seed"]),
        first_seed=min(values["seed"]),
    )


def part_folder(of: ComparisonConfig, home: Path) -> Path:
    """Return the folder of a part: a few words for people, and a digest of all that decides its results."""
    digest = hashlib.sha256(identity(of).encode()).hexdigest()[:8]
    return (
        home
        / f"{Path(of.dataset).stem}-k{of.cohort}-{'-'.join(of.aggregations)}-T{of.rounds}-{digest}"
    )


def unfinished_parts(of: ComparisonConfig, home: Path) -> list[tuple[Path, ComparisonConfig]]:
    """Return the parts that have a checkpoint and rounds left, and no run but of this comparison; they compute as it does."""
    wanted, found = {identity(single_run(of, place)) for place in run_keys(of)}, []
    for path in sorted(home.glob("*/settings.toml")):
        part = read_config(path.parent)
        if not {identity(single_run(part, place)) for place in run_keys(part)} <= wanted:
            continue
        state = rundir.load_checkpoint(path.parent, ("round",))
        if state is not None and state["round"] < part.rounds:
            how = ("targets", "checkpoint_every", "device", "compiled", "slots")
            found.append((path.parent, replace(part, **{name: getattr(of, name) for name in how})))
    return found
