import numpy as np
import pytest

from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.durations import local_epochs, timed
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
