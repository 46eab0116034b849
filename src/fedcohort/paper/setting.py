"""The paper's setting and its two tasks as data, and how a user's changes go into them."""

from collections.abc import Collection, Mapping
from typing import Any

from fedcohort.checks import check_choice
from fedcohort.data import Dataset
from fedcohort.lab.config import ComparisonConfig
from fedcohort.selection.registry import PAPER_SELECTORS

PAPER: dict[str, Any] = {
    "selectors": PAPER_SELECTORS,
    "partitions": ("iid", "primary-label"),
    "aggregations": ("paper",),
    "mus": (0.0, 0.5),
    "seeds": 1,
    "clients": 100,
    "cohort": 20,
    "samples_per_client": 500,
    "refill": True,  # the reading that fits the published numbers better; see results/README.md
    "learning_rate": 0.01,
    "momentum": 0.9,
    "batch_size": 40,
    "epochs": (1, 2, 3, 4),
    "eta": 0.5,
    "sampler": "successive",
    "official_every": 50,
}
TASKS: dict[str, dict[str, Any]] = {
    "emnist-letters": {"model": "emnist-cnn", "rounds": 400, "targets": (0.65, 0.75, 0.85)},
    "cifar10": {"model": "cifar-cnn-pool3-ceil", "rounds": 2500, "targets": (0.45, 0.55, 0.65)},
}
COHORTS = (10, 20, 30)  # of figure 7
SUBSETS = (
    "selectors",
    "partitions",
    "mus",
)  # a user may ask for some of these; the others keep the paper's


def setting(task: str, changes: Mapping[str, Any], **own: Any) -> ComparisonConfig | None:
    """Return a task's setting with a user's changes and an artefact's own; None if the subset asked for has no run here."""
    values: dict[str, Any] = PAPER | {"dataset": task} | TASKS[task] | own
    for name, value in changes.items():
        if name in SUBSETS:
            values[name] = tuple(part for part in values[name] if part in value)
            if not values[name]:
                return None
        elif name not in own:
            values[name] = value
    return ComparisonConfig.from_dict(values)


def whole_setting(task: str, changes: Mapping[str, Any], **own: Any) -> ComparisonConfig:
    """Return the same with all runs that the task has, whatever subset was asked for: what is shown is shown whole."""
    values = (
        PAPER
        | {"dataset": task}
        | TASKS[task]
        | {name: v for name, v in changes.items() if name not in SUBSETS}
        | own
    )
    return ComparisonConfig.from_dict(values)


def check_changes(changes: Mapping[str, Any], names: Collection[str]) -> None:
    """Refuse changes that no artefact knows, or one of these cannot take, by name, bound and value."""
    every = {
        "selectors": [*PAPER_SELECTORS, "e3cs-robust"],
        "partitions": PAPER["partitions"],
        "mus": PAPER["mus"],
    }
    for name, value in changes.items():
        if name in SUBSETS and not value:
            raise ValueError(f"{name} must be a list of at least one, got none")
        for part in value if name in SUBSETS else ():
            if name == "mus" and part not in every[name]:
                raise ValueError(
                    f"mus must be of {', '.join(f'{mu:g}' for mu in every[name])}, got {part!r}"
                )
            if name != "mus":
                check_choice(name.removesuffix("s"), part, every[name])
    whole_setting("cifar10", changes)
    for cohort in COHORTS if {"figure7", "claims"} & set(names) else ():
        whole_setting("cifar10", changes, cohort=cohort)


def fitted(data: Dataset, clients: int) -> dict[str, Any]:
    """Return what suits other data than the paper's, by their shape and number: model, samples per client, official tests."""
    shape = data.x.shape[1:]
    side = min(shape[1:], default=0)
    model = "mlp" if side < 16 else "cifar-cnn" if shape[0] > 1 else "emnist-cnn"
    enough = len(data.y) >= clients * PAPER["samples_per_client"]
    samples = PAPER["samples_per_client"] if enough else None
    return {
        "model": model,
        "samples_per_client": samples,
        "official_every": PAPER["official_every"] if data.test_y is not None else 0,
    }
