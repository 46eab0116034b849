"""The aggregation rule, and what remembering updates costs."""

import json
from dataclasses import dataclass
from importlib.resources import files

from fedcohort.aggregation.registry import AGGREGATIONS

DEFAULT = "normalised"
# What our study found (results/what-helps.md); `make results` writes the file.
FOUND: dict[str, str] = json.loads(files(__package__).joinpath("study.json").read_text("utf-8"))
STUDY = (
    "In our study no rule was ahead of averaging the updates that arrive (`normalised`) for "
    "certain with uniform selection, and counting missing clients as the unchanged model "
    f"(`paper`) lost {FOUND['paper-points']} points in all {FOUND['cases']} cases."
)
MEMORY_STUDY = (
    "Remembering updates (`mifa`, `fedvarp`) changed the accuracy on non-iid data by "
    f"{FOUND['memory-points']} points, for certain in no single case with uniform selection."
)


@dataclass(frozen=True)
class RuleAdvice:
    """Which rule to use.

    Attributes:
        best: Name of the recommended rule.
        memory_bytes: Bytes of the server that a rule with memory needs; None if the size of the
            model is unknown.
        remembering: Names of the rules that remember updates.
    """

    best: str
    memory_bytes: int | None
    remembering: tuple[str, ...]


def advise_rule(clients: int, model_bytes: int | None) -> RuleAdvice:
    """Return which aggregation rule to use.

    A log says nothing about data, so the rule is the one that never lost in our study.

    Args:
        clients: Number of clients.
        model_bytes: Size of the model; None if it is unknown.

    Examples:
        >>> advise_rule(100, 3_000_000).memory_bytes
        300000000
    """
    remembering = [name for name, rule in AGGREGATIONS.items() if rule.remembers_updates]
    memory = None if model_bytes is None else clients * model_bytes
    return RuleAdvice(DEFAULT, memory, tuple(remembering))
