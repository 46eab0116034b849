import numpy as np

from fedcohort.selection.random import Random


def test_random_asks_everyone_equally_often():
    clients = Random(10, 3, rng=range(4000)).select(0).clients
    rates = np.bincount(clients.ravel(), minlength=10) / 4000
    assert (np.abs(rates - 0.3) <= 5 * np.sqrt(0.3 * 0.7 / 4000)).all()  # five standard errors
    assert (Random(10, 3, rng=0).select(0, range(5)).inclusion == 0.6).all()
