"""What each run of a comparison is given: its own world, samples, epochs, model and losses."""

from itertools import islice

import numpy as np
import pytest
import torch

from fedcohort.data import Dataset, label_counts
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.recorder import read_allocations
from fedcohort.lab.trial import Trial, deal_samples
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.durations import local_epochs

CLIENTS = 8
DATA = Dataset(
    "tiny",
    x=np.random.default_rng(0).normal(size=(160, 3)).astype(np.float32),
    y=np.arange(160) % 4,
    num_classes=4,
)


def make_config(**changed):
    settings = {
        "selectors": ("random", "pow-d"),
        "partitions": ("iid", "primary-label"),
        "aggregations": ("paper",),
        "seeds": 2,
        "first_seed": 5,
        "clients": CLIENTS,
        "cohort": 3,
        "rounds": 8,
        "epochs": (1, 2, 3, 4),
        "mode": "one-by-one",
        "checkpoint_every": 3,
    }
    return ComparisonConfig(**(settings | changed))


@pytest.fixture
def make_trial(tmp_path):
    """Return a maker of trials in a new folder."""

    def make(**changed):
        return Trial(make_config(**changed), DATA, tmp_path / "run")

    return make


def test_every_run_plays_the_world_of_its_seed(make_trial):
    trial = make_trial()
    rows = np.stack(list(islice(trial.open_world().seconds, 8)))
    rates = class_rates(CLIENTS)
    for position, key in enumerate(trial.keys):
        answers = np.stack(list(islice(bernoulli(rates, key.seed), 8)))
        np.testing.assert_array_equal(np.isfinite(rows[:, position]), answers)


@pytest.mark.parametrize("partition", ["iid", "primary-label"])
def test_the_samples_of_a_seed_are_the_same_whichever_seed_is_the_first(partition):
    def owned(first_seed, seed):
        owners = deal_samples(make_config(first_seed=first_seed), DATA, partition, seed)
        return np.concatenate(owners.train), np.concatenate(owners.test)

    for together, alone in zip(owned(5, 6), owned(6, 6), strict=True):
        np.testing.assert_array_equal(together, alone)
    for one, other in zip(owned(5, 5), owned(5, 6), strict=True):
        assert not np.array_equal(one, other)


def test_every_run_has_the_samples_and_the_epochs_of_its_seed(make_trial):
    trial = make_trial()
    for key, run in zip(trial.keys, trial.engine.runs, strict=True):
        owners = deal_samples(trial.config, DATA, key.partition, key.seed)
        for own, expected in zip(run.train, owners.train, strict=True):
            np.testing.assert_array_equal(own, expected)
        np.testing.assert_array_equal(run.test, np.concatenate(owners.test))
        np.testing.assert_array_equal(run.epochs, local_epochs(CLIENTS, key.seed))


def test_runs_start_from_the_same_model_if_and_only_if_they_have_the_same_seed(make_trial):
    trial = make_trial()
    models = trial.engine.models
    for one, key in enumerate(trial.keys):
        for other, other_key in enumerate(trial.keys):
            assert torch.equal(models[one], models[other]) == (key.seed == other_key.seed)


def test_pow_d_ranks_clients_by_the_losses_of_its_own_run(make_trial):
    trial = make_trial(candidates=CLIENTS)
    chance = torch.Generator().manual_seed(0)
    trial.engine.models = torch.randn(trial.engine.models.shape, generator=chance)
    cohort = trial.selector.select(0)
    for position, key in enumerate(trial.keys):
        if key.selector == "pow-d":
            everyone = np.arange(CLIENTS)[None, :]
            losses = trial.engine.losses([position], everyone)[0]
            highest = np.sort(np.argsort(-losses)[:3])
            np.testing.assert_array_equal(cohort.clients[position], highest)


def test_pow_d_has_as_many_candidates_as_the_settings_say(make_trial):
    trial = make_trial(selectors=("pow-d",), candidates=4)
    assert (trial.selector.select(0).inclusion == 4 / CLIENTS).all()


def test_labels_are_counted_on_the_samples_that_are_trained_on(make_trial):
    trial = make_trial()
    pairs = [("iid", 5), ("iid", 6), ("primary-label", 5), ("primary-label", 6)]
    assert list(trial.label_counts) == pairs
    for (partition, seed), counts in trial.label_counts.items():
        train = deal_samples(trial.config, DATA, partition, seed).train
        np.testing.assert_array_equal(counts, label_counts(DATA.y, train, 4))


def test_an_update_that_is_rejected_wastes_the_bytes_of_two_models(make_trial):
    trial = make_trial(max_norm=1e-9)  # so that every update that arrives is rejected
    trial.run()
    records = run_folder.load_records(trial.folder)
    assert not records["valid"].any()
    arrived = records["arrived"].sum(axis=-1)
    models = 2 * arrived + (3 - arrived)
    np.testing.assert_array_equal(records["wasted_bytes"], models * trial.engine.model_bytes)


def test_accuracy_is_recorded_by_class_of_clients_and_by_label(make_trial):
    trial = make_trial(evaluate_every=3)
    trial.run()
    records = run_folder.load_records(trial.folder)
    by_class, by_label = records["class_accuracy"], records["label_accuracy"]
    assert by_class.dtype == by_label.dtype == np.float32
    assert by_class.shape == by_label.shape == (8, 8, 4)
    tested = [2, 5, 7]  # every third round and the last
    for values in (by_class, by_label):
        has_test = ~np.isnan(values).all(axis=(1, 2))
        assert np.flatnonzero(has_test).tolist() == tested

    rates = run_folder.load_class_rates(trial.folder)
    np.testing.assert_allclose(rates, [0.1, 0.3, 0.6, 0.9])
    for position, key in enumerate(trial.keys):
        owners = deal_samples(trial.config, DATA, key.partition, key.seed)
        for number in range(4):
            own = np.concatenate(owners.test[2 * number : 2 * number + 2])  # blocks of two clients
            expected = trial.engine.evaluate(own).accuracy[position]
            assert by_class[-1, position, number] == np.float32(expected)
        tests = np.concatenate(owners.test)
        for label in range(4):
            own = tests[DATA.y[tests] == label]
            expected = trial.engine.evaluate(own).accuracy[position]
            assert by_label[-1, position, label] == np.float32(expected)


def test_losses_are_recorded_by_class_of_clients_where_they_were_asked_for(make_trial):
    trial = make_trial(losses_every=3)
    trial.run()
    by_class = run_folder.load_records(trial.folder)["class_loss"]
    assert by_class.shape == (8, 8, 4)
    recorded = ~np.isnan(by_class).all(axis=(1, 2))
    assert np.flatnonzero(recorded).tolist() == [2, 5, 7]  # every third round and the last

    for position, key in enumerate(trial.keys):
        owners = deal_samples(trial.config, DATA, key.partition, key.seed)
        by_client = []
        for own in owners.train:
            by_client.append(trial.engine.evaluate(own).loss[position])
        expected = np.reshape(by_client, (4, 2)).mean(axis=1)  # classes are blocks of two clients
        np.testing.assert_allclose(by_class[-1, position], expected, rtol=1e-6)


def test_losses_that_nobody_asked_for_are_not_recorded_and_change_nothing(tmp_path):
    plain = Trial(make_config(), DATA, tmp_path / "plain")
    plain.run()
    asked = Trial(make_config(losses_every=1), DATA, tmp_path / "asked")
    asked.run()
    expected = run_folder.load_records(plain.folder)
    found = run_folder.load_records(asked.folder)
    assert found.keys() - expected.keys() == {"class_loss"}
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_values_by_class_are_the_same_in_a_run_that_was_resumed(tmp_path):
    config = make_config(losses_every=2)
    whole = Trial(config, DATA, tmp_path / "whole")
    whole.run()
    part = Trial(config, DATA, tmp_path / "part")
    rounds = iter(range(1, 9))
    part.run(should_stop=lambda: next(rounds) == 4)
    resumed = Trial(config, DATA, tmp_path / "part")
    resumed.restore()
    assert resumed.done == 4
    resumed.run()
    expected = run_folder.load_records(whole.folder)
    found = run_folder.load_records(resumed.folder)
    assert found.keys() == expected.keys()
    for name in ("class_accuracy", "label_accuracy", "class_loss"):
        np.testing.assert_array_equal(found[name], expected[name])


def test_a_run_of_an_older_version_goes_on_with_what_it_recorded(tmp_path):
    trial = Trial(make_config(), DATA, tmp_path / "run")
    rounds = iter(range(1, 9))
    trial.run(should_stop=lambda: next(rounds) == 3)
    old = run_folder.load_records(trial.folder)
    del old["class_accuracy"], old["label_accuracy"]
    run_folder.save_records(trial.folder, 0, old)

    resumed = Trial(make_config(), DATA, tmp_path / "run")
    resumed.restore()
    resumed.run()
    records = run_folder.load_records(trial.folder)
    assert records.keys() == old.keys()
    assert len(records["accuracy"]) == 8


def test_probabilities_are_recorded_before_every_round_with_the_quota_of_that_round(make_trial):
    trial = make_trial(selectors=("e3cs-inc",))
    trial.run()
    recorded = read_allocations(trial.folder)["e3cs-inc"]
    assert recorded.rounds.tolist() == list(range(8))
    # From round 8 // 4 = 2 on, everyone is asked with 3/8; in float16 that is exact.
    assert (recorded.inclusion[2:] == 3 / 8).all()
    assert (recorded.inclusion[1] != 3 / 8).any()


def test_clients_of_a_comparison_answer_at_the_rates_of_the_settings(make_trial):
    trial = make_trial(rates=(0.0, 1.0))
    for row in islice(trial.open_world().seconds, 8):
        np.testing.assert_array_equal(np.isfinite(row), np.tile(np.arange(8) >= 4, (8, 1)))
