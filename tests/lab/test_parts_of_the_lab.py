"""Small parts of the laboratory beside what plain loops say."""

from dataclasses import replace

import numpy as np
import pytest

from fedcohort.data import Dataset
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.owners import deal_samples
from fedcohort.lab.parts import remaining_parts
from fedcohort.lab.runs import run_groups, run_keys
from fedcohort.lab.simulation_result import collect
from fedcohort.lab.summary import accuracy_curves
from fedcohort.lab.trial_world import open_runs_world
from fedcohort.selection.random import Random

CONFIG = ComparisonConfig(
    selectors=("fedcs", "random"),
    partitions=("iid", "primary-label"),
    aggregations=("paper", "normalised"),
    mus=(0.0, 0.5),
    seeds=2,
    first_seed=3,
    clients=4,
    cohort=2,
    rounds=3,
)


def test_groups_hold_the_rows_of_their_runs_in_the_order_of_the_seeds():
    keys = run_keys(CONFIG)
    groups = run_groups(CONFIG)
    labels = []
    for partition in ("iid", "primary-label"):
        for rule in ("paper", "normalised"):
            for mu in ("0", "0.5"):
                labels.append(f"{partition} data, {rule} rule, mu {mu}")
    assert [group.label for group in groups] == labels
    seen = []
    for group in groups:
        assert group.seeds == [3, 4]
        assert list(group.rows) == ["fedcs", "random"]
        for selector, rows in group.rows.items():
            for row, seed in zip(rows, group.seeds, strict=True):
                key = keys[row]
                assert (key.selector, key.seed) == (selector, seed)
                assert (key.partition, key.aggregation) == (group.partition, group.aggregation)
                assert key.mu == group.mu
            seen += rows
    assert sorted(seen) == list(range(2 * 2 * 2 * 2 * 2))


def test_curves_of_a_group_are_those_of_its_runs():
    accuracy = np.arange(3 * 32.0).reshape(3, 32)
    curves = accuracy_curves(CONFIG, {"accuracy": accuracy})
    for group in run_groups(CONFIG):
        for selector, rows in group.rows.items():
            expected = [[accuracy[round, row] for round in range(3)] for row in rows]
            assert curves[group.label][selector].tolist() == expected


@pytest.mark.parametrize("partition", ["iid", "primary-label"])
def test_a_client_trains_on_what_is_not_reserved_for_tests(partition):
    data = Dataset("tiny", x=np.zeros((200, 1)), y=np.arange(200) % 4, num_classes=4)
    config = replace(CONFIG, samples_per_client=40, test_fraction=0.1)
    owners = deal_samples(config, data, partition, seed=3)
    assert [len(own) for own in owners.train] == [36] * 4
    assert [len(own) for own in owners.test] == [4] * 4
    for train, test in zip(owners.train, owners.test, strict=True):
        assert set(train.tolist()).isdisjoint(test.tolist())
    together = []
    names = []
    for client, own in enumerate(owners.test):
        together += own.tolist()
        names += [client] * len(own)
    assert owners.test_samples.tolist() == together
    assert owners.test_owners.tolist() == names


def test_data_without_owners_are_refused_only_where_owners_are_needed():
    plain = Dataset("tiny", x=np.zeros((40, 1)), y=np.arange(40) % 4, num_classes=4)
    config = replace(CONFIG, samples_per_client=None)
    with pytest.raises(ValueError, match="partition 'by-client' needs a data set with a column"):
        deal_samples(config, plain, "by-client", seed=3)
    owned = replace(plain, clients=np.arange(40) // 10)
    owners = deal_samples(config, owned, "by-client", seed=3)
    for client in range(4):
        own = sorted([*owners.train[client].tolist(), *owners.test[client].tolist()])
        assert own == list(range(10 * client, 10 * client + 10))


def test_everybody_who_would_have_answered_is_counted_whether_asked_or_not():
    answers = [
        np.array([[1, 1, 1, 0, 0], [0, 0, 0, 0, 1]], dtype=bool),
        np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=bool),
    ]
    selector = Random(5, 2, rng=[0, 1])
    played = collect(selector, iter(answers), None, rounds=2, runs=2)
    assert played.answering.tolist() == [[3, 0], [1, 5]]
    assert played.counts.sum(axis=1).tolist() == [4, 4]
    assert played.asked_in(2).tolist() == [[2, 2], [2, 2]]


def test_rounds_of_a_world_last_as_long_as_the_epochs_of_its_clients():
    config = replace(CONFIG, epochs=(1, 2), seconds_per_epoch=3.0, jitter=0.0, rates=(1.0,))
    keys = run_keys(config)
    counts = {}
    for partition in config.partitions:
        for seed in (3, 4):
            counts[partition, seed] = np.ones((4, 2), dtype=np.int64)
    world = open_runs_world(config, keys, counts, model_bytes=8)
    row = next(iter(world.seconds))
    assert row.shape == (32, 4)
    assert set(row.ravel().tolist()) <= {3.0, 6.0}
    by_seed = {key.seed: row[position].tolist() for position, key in enumerate(keys)}
    for position, key in enumerate(keys):
        assert row[position].tolist() == by_seed[key.seed]


def test_nothing_remains_of_a_finished_comparison_and_all_of_a_new_one():
    (part,) = remaining_parts(CONFIG, finished=())
    assert run_keys(part) == run_keys(CONFIG)
    assert (part.first_seed, part.seeds) == (3, 2)
