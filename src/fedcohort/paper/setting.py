"""The paper's experimental setting, its two tasks, and how a user's overrides change them.

A task is one of the paper's two data sets with the network, the number of rounds and the
target accuracies that go with it.
"""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from fedcohort.checks import check_choice
from fedcohort.data import Dataset
from fedcohort.lab.config import ComparisonConfig
from fedcohort.selection.registry import PAPER_SELECTORS

Overrides = Mapping[str, Any]  # fields of ComparisonConfig that a user changed

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
# Another reading of the paper's non-iid split, trained only on request and shown if it was.
INDEPENDENT_DRAWS = "independent-label"
COHORTS = (10, 20, 30)  # cohort sizes k of Figure 7

# A user may choose some of the paper's values of these fields, but no others.
SUBSETS = ("selectors", "partitions", "mus")
# What a user may change. Each artefact decides itself which rules of aggregation it compares.
OVERRIDABLE = tuple(
    sorted(setting.name for setting in fields(ComparisonConfig) if setting.name != "aggregations")
)
# Fields that choose which runs are trained. Reports show all runs at hand, whatever they say.
RUN_CHOICES = ("seeds", "first_seed", *SUBSETS)


def task_config(task: str, overrides: Overrides, **fixed: Any) -> ComparisonConfig | None:
    """Return a task's config with a user's overrides, or None if they leave no run.

    Args:
        task: A name in TASKS.
        overrides: Fields that the user changed. Those in SUBSETS choose among the values
            that the artefact has; the others replace its values.
        **fixed: Fields that the artefact itself decides; overrides do not change them.

    Returns:
        The config, or None if a subset has no value in common with the artefact's.
    """
    values = _paper_values(task, overrides) | fixed
    for name, value in overrides.items():
        if name in SUBSETS:
            values[name] = tuple(part for part in values[name] if part in value)
            if not values[name]:
                return None
        elif name not in fixed:
            values[name] = value
    return ComparisonConfig.from_dict(values)


def full_config(task: str, overrides: Overrides, **fixed: Any) -> ComparisonConfig:
    """Return a task's config with all of its runs, whatever subset the user asked for.

    Reports use it: a table shows every scheme, also those that were not asked for now.

    Args:
        task: A name in TASKS.
        overrides: Fields that the user changed; those in SUBSETS are ignored.
        **fixed: Fields that the artefact itself decides.
    """
    values = _paper_values(task, overrides) | without_subsets(overrides) | fixed
    return ComparisonConfig.from_dict(values)


def without_subsets(overrides: Overrides) -> dict[str, Any]:
    """Return the overrides that do not choose a subset of the runs."""
    return {name: value for name, value in overrides.items() if name not in SUBSETS}


def _paper_values(task: str, overrides: Overrides) -> dict[str, Any]:
    """Return a task's values in the paper, with the network of the data set that is played."""
    values = PAPER | {"dataset": task} | TASKS[task]
    dataset = overrides.get("dataset", task)
    if dataset in TASKS:
        values["model"] = TASKS[dataset]["model"]  # not that of the other task's images
    return values


def without_run_choices(overrides: Overrides) -> dict[str, Any]:
    """Return the overrides that have an effect on reports."""
    return {name: value for name, value in overrides.items() if name not in RUN_CHOICES}


def has_papers_data(overrides: Overrides) -> bool:
    """Return whether the data are the paper's: one of its data sets is named, or none."""
    return overrides.get("dataset") in (None, *TASKS)


def check_overrides(overrides: Overrides, names: Collection[str]) -> None:
    """Check that the named artefacts can take the overrides.

    Args:
        overrides: Fields of `ComparisonConfig` that the user changed.
        names: Names of artefacts.

    Raises:
        ValueError: If an override is unknown, or has a value that an artefact cannot take.
    """
    for name in overrides:
        check_choice("setting", name, OVERRIDABLE)
    for name in SUBSETS:
        if name in overrides:
            _check_subset(name, overrides[name])
    full_config("cifar10", overrides)
    if "figure7" in names or "claims" in names:
        for cohort in COHORTS:
            full_config("cifar10", overrides, cohort=cohort)


def _check_subset(name: str, values: Collection[Any]) -> None:
    if not values:
        raise ValueError(f"{name} must be a list of at least one, got none")
    if name == "mus":
        allowed = ", ".join(f"{mu:g}" for mu in PAPER["mus"])
        for mu in values:
            if mu not in PAPER["mus"]:
                raise ValueError(f"mus must be one of {allowed}, got {mu!r}")
        return
    choices = list(PAPER[name])
    if name == "selectors":
        choices.append("e3cs-robust")  # one of the ablations plays it
    if name == "partitions":
        choices.append(INDEPENDENT_DRAWS)  # the tables play it
    for value in values:
        check_choice(name.removesuffix("s"), value, choices)


def fields_for(dataset: Dataset, clients: int) -> dict[str, Any]:
    """Return a model, a number of samples and test rounds that suit a data set.

    The paper's values are for its own two data sets. Other data may have smaller images,
    fewer samples or no official test set.

    Args:
        dataset: The data.
        clients: Number of clients, K.
    """
    samples: int | None = PAPER["samples_per_client"]
    if len(dataset.y) < clients * PAPER["samples_per_client"]:
        samples = None  # all data, divided evenly
    official_every = PAPER["official_every"]
    if dataset.test_y is None:
        official_every = 0
    return {
        "model": _model_for(dataset.x.shape[1:]),
        "samples_per_client": samples,
        "official_every": official_every,
    }


def _model_for(shape: tuple[int, ...]) -> str:
    """Return a model for samples of this shape: (channels, height, width) or (features,)."""
    side = min(shape[1:], default=0)
    if side < 16:
        return "mlp"
    if shape[0] > 1:
        return "cifar-cnn"
    return "emnist-cnn"
