import json

import numpy as np
import pytest

from fedcohort.rng import READ_AHEAD, Streams, as_rng, batch_shape, rng_state, set_rng_state, stream


def streams(*seeds):
    return Streams([stream(seed, "test") for seed in seeds])


def test_a_stream_is_decided_by_its_seed_and_purpose():
    assert (stream(3, "world").random(5) == stream(3, "world").random(5)).all()
    draws = set()
    for seed in (3, 4):
        for purpose in (("world",), ("selection",), ("world", 1)):
            draws.add(tuple(stream(seed, *purpose).random(3)))
    assert len(draws) == 6


def test_drawing_from_one_purpose_shifts_no_other():
    expected = stream(3, "world").random(5)
    stream(3, "selection").random(100)
    assert (stream(3, "world").random(5) == expected).all()


@pytest.mark.parametrize(
    "sizes", [[1] * 7, [3, 5, 2], [READ_AHEAD - 1, 1, 1, 2], [READ_AHEAD + 7, 3], [0, 4]]
)
def test_runs_drawn_together_give_what_each_gives_alone(sizes):
    together = streams(0, 1, 2)
    alone = [stream(seed, "test") for seed in range(3)]
    for size in sizes:
        block = together.random((3, size))
        assert block.shape == (3, size)
        for row, generator in zip(block, alone, strict=True):
            np.testing.assert_array_equal(row, generator.random(size))


@pytest.mark.parametrize("used", [0, 1, 10, READ_AHEAD, READ_AHEAD + 1])
def test_a_state_continues_after_the_last_number_used_not_the_last_read(used):
    source = streams(0, 1)
    source.random((2, used))
    state = json.loads(json.dumps(rng_state(source)))
    expected = source.random((2, 20)).copy()
    alone = stream(0, "test")
    alone.random(used)
    assert state[0] == alone.bit_generator.state
    resumed = streams(8, 9)
    resumed.random((2, 5))
    set_rng_state(resumed, state)
    np.testing.assert_array_equal(resumed.random((2, 20)), expected)


def test_taking_a_state_does_not_move_the_run():
    source = streams(0, 1)
    other = streams(0, 1)
    source.random((2, 3))
    source.states()
    other.random((2, 3))
    np.testing.assert_array_equal(source.random((2, 9)), other.random((2, 9)))


def test_one_generator_is_saved_and_restored():
    generator = stream(0)
    state = json.loads(json.dumps(rng_state(generator)))
    expected = generator.random(4)
    set_rng_state(generator, state)
    assert (generator.random(4) == expected).all()


def test_seeds_become_streams_of_their_purpose_and_generators_stay_themselves():
    generator = stream(0)
    source = streams(0, 1)
    assert as_rng(generator, "x") is generator
    assert as_rng(source, "x") is source
    assert as_rng(3, "x").random() == stream(3, "x").random()
    expected = [[stream(3, "x").random()], [stream(4, "x").random()]]
    for seeds in ([3, 4], (3, 4), range(3, 5), np.array([3, 4])):
        np.testing.assert_array_equal(as_rng(seeds, "x").random((2, 1)), expected)


def test_one_run_has_no_batch_axis_and_many_have_one():
    assert batch_shape(as_rng(0)) == ()
    assert batch_shape(as_rng([0])) == (1,)
    assert batch_shape(as_rng(range(3))) == (3,)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: stream(-1), r"seed must be a whole number at least 0, got -1"),
        (lambda: stream(1.5), r"seed must be a whole number at least 0, got 1\.5"),
        (lambda: as_rng(None), r"seed must be a whole number at least 0, got None"),
        (lambda: as_rng([0, -2]), r"seed must be a whole number at least 0, got -2"),
        (lambda: as_rng([1.5, 2]), r"seed must be a whole number at least 0, got 1\.5"),
        (lambda: as_rng("12"), r"seed must be a whole number at least 0, got '1"),
        (lambda: as_rng([]), r"generators must hold at least one generator, got none"),
        (
            lambda: Streams([np.random.Generator(np.random.MT19937(0))]),
            r"generators drawn together must use PCG64, got .*MT19937",
        ),
        (
            lambda: streams(0, 1).random((3, 2)),
            r"size must start with the number of runs 2, got \(3, 2\)",
        ),
    ],
)
def test_bad_arguments_are_named_with_bound_and_value(act, message):
    with pytest.raises(ValueError, match=message):
        act()
