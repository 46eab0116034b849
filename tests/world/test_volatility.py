from itertools import islice

import numpy as np
import pytest

from fedcohort.world.volatility import (
    PAPER_RATES,
    bernoulli,
    class_of,
    class_rates,
    local_epochs,
    replay,
)


def rows(answers, count):
    return np.stack(list(islice(answers, count)))


def test_classes_are_blocks_in_order_of_id_the_earlier_ones_larger():
    assert class_of(8).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert class_of(10).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    assert class_of(5, 2).tolist() == [0, 0, 0, 1, 1]
    assert class_of(1, 1).tolist() == [0]


def test_the_papers_rates_are_four_equal_classes():
    rates = class_rates(100)
    assert [rates[at] for at in (0, 24, 25, 49, 50, 74, 75, 99)] == [
        0.1,
        0.1,
        0.3,
        0.3,
        0.6,
        0.6,
        0.9,
        0.9,
    ]
    assert PAPER_RATES == (0.1, 0.3, 0.6, 0.9)
    assert class_rates(4, [0.5, 1.0]).tolist() == [0.5, 0.5, 1.0, 1.0]
    assert class_rates(3, 0.2).tolist() == [0.2, 0.2, 0.2]


def test_clients_answer_at_their_own_rates():
    rates, rounds = np.array([0.0, 0.1, 0.5, 0.9, 1.0]), 40_000
    seen = rows(bernoulli(rates, 0), rounds).mean(axis=0)
    error = 5 * np.sqrt(rates * (1 - rates) / rounds)  # five standard errors: none at 0 and 1
    assert (np.abs(seen - rates) <= error).all()


def test_answers_are_independent_between_clients_and_rounds():
    answers = rows(bernoulli(np.full(3, 0.5), 1), 40_000) - 0.5
    error = (
        5 * 0.25 / np.sqrt(40_000)
    )  # five standard errors of a mean of products of two fair signs, each of size 1/2
    for one, other in [
        (answers[:, 0], answers[:, 1]),
        (answers[:, 1], answers[:, 2]),
        (answers[1:, 0], answers[:-1, 0]),
    ]:
        assert abs((one * other).mean()) <= error


def test_a_seed_is_a_world_and_worlds_in_a_batch_are_the_worlds_alone():
    rates = class_rates(7)
    together = rows(bernoulli(rates, [4, 9]), 500)
    assert together.shape == (500, 2, 7)
    for row, seed in enumerate([4, 9]):
        np.testing.assert_array_equal(together[:, row], rows(bernoulli(rates, seed), 500))
    assert (together[:, 0] != together[:, 1]).any()


def test_epochs_are_drawn_from_the_choices_equally_often():
    epochs = local_epochs(40_000, 0)
    counts = np.bincount(epochs, minlength=5)
    assert counts[0] == 0
    assert (
        np.abs(counts[1:] - 10_000) <= 5 * np.sqrt(40_000 * 0.25 * 0.75)
    ).all()  # five standard errors
    assert set(local_epochs(50, 0, choices=(2, 7))) == {2, 7}


def test_epochs_in_a_batch_are_the_epochs_alone():
    together = local_epochs(30, [4, 9])
    assert together.shape == (2, 30)
    assert (together[1] == local_epochs(30, 9)).all()


def test_a_recorded_world_is_replayed_and_ends():
    table = np.array([[1, 0], [0, 0], [1, 1]], dtype=bool)
    for told in (table, table.astype(int), table.tolist()):
        rows = np.stack(list(replay(told)))
        np.testing.assert_array_equal(rows, table)
        assert rows.dtype == bool


def test_recorded_seconds_stay_seconds():
    table = np.array([[3.0, np.inf], [0.0, 2.5]])
    np.testing.assert_array_equal(np.stack(list(replay(table))), table)


@pytest.mark.parametrize("table", [[[1, 2]], [["a"]], [[1.0, np.nan]], [[-1.0]], [True, False]])
def test_a_recorded_world_that_cannot_be_read_is_refused(table):
    with pytest.raises(ValueError, match=r"table must be rows \[T, K\]"):
        replay(table)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: class_of(3), r"num_clients must be a whole number at least 4, got 3"),
        (lambda: class_of(3, 0), r"num_classes must be a whole number at least 1, got 0"),
        (
            lambda: class_rates(4, [0.5, 1.5]),
            r"rates must be between 0\.0 and 1\.0, got 1\.5 at position 1",
        ),
        (
            lambda: class_rates(4, [0.5, np.nan]),
            r"rates must be between 0\.0 and 1\.0, got nan at position 1",
        ),
        (
            lambda: next(bernoulli(np.array([0.5, -0.1]), 0)),
            r"rates must be between 0\.0 and 1\.0, got -0\.1 at position 1",
        ),
        (lambda: local_epochs(0, 0), r"num_clients must be a whole number at least 1, got 0"),
        (
            lambda: local_epochs(3, 0, choices=(0, 1)),
            r"choices must be a whole number at least 1, got 0",
        ),
    ],
)
def test_bad_arguments_are_named_with_bound_and_value(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_bad_rates_are_refused_when_given_not_when_first_used():
    with pytest.raises(
        ValueError, match=r"rates must be between 0\.0 and 1\.0, got 1\.5 at position 0"
    ):
        bernoulli(np.array([1.5]), 0)


def test_no_choice_of_epochs_is_refused():
    with pytest.raises(ValueError, match=r"choices"):
        local_epochs(3, 0, choices=())
