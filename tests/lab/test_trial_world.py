"""True success rates in a comparison: only answers before the deadline count."""

from math import log

import numpy as np
import pytest

from fedcohort.data import Dataset
from fedcohort.lab.config import ComparisonConfig, open_world
from fedcohort.lab.runs import run_keys
from fedcohort.lab.trial import Trial
from fedcohort.lab.trial_world import open_runs_world
from fedcohort.world.durations import local_epochs

CLIENTS = 8
SEEDS = (3, 4)
ONE_SIGMA = 0.8413447460685429  # of a normal law, the probability of at most one spread above
DATA = Dataset("tiny", x=np.zeros((160, 3), np.float32), y=np.arange(160) % 4, num_classes=4)


def make_config(**changed):
    settings = {
        "selectors": ("random", "fedcs"),
        "partitions": ("iid",),
        "aggregations": ("inverse",),
        "seeds": len(SEEDS),
        "first_seed": SEEDS[0],
        "clients": CLIENTS,
        "cohort": 2,
        "rounds": 6,
        "rates": (0.5, 0.75),
        "epochs": (1, 2),
        "mode": "one-by-one",
    }
    return ComparisonConfig(**(settings | changed))


def open_it(config):
    counts = {("iid", seed): np.ones((CLIENTS, 4), dtype=np.int64) for seed in SEEDS}
    return open_runs_world(config, run_keys(config), counts, model_bytes=1000)


def expected_rates(quick, slow, rates=(0.5, 0.75)):
    """Return the rates [S, K], where clients of 1 and 2 epochs are in time with these chances."""
    answers = np.repeat(rates, CLIENTS // 2)
    epochs = np.stack([local_epochs(CLIENTS, seed, (1, 2)) for seed in SEEDS])
    assert {1, 2} == set(epochs[0]) == set(epochs[1])
    return answers * np.where(epochs == 1, quick, slow)


def save_seconds(folder):
    """Write six rounds in which clients 4 to 7 always answer, but after 50 seconds."""
    seconds = np.full((6, CLIENTS), 50.0)
    seconds[:, :4] = 1.0
    seconds[::2, :2] = np.inf
    np.save(folder / "seconds.npy", seconds)
    return str(folder / "seconds.npy")


def test_clients_that_need_longer_than_the_deadline_have_the_success_rate_0():
    config = make_config(seconds_per_epoch=3.0, deadline=5.0)
    world = open_it(config)
    expected = expected_rates(quick=1.0, slow=0.0)
    assert world.rates_by_owners.tolist() == expected.tolist()
    seed_of_run = [key.seed for key in run_keys(config)]
    assert world.success_rates.tolist() == [expected[seed - 3].tolist() for seed in seed_of_run]


def test_an_answer_at_the_deadline_itself_is_in_time():
    world = open_it(make_config(seconds_per_epoch=0.1, deadline=0.1))
    assert world.rates_by_owners.tolist() == expected_rates(quick=1.0, slow=0.0).tolist()


@pytest.mark.parametrize("deadline", [None, 2.0, 9.0])
def test_where_nobody_can_be_late_rates_are_those_of_the_world(deadline):
    config = make_config(deadline=deadline)
    world = open_it(config)
    assert world.success_rates.tolist() == [0.5] * 4 + [0.75] * 4
    assert world.rates_by_owners.tolist() == open_world(config, SEEDS).success_rates.tolist()


def test_jitter_lowers_the_rates_by_the_chance_to_be_late():
    # Two epochs have the median 2 s, which is the deadline. One epoch has ln 2 to spare.
    world = open_it(make_config(jitter=log(2)))
    expected = expected_rates(quick=ONE_SIGMA, slow=0.5)
    np.testing.assert_allclose(world.rates_by_owners, expected, rtol=1e-15)


@pytest.mark.parametrize("name", ["bernoulli", "markov", "labels"])
def test_clients_arrive_as_often_as_their_rates_say(name):
    options = {"markov": ("cycle=4",)}.get(name, ())
    world = open_it(make_config(world=name, world_options=options, jitter=0.5, deadline=1.5))
    rounds = 4000
    arrived = np.zeros(world.success_rates.shape)
    for _ in range(rounds):
        arrived += next(world.seconds) <= 1.5
    rates = world.success_rates
    # With a cycle of four rounds, the answers of two rounds correlate by 0 or -1/3: their mean
    # has at most the standard error of coins.
    error = 5 * np.sqrt(rates * (1 - rates) / rounds)
    assert (np.abs(arrived / rounds - rates) <= error).all()


def test_fedcs_and_the_rule_inverse_and_the_classes_know_who_is_late(tmp_path):
    trial = Trial(make_config(seconds_per_epoch=3.0, deadline=5.0), DATA, tmp_path / "run")
    expected = expected_rates(quick=1.0, slow=0.0)
    fedcs = trial.selector.selectors[1]
    assert fedcs.success_rates.tolist() == expected.tolist()
    for key, run in zip(trial.keys, trial.engine.runs, strict=True):
        assert run.success_rates.tolist() == expected[key.seed - 3].tolist()
    by_class = expected.reshape(len(SEEDS), 2, 4).mean(axis=(0, 2))
    assert trial.reliability.rates.tolist() == by_class.tolist()


def test_fedcs_asks_no_client_whose_recorded_answers_are_all_late(tmp_path):
    config = make_config(world="recorded", world_file=save_seconds(tmp_path), deadline=10.0)
    trial = Trial(config, DATA, tmp_path / "run")
    assert trial.success_rates.tolist() == [0.5, 0.5, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    asked = trial.selector.selectors[1].select(0).clients
    assert np.sort(asked).tolist() == [[2, 3], [2, 3]]
    assert trial.reliability.rates.tolist() == [0.0, 0.5, 1.0]


# --- Times in worlds that have seconds of their own -----------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"jitter": 0.5}, "jitter must be 0 in the world 'recorded', .* got 0.5"),
        (
            {"seconds_per_epoch": 2.0, "deadline": 9.0},
            "seconds_per_epoch must be 1 in the world 'recorded', .* deadline is given, got 2",
        ),
    ],
)
def test_times_that_change_nothing_are_refused(tmp_path, changed, message):
    config = make_config(world="recorded", world_file=save_seconds(tmp_path), **changed)
    with pytest.raises(ValueError, match=message):
        open_it(config)


def test_jitter_beside_the_seconds_of_devices_is_refused():
    with pytest.raises(ValueError, match="jitter must be 0 in the world 'devices'"):
        open_it(make_config(world="devices", jitter=0.5))


def test_seconds_per_epoch_still_decide_the_deadline_where_none_is_given(tmp_path):
    config = make_config(
        world="recorded", world_file=save_seconds(tmp_path), seconds_per_epoch=25.0
    )
    world = open_it(config)
    assert config.seconds_until_deadline == 50.0
    assert world.success_rates.tolist() == [0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_recorded_answers_without_seconds_may_have_jitter(tmp_path):
    np.save(tmp_path / "answers.npy", np.ones((6, CLIENTS), dtype=bool))
    config = make_config(world="recorded", world_file=str(tmp_path / "answers.npy"), jitter=log(2))
    expected = expected_rates(quick=ONE_SIGMA, slow=0.5, rates=(1.0, 1.0))
    np.testing.assert_allclose(open_it(config).rates_by_owners, expected, rtol=1e-15)
