"""Numbers of examples that were accepted before there was a bound must not count for ever."""

from itertools import pairwise
from math import inf

import pytest
from fakes import federation, model_of
from flwr.app import Error
from helpers import cohort_strategy, initial

from fedcohort.flower.data_sizes import plausible_examples

LIE = 10**9


def test_numbers_beyond_the_bound_count_as_unknown():
    assert plausible_examples([5.0, None, 10.0, 11.0], 10.0) == [5.0, None, 10.0, None]
    assert plausible_examples([5.0, 1e9], inf) == [5.0, 1e9]


def federation_with_early_liar(clock):
    """In round 1 clients 0 and 3 return, too few for a median; later 0, 1 and 2 do."""
    grid = federation(clock, 4)

    def play(number, examples, is_there):
        client = grid.clients[100 + number]
        sound = client.train

        def train(message):
            if not is_there(int(message.content["config"]["server-round"])):
                return Error(2, "not there")
            content = sound(message)
            content["metrics"]["num-examples"] = examples
            return content

        client.train = train

    play(0, 100, lambda round: True)
    play(1, 100, lambda round: round > 1)
    play(2, 100, lambda round: round > 1)
    play(3, LIE, lambda round: round == 1)
    return grid


def test_an_early_lie_about_examples_does_not_freeze_the_model(clock):
    """From round 2 on all shares are 1/4: the liar counts as the mean of the others."""
    numbers = []
    for rounds in (1, 2, 3):
        strategy = cohort_strategy(cohort_size=4, aggregation="paper")
        result = strategy.start(federation_with_early_liar(clock), initial(), rounds)
        numbers.append(float(model_of(result.arrays)["b"][0]))
    assert strategy.registry.examples == [100, 100, 100, LIE]
    # Client i moves half way to i + 1: b + 1/4 sum of (i + 1 - b) / 2 over i = 0, 1, 2.
    for before, after in pairwise(numbers):
        assert after == pytest.approx(before + (6 - 3 * before) / 8, rel=1e-12)


def test_an_early_lie_about_examples_is_not_told_to_the_selector(clock):
    strategy = cohort_strategy(
        selector="optimal", cohort_size=4, data_sizes="replies", aggregation="normalised"
    )
    strategy.start(federation_with_early_liar(clock), initial(), 3)
    assert strategy.selector.data_sizes.tolist() == [100, 100, 100, 100]
