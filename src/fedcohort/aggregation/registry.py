"""The one list of aggregation rules, read by the engine, Flower and the command line."""

from collections.abc import Callable
from typing import Any

from fedcohort.aggregation.normalised import normalised
from fedcohort.aggregation.paper import paper

Rule = Callable[[Any, Any], Any]  # step [R, P] and arrived [R] to change [R, P]

AGGREGATIONS: dict[str, Rule] = {
    "paper": paper,
    "normalised": normalised,
}
