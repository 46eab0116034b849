"""The one list of aggregation rules: the engine, Flower, the command line and the docs read it."""

from collections.abc import Callable
from typing import Any

from fedcohort.aggregation.normalised import normalised
from fedcohort.aggregation.paper import paper

Rule = Callable[[Any, Any], Any]  # step [R, P] and arrived [R] to change [R, P]

AGGREGATIONS: dict[str, Rule] = {
    "paper": paper,
    "normalised": normalised,
}
