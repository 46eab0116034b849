"""Choose which clients train in each round of federated learning when clients fail.

Examples:
    >>> selector = E3CS(num_clients=100, cohort_size=20, rng=0, quota=0.5)
    >>> world = bernoulli(class_rates(100), rng=0)
    >>> for would_answer, round in zip(world, range(3)):
    ...     cohort = selector.select(round)
    ...     selector.update(Outcome(cohort, success=would_answer[cohort.clients]))
"""

from fedcohort.rng import stream
from fedcohort.rounds import Record, play
from fedcohort.selection.age import Age
from fedcohort.selection.allocation import Allocation, allocate
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.clustered import ClusteredSampling
from fedcohort.selection.cs_ucb import CSUCB, CSUCBQ
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.f3ast import F3AST
from fedcohort.selection.fedcs import FedCS
from fedcohort.selection.fedcs_time import FedCSTime
from fedcohort.selection.oort import Oort
from fedcohort.selection.optimal import OptimalSampling
from fedcohort.selection.over_selection import OverSelection
from fedcohort.selection.powd import LastLoss, PowD
from fedcohort.selection.protocol import Cohort, Outcome, Selector
from fedcohort.selection.random import Random
from fedcohort.selection.rbcs_f import RBCSF
from fedcohort.selection.refl import REFL
from fedcohort.selection.registry import SELECTORS, Federation, Scheme, make_selector
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates

__version__ = "0.1.0"
__all__ = [
    "CSUCB",
    "CSUCBQ",
    "E3CS",
    "F3AST",
    "RBCSF",
    "REFL",
    "SELECTORS",
    "Age",
    "Allocation",
    "BaseSelector",
    "ClusteredSampling",
    "Cohort",
    "FedCS",
    "FedCSTime",
    "Federation",
    "LastLoss",
    "Oort",
    "OptimalSampling",
    "Outcome",
    "OverSelection",
    "PowD",
    "Random",
    "Record",
    "Scheme",
    "Selector",
    "allocate",
    "bernoulli",
    "class_rates",
    "make_selector",
    "play",
    "stream",
]
