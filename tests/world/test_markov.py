from itertools import islice

import numpy as np
import pytest
from scipy import stats

from fedcohort.rng import stream
from fedcohort.world.markov import mean_lengths, on_off
from fedcohort.world.registry import Conditions, make_world


def lengths_of_runs(states):
    """Return the lengths of complete runs of True and of False in one client's states."""
    changes = np.flatnonzero(np.diff(states.astype(int))) + 1
    lengths = np.diff(changes)  # without the first and the last run, which may be cut
    first = bool(states[changes[0]])
    return (lengths[::2], lengths[1::2]) if first else (lengths[1::2], lengths[::2])


def test_a_short_chain_is_the_one_worked_out_by_hand(take):
    share = np.array([0.25, 0.5])
    mean_on, mean_off = mean_lengths(share, {"cycle": 8.0})
    assert mean_on.tolist() == [2.0, 4.0]
    assert mean_off.tolist() == [6.0, 4.0]
    draws = stream(3, "world").random((30, 2))
    expected = [draws[0] < share]
    for draw in draws[1:]:
        row = []
        for client, was_on in enumerate(expected[-1]):
            leaves = draw[client] < 1 / mean_on[client]
            returns = draw[client] < 1 / mean_off[client]
            row.append(not leaves if was_on else returns)
        expected.append(np.array(row))
    np.testing.assert_array_equal(take(on_off(share, mean_on, mean_off, 3), 30), expected)


@pytest.mark.parametrize(
    ("options", "mean_on", "mean_off"),
    [
        ({}, [5.0, 30.0], [45.0, 20.0]),  # a cycle of 50 rounds
        ({"cycle": 20.0}, [2.0, 12.0], [18.0, 8.0]),
        ({"on": 3.0}, [3.0, 3.0], [27.0, 2.0]),
        ({"off": 9.0}, [1.0, 13.5], [9.0, 9.0]),
    ],
)
def test_one_length_and_the_share_give_the_other_length(options, mean_on, mean_off):
    on, off = mean_lengths(np.array([0.1, 0.6]), options)
    np.testing.assert_allclose(on, mean_on, rtol=1e-14)
    np.testing.assert_allclose(off, mean_off, rtol=1e-14)


def test_clients_are_online_at_their_rates_from_the_first_round_on(take):
    rates = (0.0, 0.2, 0.7, 1.0)
    runs = 8000
    conditions = Conditions(num_clients=4, seeds=range(runs), rates=rates, options={"cycle": 10.0})
    world = make_world("markov", conditions)
    assert world.success_rates.tolist() == list(rates)
    rows = take(world.rows, 12)
    error = 5 * np.sqrt(np.array(rates) * (1 - np.array(rates)) / runs)  # none at 0 and 1
    for round in (0, 1, 11):
        assert (np.abs(rows[round].mean(axis=0) - rates) <= error).all()


def test_on_and_off_times_are_geometric_with_the_given_means(take):
    share = np.array([0.3])
    mean_on, mean_off = mean_lengths(share, {"cycle": 10.0})
    states = take(on_off(share, mean_on, mean_off, 1), 60_000)[:, 0]
    for lengths, mean in zip(lengths_of_runs(states), (3.0, 7.0), strict=True):
        law = stats.geom(1 / mean)
        assert abs(lengths.mean() - mean) <= 5 * law.std() / np.sqrt(len(lengths))
        bins = np.arange(1, 16)
        seen = [*(np.sum(lengths == length) for length in bins), np.sum(lengths > bins[-1])]
        expected = [*law.pmf(bins), law.sf(bins[-1])] * np.array(len(lengths))
        assert stats.chisquare(seen, expected).pvalue > 1e-4


def test_neighbouring_rounds_are_correlated_as_the_chain_says(take):
    # corr(x_t, x_t+1) = 1 - P(on to off) - P(off to on)
    share = np.array([0.4])
    mean_on, mean_off = mean_lengths(share, {"cycle": 20.0})
    runs = 20_000
    rows = take(on_off(share, mean_on, mean_off, range(runs)), 2)[:, :, 0].astype(float)
    expected = 1 - 1 / 8 - 1 / 12
    assert abs(np.corrcoef(rows)[0, 1] - expected) <= 5 / np.sqrt(runs)


def test_a_failure_hits_online_clients_at_its_rate_and_leaves_them_online(take):
    runs = 4000
    settings = {"num_clients": 4, "seeds": range(runs), "rates": (0.5,), "knows_offline": True}
    failing = make_world("markov", Conditions(**settings, options={"failure": 0.25}))
    assert failing.success_rates.tolist() == [0.375] * 4
    pairs = list(islice(zip(failing.rows, failing.available, strict=False), 3))
    answers = np.stack([row for row, _ in pairs])
    online = np.stack([present for _, present in pairs])
    assert not (answers & ~online).any()
    share = answers.sum() / online.sum()
    assert abs(share - 0.75) <= 5 * np.sqrt(0.75 * 0.25 / online.sum())

    sound = make_world("markov", Conditions(**settings))
    np.testing.assert_array_equal(online, take(sound.available, 3))
    np.testing.assert_array_equal(online, take(sound.rows, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cycle": 1.0}, r"world option cycle must be at least 2, got 1\.0"),
        ({"cycle": 5.0}, "world option cycle must be at least 10, .* online 0.9 .*, got 5"),
        ({"off": 2.0}, "world option off must be at least 9, .*, got 2"),
        ({"on": 2.0}, "world option on must be at least 9, because clients .* 0.9 .*, got 2"),
        ({"on": 9.0, "off": 9.0}, "must have one of cycle, on, off, got on and off"),
        ({"failure": 1.5}, r"world option failure must be between 0\.0 and 1\.0, got 1\.5"),
        ({"failure": np.nan}, "world option failure must be between"),
        ({"off": 1e308}, r"world option off must be at most 1\.\d*e\+307, .*, got 1e\+308"),
        ({"on": 1e308}, r"world option on must be at most 1\.\d*e\+307, .*, got 1e\+308"),
        ({"cycle": np.inf}, "world option cycle must be between .*, got inf"),
    ],
)
def test_lengths_that_no_chain_can_have_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_world("markov", Conditions(num_clients=4, seeds=[0], options=options))


@pytest.mark.filterwarnings("error")
def test_lengths_that_no_number_can_hold_are_refused_without_a_warning():
    share = np.array([1e-320])
    with pytest.raises(ValueError, match=r"world option on must be at most .*, got 10"):
        mean_lengths(share, {"on": 10.0})


def test_a_cycle_that_just_fits_its_rates_is_taken(take):
    world = make_world("markov", Conditions(num_clients=4, seeds=[0], options={"cycle": 10.0}))
    states = take(world.rows, 4000)[:, 0]
    assert lengths_of_runs(states[:, 0])[0].max() == 1  # online for one round at a time
    assert lengths_of_runs(states[:, 3])[1].max() == 1
