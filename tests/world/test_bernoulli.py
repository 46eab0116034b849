import numpy as np
import pytest

from fedcohort.rng import stream
from fedcohort.world.bernoulli import answers_at, bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.registry import Conditions, make_world


def test_clients_answer_at_their_own_rates(take):
    rates = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    rounds = 40_000
    seen = take(bernoulli(rates, 0), rounds).mean(axis=0)
    error = 5 * np.sqrt(rates * (1 - rates) / rounds)  # five standard errors: none at 0 and 1
    assert (np.abs(seen - rates) <= error).all()


def test_answers_are_independent_between_clients_and_rounds(take):
    rounds = 40_000
    answers = take(bernoulli(np.full(3, 0.5), 1), rounds) - 0.5
    # five standard errors of a mean of products of two fair signs, each of size 1/2
    error = 5 * 0.25 / np.sqrt(rounds)
    pairs = [
        (answers[:, 0], answers[:, 1]),
        (answers[:, 1], answers[:, 2]),
        (answers[1:, 0], answers[:-1, 0]),
    ]
    for first, second in pairs:
        assert abs((first * second).mean()) <= error


def test_a_seed_is_a_world_and_worlds_in_a_batch_are_the_worlds_alone(take):
    rates = class_rates(7)
    together = take(bernoulli(rates, [4, 9]), 500)
    assert together.shape == (500, 2, 7)
    for row, seed in enumerate([4, 9]):
        np.testing.assert_array_equal(together[:, row], take(bernoulli(rates, seed), 500))
    assert (together[:, 0] != together[:, 1]).any()


def test_the_rows_are_the_uniforms_of_the_stream_world_below_the_rates(take):
    rates = class_rates(6)
    expected = stream(3, "world").random((50, 6)) < rates
    np.testing.assert_array_equal(take(bernoulli(rates, 3), 50), expected)


def test_one_answer_alone_is_the_one_of_the_whole_world(take):
    rates = class_rates(5)
    whole = take(bernoulli(rates, 2), 20)
    for round in range(20):
        for client in range(5):
            assert answers_at(rates, 2, round, client) == whole[round, client]


def test_the_registered_world_has_the_classes_and_the_bits_of_bernoulli(take):
    conditions = Conditions(num_clients=10, seeds=[4, 9], rates=(0.2, 0.7))
    world = make_world("bernoulli", conditions)
    rates = class_rates(10, (0.2, 0.7))
    np.testing.assert_array_equal(world.success_rates, rates)
    np.testing.assert_array_equal(take(world.rows, 300), take(bernoulli(rates, [4, 9]), 300))
    assert world.num_rounds is None
    assert not world.has_seconds


@pytest.mark.parametrize(("rates", "bad", "position"), [([0.5, -0.1], -0.1, 1), ([1.5], 1.5, 0)])
def test_bad_rates_are_refused_when_given_not_when_first_used(rates, bad, position):
    message = rf"rates must be between 0\.0 and 1\.0, got {bad} at position {position}"
    with pytest.raises(ValueError, match=message):
        bernoulli(np.array(rates), 0)


@pytest.mark.parametrize(
    ("round", "client", "message"),
    [
        (0, 2, "client must be a whole number between 0 and 1, got 2"),
        (-1, 0, "round must be a whole number at least 0, got -1"),
    ],
)
def test_an_answer_outside_the_world_is_refused(round, client, message):
    with pytest.raises(ValueError, match=message):
        answers_at(np.array([0.5, 0.5]), 0, round, client)
