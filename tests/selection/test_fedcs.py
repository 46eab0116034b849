import numpy as np
import pytest

from fedcohort.selection.fedcs import FedCS


def test_fedcs_asks_the_best_and_breaks_ties_once_at_random_or_by_order():
    rates = np.array([0.1, 0.9, 0.9, 0.3, 0.9, 0.6])
    assert FedCS(6, 4, success_rates=rates, rng=0).select(0).clients.tolist() == [1, 2, 4, 5]
    by_order = FedCS(6, 2, success_rates=rates, rng=0, ties="order")
    assert by_order.select(0).clients.tolist() == [1, 2]
    firsts = set()
    for seed in range(30):
        selector = FedCS(6, 2, success_rates=rates, rng=seed)
        picks = {tuple(selector.select(round).clients) for round in range(3)}
        assert len(picks) == 1
        firsts |= picks
    assert firsts == {(1, 2), (1, 4), (2, 4)}


def test_fedcs_moves_down_its_list_when_the_best_are_away():
    selector = FedCS(4, 2, success_rates=[0.9, 0.8, 0.7, 0.6], rng=0)
    assert selector.select(0, [0, 2, 3]).clients.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: FedCS(2, 1, rng=0, success_rates=[0.5]),
            r"success_rates must have shape \(2,\), got \(1,\)",
        ),
        (
            lambda: FedCS(1, 1, rng=0, success_rates=[1.5]),
            r"success_rates must be between 0\.0 and 1\.0, got 1\.5 at position 0",
        ),
        (
            lambda: FedCS(1, 1, rng=0, success_rates=[1], ties="oder"),
            r"ties must be one of random, order, got 'oder'; did you mean 'order'",
        ),
        (
            lambda: FedCS(1, 1, rng=0, success_rates=[1]).join(2),
            r"success_rates must be given for the 2 clients that join FedCS, got None",
        ),
    ],
)
def test_bad_arguments_of_fedcs_are_named_with_bound_and_value(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_clients_that_join_fedcs_draw_lots_with_their_equals():
    runs = 2000
    selector = FedCS(3, 1, success_rates=[0.9, 0.9, 0.9], rng=range(runs))
    selector.join(1, [0.9])
    asked = np.bincount(selector.select(0).clients.ravel(), minlength=4)
    error = 5 * np.sqrt(runs * 0.25 * 0.75)  # five standard errors; everyone is asked with 1/4
    assert (np.abs(asked - runs / 4) <= error).all()


def test_runs_with_rates_of_their_own_ask_their_own_best():
    rates = np.array([[0.1, 0.9, 0.3], [0.8, 0.2, 0.5]])
    selector = FedCS(3, 2, success_rates=rates, rng=[0, 1])
    assert selector.select(0).clients.tolist() == [[1, 2], [0, 2]]
    selector.join(1, success_rates=[0.7])
    assert selector.select(1).clients.tolist() == [[1, 3], [0, 3]]
    with pytest.raises(ValueError, match=r"success_rates must have shape \(1, 3\), got \(2, 3\)"):
        FedCS(3, 2, success_rates=rates, rng=[0])
