"""Results made by hand."""

import numpy as np

from fedcohort.lab.archive import Result
from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper.setting import setting


def result(of=None, accuracy=(0.1,), counts=None, valid=None, official=None, about=None, **changes):
    """Return a run with this accuracy; its rounds are all played unless `rounds` says that there are more."""
    one = {
        "selectors": ("random",),
        "partitions": ("iid",),
        "aggregations": ("paper",),
        "mus": (0.0,),
        "seeds": 1,
    }
    base = (of or setting("cifar10", {})).as_dict() | one | {"rounds": len(accuracy)} | changes
    settings = ComparisonConfig.from_dict(
        {name: value for name, value in base.items() if value is not None}
    )
    curve = np.array(accuracy, dtype=np.float32)
    return Result(
        settings,
        curve,
        1 - curve,
        np.full(curve.shape, np.nan, np.float32)
        if official is None
        else np.array(official, np.float32),
        np.full(curve.shape, 3, np.uint16) if valid is None else np.array(valid, np.uint16),
        np.arange(settings.clients, dtype=np.uint32)
        if counts is None
        else np.array(counts, np.uint32),
        about or {},
    )
