"""Names and references as a user writes them, and their short labels; nothing is imported."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePath
from typing import Any

from fedcohort.checks import check_choice, shown

GROUPS = {  # of entry points, by kind
    "selector": "fedcohort.selectors",
    "world": "fedcohort.worlds",
    "aggregation": "fedcohort.aggregations",
    "model": "fedcohort.models",
    "dataset": "fedcohort.datasets",
    "partition": "fedcohort.partitions",
}
SYNONYMS = {  # words of other programs and of the paper for our names, by kind
    "partition": {"non-iid": "primary-label", "noniid": "primary-label"},
    "aggregation": {"fedavg": "normalised", "fed-avg": "normalised"},
}
PACKAGE = re.compile(r"[\w-]+(\.[\w-]+)*")  # a module, or an installed package
NAME = re.compile(r"[\w.+-]+")  # a variable, or a name that a package registers


def is_reference(name: str) -> bool:
    """Return whether a name is written as `package.module:name` or `file.py:name`.

    Examples:
        >>> is_reference("mine.py:Oldest"), is_reference("random")
        (True, False)
    """
    place, _, variable = name.rpartition(":")
    if is_file(name):
        return place.isprintable() and variable.isidentifier()
    return bool(PACKAGE.fullmatch(place) and NAME.fullmatch(variable))


def is_file(reference: str) -> bool:
    """Return whether a reference names a file, not a module."""
    return reference.rpartition(":")[0].endswith(".py")


def installed_names(kind: str) -> dict[str, list[str]]:
    """Return the names that installed packages register, each with its packages.

    Args:
        kind: A key of `GROUPS`.
    """
    names: dict[str, list[str]] = {}
    for entry in entry_points(group=GROUPS[kind]):
        if NAME.fullmatch(entry.name):
            names.setdefault(entry.name, []).append(_package(entry))
    return names


def find_entry_point(kind: str, reference: str) -> EntryPoint | None:
    """Return the entry point that a package registers, None if it registers none.

    Args:
        kind: A key of `GROUPS`.
        reference: `package:name`.
    """
    package, _, name = reference.rpartition(":")
    for entry in entry_points(group=GROUPS[kind], name=name):
        if _package(entry) == package:
            return entry
    return None


def _package(entry: EntryPoint) -> str:
    return entry.module if entry.dist is None else entry.dist.name


def expand_name(kind: str, name: Any, registry: Collection[str]) -> Any:
    """Return `package:name` for a name that one installed package registers.

    Other values stay as they are. Settings hold the long form, which says what it is even where
    the package is missing.

    Args:
        kind: A key of `GROUPS`.
        name: The name as the user gave it.
        registry: The names that fedcohort itself registers; they take precedence.
    """
    if not isinstance(name, str) or ":" in name or name in registry:
        return name
    packages = installed_names(kind).get(name, [])
    return f"{packages[0]}:{name}" if len(packages) == 1 else name


def check_name(kind: str, name: Any, registry: Collection[str]) -> None:
    """Refuse a name that is neither registered nor written as a reference.

    Args:
        kind: A key of `GROUPS`, for the message.
        name: The name to check.
        registry: The names that fedcohort itself registers.

    Raises:
        ValueError: If it is neither, with the nearest name as a suggestion.

    Examples:
        >>> check_name("selector", "mine.py", ["random"])
        Traceback (most recent call last):
        ValueError: selector must be package.module:name or file.py:name, got 'mine.py'
    """
    word = name if isinstance(name, str) else ""
    if word in registry or is_reference(word):
        return
    if ":" in word or word.endswith(".py"):
        raise ValueError(f"{kind} must be package.module:name or file.py:name, got {shown(name)}")

    installed = installed_names(kind)
    packages = installed.get(word, [])
    if len(packages) > 1:
        choices = " or ".join(f"{package}:{name}" for package in packages)
        raise ValueError(f"{kind} must say from which package: {choices}, got {name!r}")
    if not packages:
        check_choice(kind, name, [*registry, *installed], SYNONYMS.get(kind))


def short_label(name: str) -> str:
    """Return the short form of a name for titles: what stands behind the colon of a reference.

    Examples:
        >>> short_label("schemes/mine.py:Oldest"), short_label("random")
        ('Oldest', 'random')
    """
    return name.rpartition(":")[2] if is_reference(name) else name


def as_file_name(text: str) -> str:
    """Return a text that can be part of a file name: no separators, no colons, no spaces.

    Examples:
        >>> as_file_name("parts/../mine.py:Oldest")
        'parts_.._mine.py_Oldest'
    """
    return re.sub(r"[^\w.+-]", "_", text)


def short_labels(names: Sequence[str]) -> dict[str, str]:
    """Return a label for each name: short, different from the others', and fit for file names.

    Args:
        names: Registered names, which are their own labels, and references.

    Examples:
        >>> list(short_labels(["random", "v1.py:Mine", "v2.py:Mine", "more.py:Oldest"]).values())
        ['random', 'v1.Mine', 'v2.Mine', 'Oldest']
    """
    counts = Counter(short_label(name) for name in names)
    labels: dict[str, str] = {}
    for position, name in enumerate(names):
        label = short_label(name)
        if is_reference(name) and counts[label] > 1:
            place = name.rpartition(":")[0].removesuffix(".py")
            label = f"{PurePath(place).name}.{label}"
        if is_reference(name):
            label = as_file_name(label)
        if label in labels.values():
            label = f"{label}.{position}"
        labels[name] = label
    return labels
