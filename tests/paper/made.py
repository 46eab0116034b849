"""Training runs made by hand, and a tiny comparison."""

import numpy as np

from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import Result
from fedcohort.paper.setting import task_config

SINGLE = {
    "selectors": ("random",),
    "partitions": ("iid",),
    "aggregations": ("paper",),
    "mus": (0.0,),
    "seeds": 1,
}

# A comparison that trains in a second.
TINY = {
    "dataset": "digits",
    "rounds": 7,
    "clients": 12,
    "cohort": 4,
    "selectors": ("e3cs-inc", "random", "pow-d"),
    "partitions": ("primary-label",),
    "mus": (0.0,),
    "epochs": (1, 2),
    "batch_size": 10,
    "checkpoint_every": 3,
    "mode": "one-by-one",
}


def result(
    config=None,
    accuracy=(0.1,),
    counts=None,
    valid=None,
    official=None,
    provenance=None,
    **overrides,
):
    """Return a run with this accuracy; it is finished unless `rounds` says there are more."""
    base = config or task_config("cifar10", {})
    values = base.as_dict() | SINGLE | {"rounds": len(accuracy)} | overrides
    given = {name: value for name, value in values.items() if value is not None}
    single = ComparisonConfig.from_dict(given)

    curve = np.array(accuracy, dtype=np.float32)
    if official is None:
        official = np.full(curve.shape, np.nan)
    if valid is None:
        valid = np.full(curve.shape, 3)
    if counts is None:
        counts = np.arange(single.clients)
    return Result(
        single,
        curve,
        1 - curve,
        np.array(official, np.float32),
        np.array(valid, np.uint16),
        np.array(counts, np.uint32),
        provenance or {},
    )
