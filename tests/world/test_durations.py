from itertools import islice, repeat
from math import inf, nan

import numpy as np
import pytest

from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.durations import local_epochs, success_before, timed
from fedcohort.world.recorded import replay


def test_epochs_are_drawn_from_the_choices_equally_often():
    epochs = local_epochs(40_000, 0)
    counts = np.bincount(epochs, minlength=5)
    five_standard_errors = 5 * np.sqrt(40_000 * 0.25 * 0.75)
    assert counts[0] == 0
    assert (np.abs(counts[1:] - 10_000) <= five_standard_errors).all()
    assert set(local_epochs(50, 0, choices=(2, 7))) == {2, 7}


def test_epochs_in_a_batch_are_the_epochs_alone():
    together = local_epochs(30, [4, 9])
    assert together.shape == (2, 30)
    assert (together[1] == local_epochs(30, 9)).all()


@pytest.mark.parametrize(
    ("num_clients", "choices", "message"),
    [
        (0, (1,), "num_clients must be a whole number at least 1, got 0"),
        (3, (0, 1), "choices must be a whole number at least 1, got 0"),
        (3, (), "choices"),
    ],
)
def test_epochs_of_nobody_or_without_a_choice_are_refused(num_clients, choices, message):
    with pytest.raises(ValueError, match=message):
        local_epochs(num_clients, 0, choices=choices)


def test_who_answers_takes_its_seconds_and_who_does_not_takes_for_ever():
    rows = list(timed(replay([[1, 0], [0, 1]]), seconds=[3.0, 5.0], rng=0))
    assert [row.tolist() for row in rows] == [[3.0, np.inf], [np.inf, 5.0]]


def test_jitter_is_log_normal_around_the_seconds(take):
    everyone = bernoulli(np.ones(4), 0)
    seconds = take(timed(everyone, np.full(4, 10.0), 0, jitter=0.5), 10_000)
    logs = np.log(seconds / 10.0)
    five_standard_errors = 5 * 0.5 / np.sqrt(logs.size)
    assert abs(logs.mean()) <= five_standard_errors
    assert abs(logs.std() - 0.5) <= five_standard_errors


def test_jitter_in_a_batch_is_the_jitter_alone(take):
    def durations(seeds):
        return take(timed(bernoulli(np.full(3, 0.5), seeds), np.ones(3), seeds, jitter=0.2), 50)

    np.testing.assert_array_equal(durations([4, 9])[:, 1], durations(9))


@pytest.mark.parametrize(
    ("seconds", "jitter", "message"),
    [
        ([1.0, -2.0], 0.0, r"seconds must be finite and at least 0\.0, got -2\.0 at position 1"),
        ([1.0, 2.0], -0.1, r"jitter must be finite and at least 0\.0, got -0\.1"),
    ],
)
def test_negative_seconds_and_jitter_are_refused(seconds, jitter, message):
    with pytest.raises(ValueError, match=message):
        timed(bernoulli(np.ones(2), 0), seconds, 0, jitter)


def answers(runs=None):
    return bernoulli(np.full(5, 0.7), 1 if runs is None else runs)


def test_without_jitter_a_client_takes_exactly_its_seconds_and_who_does_not_answer_for_ever():
    seconds = np.array([0.0, 0.1, 1 / 3, 2.0, 7.0])
    for row, durations in zip(islice(answers(), 30), timed(answers(), seconds, 1), strict=False):
        assert np.array_equal(durations, np.where(row, seconds, inf))


def test_jitter_multiplies_by_log_normal_factors_of_median_one_and_the_given_spread():
    rows = 4000
    always = iter(np.ones((rows, 5), dtype=bool))
    logs = np.log(np.stack(list(timed(always, np.full(5, 2.0), 3, 0.4))) / 2.0).ravel()
    count = logs.size
    assert abs((logs < 0).mean() - 0.5) <= 5 * 0.5 / np.sqrt(
        count
    )  # median 1, five standard errors
    assert abs(logs.mean()) <= 5 * 0.4 / np.sqrt(count)
    assert abs(logs.std() - 0.4) <= 5 * 0.4 / np.sqrt(2 * count)
    assert abs((np.abs(logs) < 0.4).mean() - 0.682689) <= 5 * np.sqrt(
        0.683 * 0.317 / count
    )  # normal within one sd


def test_clients_and_rounds_jitter_independently():
    rows = 4000
    always = iter(np.ones((rows, 2), dtype=bool))
    logs = np.log(np.stack(list(timed(always, np.ones(2), 3, 1.0))))
    error = 5 / np.sqrt(rows)  # five standard errors of a correlation of zero
    assert abs(np.corrcoef(logs.T)[0, 1]) <= error
    assert abs(np.corrcoef(logs[:-1, 0], logs[1:, 0])[0, 1]) <= error
    assert abs(np.corrcoef(np.abs(logs.T))[0, 1]) <= error


@pytest.mark.parametrize("jitter", [0.0, 0.5])
def test_durations_of_runs_in_lock_step_are_those_of_each_alone(jitter):
    seeds, seconds = [4, 9, 4], np.array([[1.0] * 5, [2.0] * 5, [3.0] * 5])
    beside = np.stack(list(islice(timed(answers(seeds), seconds, seeds, jitter), 50)))
    for place, seed in enumerate(seeds):
        alone = np.stack(list(islice(timed(answers(seed), seconds[place], seed, jitter), 50)))
        assert np.array_equal(beside[:, place], alone)


@pytest.mark.parametrize(
    ("seconds", "jitter", "name"),
    [
        ([1.0, -1.0], 0.0, "seconds"),
        ([1.0, nan], 0.0, "seconds"),
        ([1.0, 1.0], -0.1, "jitter"),
        ([1.0, 1.0], nan, "jitter"),
    ],
)
def test_impossible_durations_are_refused_by_name(seconds, jitter, name):
    with pytest.raises(ValueError, match=name):
        timed(bernoulli(np.full(2, 0.5), 1), seconds, 1, jitter)


def test_epochs_do_not_depend_on_who_answers():
    count = 40_000
    answers = next(bernoulli(np.full(count, 0.5), 0))
    epochs = local_epochs(count, 0)
    for number in (1, 2, 3, 4):
        share = answers[epochs == number].mean()
        error = 5 * 0.5 / np.sqrt((epochs == number).sum())  # five standard errors
        assert abs(share - 0.5) <= error


def test_jitter_does_not_depend_on_who_answers():
    count = 40_000
    seconds = next(timed(bernoulli(np.full(count, 0.5), 0), np.ones(count), 0, jitter=1.0))
    logs = np.log(seconds[np.isfinite(seconds)])
    # Of those who answer, too, the logarithms are normal: their squares have mean 1, variance 2.
    assert abs((logs**2).mean() - 1) <= 5 * np.sqrt(2 / logs.size)


def test_a_deadline_at_the_median_is_met_half_of_the_time():
    assert success_before(3.0, np.array([3.0]), 0.7).tolist() == [0.5]
    assert success_before(3.0, np.array([3.0, 3.1]), 0.0).tolist() == [1.0, 0.0]


def test_who_is_in_time_follows_the_law_of_the_jitter(take):
    rounds = 20_000
    seconds = np.array([1.0, 2.0, 3.0, 8.0])
    everyone = repeat(np.ones(4, dtype=bool))
    rows = take(timed(everyone, seconds, 0, jitter=0.5), rounds)
    chances = success_before(2.5, seconds, jitter=0.5)
    error = np.sqrt(chances * (1 - chances) / rounds)
    assert (np.abs((rows <= 2.5).mean(axis=0) - chances) <= 5 * error).all()
