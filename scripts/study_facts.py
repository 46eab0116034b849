"""What the study of failing clients found, in numbers that pages and the advice quote.

`facts()` computes every number from results/study/runs.csv. `merge` adds the rows of another
folder, so `python scripts/study_facts.py FOLDER` brings in what another machine has measured.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from fedcohort.arrays import Floats
from fedcohort.files import save_csv
from fedcohort.statistics import holm
from fedcohort.study import runs
from fedcohort.study.analysis import (
    LEVEL,
    Combination,
    Difference,
    Values,
    best_group,
    compare_rules,
    compare_with,
)
from fedcohort.study.measures import align_columns
from fedcohort.study.tables import Place, by_place, values_by_combination
from fedcohort.study.targets import compare_costs
from fedcohort.study.volatility import BASELINE, PARTITION_NAMES, WORLD_NAMES

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "results/study"
ADVICE = ROOT / "src/fedcohort/advice/study.json"
QUOTED = ("cases", "paper-points", "fedcs-behind", "oort-behind", "memory-points")
RECIPE = ("age", "fedvarp")


def facts() -> dict[str, str]:
    """Return the numbers of the study by name."""
    rows = runs.read_measures(STUDY)
    places = by_place(rows)
    finals = {place: values_by_combination(own, "final") for place, own in places.items()}
    found = {place: compare_with(BASELINE, own) for place, own in finals.items()}
    rules = {place: compare_rules(BASELINE[1], own) for place, own in finals.items()}
    worst = values_by_combination(places["cifar10", "labels", "primary-label"], "worst_class")

    uniform = _means(found, ("random", "mifa")) + _means(found, ("random", "fedvarp"))
    lasting = {place: own for place, own in found.items() if place[1] == "markov"}
    mifa_fashion = _rule_differences(rules, "mifa", "fashion-mnist")
    mifa_cifar = _rule_differences(rules, "mifa", "cifar10")
    varp = [own["fedvarp"] for place, own in rules.items() if _is_non_iid(place)]
    images = {
        place: own for place, own in finals.items() if _is_non_iid(place) and place[0] != "digits"
    }
    varp_images = [compare_rules(BASELINE[1], own)["fedvarp"] for own in images.values()]
    varp_without = [
        compare_rules(BASELINE[1], without_selector(own, "fedcs"))["fedvarp"]
        for own in images.values()
    ]
    widths: list[float] = []
    for own in found.values():
        widths += [one.high - one.low for one in own.values()]
    near = [len(best_group(own)) - 1 for own in finals.values()]
    memory = max(row["memory_megabytes"] for row in rows if row["dataset"] == "cifar10")
    return {
        "cases": str(len(places)),
        "runs": f"{len(rows):,}",
        "comparisons": str(len(next(iter(found.values())))),
        "paper-points": _span(_means(found, ("random", "paper"), both=True)),
        "paper-behind": _behind(found, ("random", "paper")),
        "fedcs-behind": _behind(found, ("fedcs", "normalised")),
        "oort-behind": _behind(found, ("oort", "normalised")),
        "age-lasting": _span(_means(lasting, ("age", "normalised"))),
        "mifa-fashion": _span([one.mean for one in mifa_fashion], 1),
        "mifa-fashion-certain": _certain(mifa_fashion),
        "mifa-cifar": _span([one.mean for one in mifa_cifar], 1),
        "mifa-cifar-certain": _certain(mifa_cifar),
        "mifa-fashion-worlds": str(certain_with_pool(finals, "mifa", "fashion-mnist", "worlds")),
        "mifa-fashion-rules": str(certain_with_pool(finals, "mifa", "fashion-mnist", "rules")),
        "mifa-cifar-worlds": str(certain_with_pool(finals, "mifa", "cifar10", "worlds")),
        "mifa-cifar-rules": str(certain_with_pool(finals, "mifa", "cifar10", "rules")),
        "fedvarp-lower": _lower(varp),
        "fedvarp-certain": _certain([one for one in varp if one.mean < 0]),
        "fedvarp-images": _lower(varp_images),
        "fedvarp-images-without-fedcs": _lower(varp_without),
        "recipe-rounds": _recipe_rounds(places, "bernoulli"),
        "recipe-rounds-labels": _recipe_rounds(places, "labels"),
        "recipe-worst": f"{100 * compare_with(BASELINE, worst)[RECIPE].mean:.1f}",
        "recipe-behind": _span(_means(lasting, RECIPE)),
        "memory-points": f"{100 * min(uniform):+.1f} to {100 * max(uniform):+.1f}",
        "half-widths": f"{50 * min(widths):.1f} to {50 * max(widths):.0f}",
        "near-best": f"{min(near)} to {max(near)}",
        "memory": f"{memory:.0f} MB",
        **{f"cases-{name}": _cases(places, name) for name in {place[0] for place in places}},
    }


def _is_non_iid(place: Place) -> bool:
    return place[2] == "primary-label"


def _means(
    found: dict[Place, dict[Combination, Difference]], name: Combination, both: bool = False
) -> list[float]:
    """Return the differences of a combination in the non-iid cases, or in those of both kinds."""
    return [own[name].mean for place, own in found.items() if both or _is_non_iid(place)]


def _rule_differences(
    rules: dict[Place, dict[str, Difference]], rule: str, dataset: str
) -> list[Difference]:
    """Return the differences of a rule in the non-iid cases of a data set."""
    own = {place: found for place, found in rules.items() if place[0] == dataset}
    return [found[rule] for place, found in own.items() if _is_non_iid(place)]


def without_selector(values: Values, selector: str) -> Values:
    """Return the values of all combinations but those of a selector."""
    return {name: seeds for name, seeds in values.items() if name[0] != selector}


def certain_with_pool(finals: dict[Place, Values], rule: str, dataset: str, pooling: str) -> int:
    """Return in how many non-iid worlds a rule's average over selectors differs for certain.

    Args:
        finals: Final accuracies by place and combination.
        rule: The rule that is compared with the baseline's.
        dataset: Name of the data set.
        pooling: Over what the spread of differences from seed to seed is averaged: "worlds",
            "rules", or "own" for not at all, as `compare_rules` does.
    """
    tables = []  # one for each world: differences [rules, seeds]
    for place, values in finals.items():
        if place[0] == dataset and _is_non_iid(place):
            names, table = _differences_of_rules(values)
            tables.append(table)
    differences = np.stack(tables)
    seeds = differences.shape[-1]
    axis = {"own": (), "worlds": (0,), "rules": (1,)}[pooling]

    variances = differences.var(axis=-1, ddof=1)
    pooled = variances.mean(axis=axis, keepdims=True)
    degrees = (seeds - 1) * variances.size // pooled.size
    ratios = np.abs(differences.mean(axis=-1)) / np.sqrt(pooled / seeds)
    p_values = 2 * stats.t.sf(ratios, degrees)
    return sum(holm(own)[names.index(rule)] < LEVEL for own in p_values)


def _differences_of_rules(values: Values) -> tuple[list[str], Floats]:
    """Return the other rules and their differences to the baseline's, [rules, seeds]."""
    rules = list(dict.fromkeys(rule for _, rule in values))
    averages = {}
    for rule in rules:
        rows = [seeds for name, seeds in values.items() if name[1] == rule]
        averages[rule] = np.mean(rows, axis=0)
    others = [rule for rule in rules if rule != BASELINE[1]]
    return others, np.array([averages[rule] - averages[BASELINE[1]] for rule in others])


def _lower(differences: Sequence[Difference]) -> str:
    """Return how many of some differences are below zero, such as "7 of 8"."""
    return f"{sum(one.mean < 0 for one in differences)} of {len(differences)}"


def _certain(differences: Iterable[Difference]) -> str:
    """Return how many of some differences are certain."""
    return str(sum(one.holds for one in differences))


def _span(values: Iterable[float], digits: int = 0) -> str:
    """Return the smallest and the largest size of some differences, in points."""
    sizes = [100 * abs(value) for value in values]
    return f"{min(sizes):.{digits}f} to {max(sizes):.{digits}f}"


def _behind(found: dict[Place, dict[Combination, Difference]], name: Combination) -> str:
    """Return in how many cases a combination is behind the baseline for certain."""
    own = [differences[name] for differences in found.values()]
    return str(sum(one.holds and one.mean < 0 for one in own))


def _recipe_rounds(places: dict[Place, list[Any]], world: str) -> str:
    """Return the ratio of the recipe's rounds to the baseline's, on non-iid CIFAR-10."""
    place = ("cifar10", world, "primary-label")
    rounds = values_by_combination(places[place], "rounds_to_target")
    return f"{exp(compare_costs(rounds)[RECIPE].mean):.2f}"


def _cases(places: dict[Place, list[Any]], dataset: str) -> str:
    """Say in which worlds a data set was trained, such as "4 worlds non-iid, 4 iid"."""
    parts = []
    for partition, name in PARTITION_NAMES.items():
        worlds = {place[1] for place in places if (place[0], place[2]) == (dataset, partition)}
        words = f"{len(worlds)} worlds {name}"
        missing = [world for world in WORLD_NAMES if world not in worlds]
        if missing:
            words += f" (not {', '.join(missing)})"
        parts.append(words)
    return ", ".join(parts)


def advice_text() -> str:
    """Return the numbers that `fedcohort advise` quotes, as the text of its file."""
    found = facts()
    return json.dumps({name: found[name] for name in QUOTED}, indent=1) + "\n"


def merge(folder: Path) -> None:
    """Put the rows of a folder in the place of those that the study has of the same cases."""
    for name, read in ((runs.MEASURES, runs.read_measures), (runs.CURVES, runs.read_curves)):
        new = read(folder)
        kept = []
        for place, own in by_place(read(STUDY)).items():
            if place not in by_place(new):
                kept += own
        save_csv(STUDY / name, align_columns([*kept, *new]))


if __name__ == "__main__":
    merge(Path(sys.argv[1]))
