"""The one list of aggregation rules, read by the engine, Flower and the command line."""

from fedcohort.aggregation.base import Rule, Setting
from fedcohort.aggregation.fedau import FedAU
from fedcohort.aggregation.fedvarp import FedVARP
from fedcohort.aggregation.inverse import (
    Inverse,
    InverseEstimated,
    InverseNormalised,
    InverseNormalisedEstimated,
)
from fedcohort.aggregation.mifa import Mifa
from fedcohort.aggregation.normalised import Normalised
from fedcohort.aggregation.paper import Paper
from fedcohort.aggregation.qfedavg import QFedAvg
from fedcohort.checks import shown
from fedcohort.references import call_own, resolve

AGGREGATIONS: dict[str, type[Rule]] = {
    "paper": Paper,
    "normalised": Normalised,
    "inverse": Inverse,
    "inverse-estimated": InverseEstimated,
    "inverse-normalised": InverseNormalised,
    "inverse-normalised-estimated": InverseNormalisedEstimated,
    "fedau": FedAU,
    "mifa": Mifa,
    "fedvarp": FedVARP,
    "q-fedavg": QFedAvg,
}
"""Every rule by name."""


def make_rule(name: str, setting: Setting) -> Rule:
    """Return a new rule by its name.

    Args:
        name: See `find_rule`.
        setting: Sizes, and whatever else the rule may know.

    Raises:
        ValueError: If there is no such rule, or the setting lacks something that it needs.

    Examples:
        >>> make_rule("paper", Setting(num_runs=1, num_clients=4)).shape
        (1, 4)
    """
    rule = find_rule(name)
    if name in AGGREGATIONS:
        return rule(setting)
    made: Rule = call_own(f"aggregation {name!r}", rule, setting)
    return made


def find_rule(name: str) -> type[Rule]:
    """Return a rule by its name, or by a reference to one's own.

    Args:
        name: A key of `AGGREGATIONS`, a name that an installed package registers, or a reference
            such as "mine.py:ByLoss" to a subclass of `Rule`.

    Returns:
        The class of the rule.

    Raises:
        ValueError: If there is no such name, or it is of another kind.

    Examples:
        >>> find_rule("normalised").normalises
        True
    """
    found = resolve("aggregation", name, AGGREGATIONS)
    if isinstance(found, type) and issubclass(found, Rule):
        return found
    raise ValueError(f"aggregation {name!r} must be a subclass of Rule, got {shown(found)}")
