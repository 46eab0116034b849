"""The settings whose values are names: registered ones, or references to one's own."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.data import DATASETS, PARTITIONS
from fedcohort.references import expand_name, is_reference, short_label, short_labels
from fedcohort.selection.registry import SELECTORS
from fedcohort.world.registry import WORLDS

if TYPE_CHECKING:
    from fedcohort.lab.config import ComparisonConfig, Config

T = TypeVar("T")

KINDS = {  # of what each setting names
    "selectors": "selector",
    "world": "world",
    "aggregations": "aggregation",
    "model": "model",
    "dataset": "dataset",
    "partitions": "partition",
}
REGISTRIES: dict[str, Collection[str]] = {
    "selector": SELECTORS,
    "world": WORLDS,
    "aggregation": AGGREGATIONS,
    "dataset": DATASETS,
    "partition": PARTITIONS,
}


def registered_names(kind: str) -> Collection[str] | None:
    """Return the registered names of a kind; None for models without PyTorch."""
    if kind != "model":
        return REGISTRIES[kind]
    try:
        # Imported here, not at the top: `--help` must not load PyTorch.
        from fedcohort.learning.models import MODELS
    except ModuleNotFoundError:
        return None
    return MODELS


def is_npz(name: Any) -> bool:
    """Return whether a data set is a .npz file, and no name."""
    return isinstance(name, str) and name.endswith(".npz")


def is_own_data(name: str) -> bool:
    """Return whether a data set is a user's, and may change: a .npz file, or a reference."""
    return is_npz(name) or is_reference(name)


def expand_names(config: "Config") -> None:
    """Replace each name that an installed package registers by `package:name`."""
    for setting, kind in KINDS.items():
        value = getattr(config, setting, None)
        if value is None or is_npz(value):
            continue
        registry = registered_names(kind)
        if registry is None:
            continue
        if isinstance(value, tuple):
            value = tuple(expand_name(kind, part, registry) for part in value)
        else:
            value = expand_name(kind, value, registry)
        object.__setattr__(config, setting, value)


def find_references(config: "Config") -> dict[str, str]:
    """Return the kinds of all parts of one's own that a configuration names, by reference."""
    kinds = {}
    for setting, kind in KINDS.items():
        value = getattr(config, setting, ())
        names = value if isinstance(value, tuple) else (value,)
        for name in names:
            if is_reference(name) and not is_npz(name):
                kinds[name] = kind
    return kinds


def selector_labels(config: "Config") -> dict[str, str]:
    """Return the label of each selector in tables, figures and file names."""
    return short_labels(config.selectors)


def labelled(values: Mapping[str, T], config: "Config") -> dict[str, T]:
    """Return values by the label of their selector instead of its name.

    Args:
        values: Anything by name of the selector; other names stay.
        config: The configuration that names the selectors.
    """
    labels = selector_labels(config)
    return {labels.get(name, name): value for name, value in values.items()}


def data_and_model(config: "ComparisonConfig") -> str:
    """Return the data set and the model in two words, for titles."""
    dataset = config.dataset if is_npz(config.dataset) else short_label(config.dataset)
    return f"{dataset}, {short_label(config.model)}"


def aggregation_labels(config: "ComparisonConfig") -> dict[str, str]:
    """Return the label of each aggregation rule in tables, figures and file names."""
    return short_labels(config.aggregations)


def partition_labels(config: "ComparisonConfig") -> dict[str, str]:
    """Return the label of each partition in tables, figures and file names."""
    return short_labels(config.partitions)
