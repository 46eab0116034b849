import numpy as np

from fedcohort.selection.large import LARGE
from fedcohort.selection.random import Random, draw_uniformly, partial_shuffle


def test_random_asks_everyone_equally_often():
    clients = Random(10, 3, rng=range(4000)).select(0).clients
    rates = np.bincount(clients.ravel(), minlength=10) / 4000
    assert (np.abs(rates - 0.3) <= 5 * np.sqrt(0.3 * 0.7 / 4000)).all()  # five standard errors
    assert (Random(10, 3, rng=0).select(0, range(5)).inclusion == 0.6).all()


def test_every_order_of_a_partial_shuffle_is_equally_likely():
    draws = np.random.default_rng(0).random((30_000, 3))
    orders = [tuple(partial_shuffle(row, 4).tolist()) for row in draws]
    found, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(found) == 4 * 3 * 2
    expected = 30_000 / 24
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 49.7  # exceeded once in a thousand times with 23 degrees of freedom


def test_a_partial_shuffle_agrees_with_a_shuffle_of_the_whole_array():
    rng = np.random.default_rng(1)
    for _ in range(50):
        draws = rng.random(12)
        places = np.arange(12)
        for place, draw in enumerate(draws):
            partner = place + int(draw * (12 - place))
            places[[place, partner]] = places[[partner, place]]
        for length in (1, 5, 12):
            np.testing.assert_array_equal(partial_shuffle(draws[:length], 12), places[:length])


def test_large_federations_draw_distinct_clients_in_numbers_that_do_not_grow():
    class Counting:
        drawn = 0

        def random(self, size):
            Counting.drawn += int(np.prod(size))
            return np.random.default_rng(2).random(size)

    clients = draw_uniformly(500, (LARGE,), None, Counting())
    assert np.unique(clients).size == 500
    assert clients.min() >= 0
    assert clients.max() < LARGE
    assert Counting.drawn == 500
    draw_uniformly(500, (LARGE - 1,), None, Counting())
    assert Counting.drawn == 500 + LARGE - 1


def test_runs_of_large_federations_in_lock_step_draw_what_each_draws_alone():
    together = Random(LARGE, 40, rng=[5, 6])
    alone = Random(LARGE, 40, rng=6)
    for round in range(3):
        drawn = together.select(round).clients
        np.testing.assert_array_equal(drawn[1], alone.select(round).clients)
        assert not np.array_equal(drawn[0], drawn[1])
