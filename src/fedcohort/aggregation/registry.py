"""The one list of aggregation rules, read by the engine, Flower and the command line."""

from fedcohort.aggregation.base import Rule
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
