from dataclasses import replace

import numpy as np
import pytest

from .small import TRAIN, make_runs

NONE = np.array([], dtype=np.int64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mu": -1.0}, "mu must be between 0.0 and 1000000.0, got -1.0"),
        ({"mu": float("nan")}, "mu must be between"),
        ({"server_rate": float("nan")}, "server_rate must be a finite number above 0, got nan"),
        ({"server_rate": -1.0}, "server_rate must be a finite number above 0, got -1.0"),
        ({"server_momentum": -2.0}, "server_momentum must be between 0.0 and 1.0, got -2.0"),
        ({"epochs": np.array([1.5, 1, 1, 1])}, "epochs must be whole numbers, got 1.5"),
        ({"epochs": np.array([1, 0, 1, 1])}, "epochs must be between 1 and .*, got 0"),
        ({"epochs": np.array([1, 2])}, r"epochs must have shape \(4,\), got \(2,\)"),
        ({"test": NONE}, "test must hold at least one sample, got none"),
        ({"train": []}, "train must hold at least one sample per client"),
        (
            {"train": [*TRAIN[:3], NONE]},
            "train must hold at least one sample per client, got none for client 3",
        ),
        ({"aggregation": "mean"}, r"aggregation must be one of .*, got 'mean'"),
    ],
)
def test_a_run_that_could_not_learn_is_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(make_runs()[0], **changes)
