"""A partition from a file deals the samples, and one that gives no samples is refused."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.data import Dataset
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.owners import deal_samples
from fedcohort.lab.runs import run_groups

GOOD = """
def by_turns(labels, num_clients, rng, samples_per_client):
    return [list(range(client, len(labels), num_clients)) for client in range(num_clients)]
"""


@pytest.fixture
def data():
    return Dataset("points", np.zeros((40, 2), np.float32), np.arange(40) % 2, num_classes=2)


def make_config(partition):
    return ComparisonConfig(partitions=(partition,), clients=4, cohort=2, seeds=1, rounds=2)


def test_a_partition_from_a_file_deals_the_samples(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(GOOD)
    config = make_config("mine.py:by_turns")
    owners = deal_samples(config, data, "mine.py:by_turns", seed=0)
    for client in range(4):
        owned = np.concatenate([owners.train[client], owners.test[client]])
        assert sorted(owned.tolist()) == list(range(client, 40, 4))
    assert {group.partition for group in run_groups(config)} == {"by_turns"}


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("[[0]] * 3", r"must give samples to 4 clients, got 3"),
        ("[[0], [1], [], [2]]", r"must give client 2 a list of at least one index, got \[\]"),
        ("[[0], [1.5], [2], [3]]", r"must give client 1 a list of at least one index"),
        ("[[0], [1], [2], [40]]", r"must give client 3 indices from 0 to 39, got 40 to 40"),
        ("[[0], [1], [2], [-1]]", r"must give client 3 indices from 0 to 39, got -1 to -1"),
        (
            "[[0], [1, 2, 1], [2], [3]]",
            r"must give client 1 every sample once at most, got 3 indices of 2 samples",
        ),
        ("7", r"must return a list, got 7"),
        ("1 / 0", r"must be made without an error, got ZeroDivisionError"),
    ],
)
def test_a_partition_that_gives_no_samples_is_refused(
    tmp_path, monkeypatch, data, returned, problem
):
    monkeypatch.chdir(tmp_path)
    Path("bad.py").write_text(f"def deal(labels, clients, rng, size):\n    return {returned}\n")
    with pytest.raises(ValueError, match=r"partition 'bad.py:deal' " + problem):
        deal_samples(make_config("bad.py:deal"), data, "bad.py:deal", seed=0)


def test_a_misspelt_partition_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match=r"partition must be one of .*dirichlet"):
        make_config("dirichelt")
