from dataclasses import replace
from math import nan, sqrt

import numpy as np
import pytest

from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.summary import comparison_rows

CONFIG = ComparisonConfig(
    selectors=("random", "fedcs"),
    partitions=("iid",),
    aggregations=("paper",),
    seeds=2,
    clients=4,
    cohort=2,
    rounds=3,
    targets=(0.5, 0.9),
)


def records():
    """Return three rounds of four runs: two of random, then two of fedcs."""
    return {
        "accuracy": np.array([[0.1, 0.6, 0.1, 0.1], [0.5, 0.2, 0.2, 0.3], [0.7, 0.9, 0.4, 0.8]]),
        "seconds": np.array([[1.0, 2.0, 3.0, 1.0], [10.0, 20.0, 4.0, 2.0], [5.0, 6.0, 5.0, 4.0]]),
        "valid": np.array(
            [
                [[1, 0], [1, 1], [0, 0], [1, 1]],
                [[1, 1], [1, 1], [0, 0], [1, 1]],
                [[0, 0], [0, 0], [0, 0], [1, 1]],
            ],
            dtype=bool,
        ),
        "clients": np.array([[[0, 1], [0, 1], [2, 3], [2, 3]]] * 3),
        "wasted_seconds": np.array([[1.0, 0, 2, 0], [2.0, 0, 2, 0], [3.0, 2, 2, 0]]),
        "wasted_bytes": np.array([[10**6, 0, 1, 0], [10**6, 0, 1, 0], [10**6, 10**6, 1, 0]]),
    }


def test_the_table_of_a_comparison_is_the_one_worked_out_by_hand():
    random, fedcs = comparison_rows(CONFIG, records())
    assert (random["selector"], fedcs["selector"]) == ("random", "fedcs")
    # Random reaches 0.5 in rounds 2 and 1, after 1 + 10 and 2 seconds.
    assert random["rounds to 0.5"] == pytest.approx((2 + 1) / 2)
    assert random["time to 0.5"] == pytest.approx((11 + 2) / 2)
    # Only one of the runs reaches 0.9, or under FedCS 0.5.
    for value in (random["rounds to 0.9"], random["time to 0.9"], fedcs["time to 0.5"]):
        assert value == pytest.approx(nan, nan_ok=True)
    assert random["final"] == pytest.approx((0.7 + 0.9) / 2)
    assert random["sd"] == pytest.approx(0.1 * sqrt(2))
    assert random["success"] == pytest.approx(7 / 12)
    assert random["Jain"] == pytest.approx(1 / 2)  # two of four clients are asked equally often
    assert random["wasted s"] == pytest.approx((6 + 2) / 2)
    assert random["wasted MB"] == pytest.approx((3 + 1) / 2)
    assert fedcs["wasted s"] == pytest.approx((6 + 0) / 2)
    assert fedcs["success"] == pytest.approx(6 / 12)


def test_mu_has_a_column_only_where_a_comparison_has_several():
    assert all("mu" not in row for row in comparison_rows(CONFIG, records()))
    doubled = {name: np.concatenate([values] * 2, axis=1) for name, values in records().items()}
    rows = comparison_rows(replace(CONFIG, mus=(0.0, 0.5)), doubled)
    assert [row["mu"] for row in rows] == [0.0, 0.0, 0.5, 0.5]


def test_the_worst_class_and_the_gap_are_those_of_the_means_over_seeds():
    by_class = np.full((3, 4, 3), 0.5, dtype=np.float32)
    # Single runs are lowest for other classes than their mean is. A class may have no samples.
    by_class[-1] = [[0.25, 0.5, nan], [0.75, 0.25, nan], [1.0, 0.5, 0.75], [1.0, 0.25, 0.75]]
    by_label = np.full((3, 4, 2), 0.5, dtype=np.float32)
    by_label[-1] = [[0.125, 0.75], [0.25, 0.75], [0.5, 1.0], [1.0, 0.75]]
    recorded = records() | {"class_accuracy": by_class, "label_accuracy": by_label}
    random, fedcs = comparison_rows(CONFIG, recorded)
    assert (random["worst class"], random["gap"]) == (0.375, 12.5)  # means 0.5 and 0.375
    assert (fedcs["worst class"], fedcs["gap"]) == (0.375, 62.5)  # 1, 0.375 and 0.75
    assert (random["worst label"], fedcs["worst label"]) == (0.1875, 0.75)


def test_older_records_and_a_single_class_have_no_worst_class():
    assert {"worst class", "gap", "worst label"}.isdisjoint(comparison_rows(CONFIG, records())[0])
    recorded = records() | {"class_accuracy": np.zeros((3, 4, 1), dtype=np.float32)}
    assert {"worst class", "gap"}.isdisjoint(comparison_rows(CONFIG, recorded)[0])
