from math import log, sqrt

import numpy as np
import pytest

from fedcohort.selection.oort import Oort
from fedcohort.selection.protocol import Outcome


def tell(selector, round, clients, loss, seconds, success=None):
    """Play a round in which exactly these clients can be asked."""
    cohort = selector.select(round, clients)
    if success is None:
        success = np.ones(len(clients))
    loss = np.where(np.array(success) > 0, loss, np.nan)
    selector.update(Outcome(cohort, success, loss=loss, seconds=seconds))


def heard_of_four():
    """Return a selector of six clients that heard of four in round 0: K = 6, k = 4."""
    selector = Oort(6, 4, data_sizes=[10, 10, 20, 20, 10, 30], rng=0)
    tell(selector, 0, [0, 1, 2, 3], loss=[1.0, 2.0, 2.0, 2.5], seconds=[4.0, 8.0, 2.0, 16.0])
    return selector


def test_utilities_of_a_case_worked_by_hand():
    # size x loss = 10, 20, 40, 50. The 95 % quantile of four is the last, 50, so nothing is cut:
    # scaled to 0, 1/4, 3/4, 1. In round 9 (t = 10) every L is 1: + sqrt(0.1 ln 10).
    # The seconds in order are 2, 4, 8, 16; the 30 % quantile is number int(1.2) = 1: T = 4.
    # Clients 1 and 3 are slower: (4/8)^2 = 1/4 and (4/16)^2 = 1/16.
    selector = heard_of_four()
    assert selector.preferred_seconds().tolist() == [4.0]
    bonus = sqrt(0.1 * log(10))
    expected = [bonus, (0.25 + bonus) / 4, 0.75 + bonus, (1 + bonus) / 16, 0, 0]
    np.testing.assert_allclose(selector.utilities(9), expected, rtol=1e-12)


def test_the_largest_utility_is_cut_at_the_quantile():
    # 40 clients with size x loss = 1, ..., 39, 1000: number int(0.95 * 40) = 38 is 39, counted
    # from 0, so that 1000 counts as 39 and utilities are (v - 1) / 38 in the first round.
    selector = Oort(40, 40, data_sizes=np.ones(40), rng=0)
    losses = np.append(np.arange(1.0, 40.0), 1000.0)
    tell(selector, 0, np.arange(40), losses, np.ones(40))
    expected = np.append(np.arange(39) / 38, 1.0)
    np.testing.assert_allclose(selector.utilities(0), expected, rtol=1e-12)


def test_in_the_first_rounds_most_are_explored_in_proportion_to_their_data():
    # Round 1: eps = 0.9 * 0.98 = 0.882, so int(0.118 * 4) = 0 of the known would be asked. But
    # only two are unknown: both are asked, and two known ones. With k = 1, the one asked is an
    # unknown one, with probability 10/40 or 30/40.
    selector = heard_of_four()
    probabilities = selector.inclusion(1)
    assert probabilities[4:].tolist() == [1.0, 1.0]
    assert probabilities[:4].sum() == pytest.approx(2)

    one = Oort(6, 1, data_sizes=[10, 10, 20, 20, 10, 30], rng=0)
    for client in range(4):
        tell(one, 0, [client], loss=[1.0], seconds=[1.0])
    np.testing.assert_allclose(one.inclusion(1), [0, 0, 0, 0, 0.25, 0.75], rtol=1e-12)


def test_those_close_to_the_last_that_fits_in_share_by_utility():
    # Ten clients of one second, utilities in round 0: size x loss from 1 to 10, scaled by
    # (v - 1) / 9; k = 2 and nobody unknown. The second best has 8/9 and the cut-off is
    # 0.95 * 8/9 = 0.844, which the third (7/9) misses: both best are asked for certain.
    selector = Oort(10, 2, data_sizes=np.ones(10), rng=0)
    for client in range(10):
        tell(selector, 0, [client], loss=[client + 1.0], seconds=[1.0])
    np.testing.assert_allclose(selector.inclusion(0), [0] * 8 + [1, 1], rtol=1e-12)

    # With losses 1, ..., 1, 9.7, 9.8, 9.9, 10 the scaled utilities of the last four are 8.7/9,
    # 8.8/9, 8.9/9 and 1, all above 0.95 * 8.9/9: they share two places by utility.
    for client in range(10):
        loss = 1.0 if client < 6 else 9.1 + 0.1 * client
        tell(selector, 0, [client], loss=[loss], seconds=[1.0])
    shares = np.array([8.7, 8.8, 8.9, 9.0])
    np.testing.assert_allclose(selector.inclusion(0)[6:], 2 * shares / shares.sum(), rtol=1e-12)


def test_a_slow_client_never_heard_of_is_explored_less():
    # Client 4 was asked in vain: the server waited 16 s, T is 4, so (4/16)^2 = 1/16 is left of
    # its 10 samples beside the 30 of client 5: 10/16 to 30, which is 1 to 48.
    selector = Oort(6, 1, data_sizes=[10, 10, 20, 20, 10, 30], rng=0)
    for client, seconds in enumerate([4.0, 8.0, 2.0, 16.0]):
        tell(selector, 0, [client], loss=[1.0], seconds=[seconds])
    tell(selector, 0, [4], loss=[1.0], seconds=[16.0], success=[0])
    np.testing.assert_allclose(selector.inclusion(1)[4:], [1 / 49, 48 / 49], rtol=1e-12)


def test_the_share_that_explores_falls_to_three_tenths():
    # 10 known and 10 unknown clients, k = 10. Round 0: eps = 0.9, one known client; round 20:
    # eps = 0.9 * 0.98^20 = 0.6008, int(3.99) = 3; round 500: eps = 0.3, 7.
    selector = Oort(20, 10, data_sizes=np.ones(20), rng=0)
    tell(selector, 0, np.arange(10), np.arange(1.0, 11.0), np.ones(10))
    known = [selector.inclusion(round)[:10].sum() for round in (0, 20, 500)]
    assert known == pytest.approx([1, 3, 7])


def test_the_pacer_allows_slower_clients_when_a_window_gains_no_more_than_the_last():
    # Each window has 20 rounds. Utility per round: 1, then 2 (grows), 2 (flat), 2.1 (5 % more,
    # which counts as flat: the limit is 10 %), 1 (falls).
    selector = Oort(4, 1, data_sizes=np.ones(4), rng=0)
    paces = []
    for window, loss in enumerate([1.0, 2.0, 2.0, 2.1, 1.0]):
        for round in range(20 * window, 20 * window + 20):
            tell(selector, round, [round % 4], loss=[loss], seconds=[1.0])
        paces.append(float(selector.pace))
    assert paces == [30.0, 30.0, 35.0, 40.0, 45.0]


def test_the_pace_ends_at_all_clients():
    selector = Oort(2, 1, data_sizes=np.ones(2), rng=0, percent=96.0)
    for round in range(80):
        tell(selector, round, [round % 2], loss=[1.0], seconds=[1.0 + round % 2])
    assert selector.pace == 100.0
    assert selector.preferred_seconds().tolist() == [2.0]


def test_a_restored_pacer_goes_on_within_its_window():
    def play(selector, rounds):
        for round in rounds:
            cohort = selector.select(round)
            heard = np.ones(cohort.clients.shape)
            selector.update(Outcome(cohort, heard, loss=heard, seconds=heard))

    whole = Oort(6, 2, data_sizes=np.ones(6), rng=[1, 2])
    play(whole, range(70))
    stopped = Oort(6, 2, data_sizes=np.ones(6), rng=[1, 2])
    play(stopped, range(37))
    resumed = Oort(6, 2, data_sizes=np.ones(6), rng=[8, 9])
    resumed.load_state_dict(stopped.state_dict())
    play(resumed, range(37, 70))
    np.testing.assert_equal(resumed.state_dict(), whole.state_dict())
    assert whole.pace.tolist() == [40.0, 40.0]  # windows two and three were flat


def test_losses_that_are_all_equal_leave_everyone_a_probability():
    selector = Oort(4, 2, data_sizes=np.ones(4), rng=0)
    tell(selector, 0, [0, 1], loss=[0.0, 0.0], seconds=[1.0, 1.0])
    tell(selector, 0, [2, 3], loss=[0.0, 0.0], seconds=[1.0, 1.0])
    np.testing.assert_allclose(selector.inclusion(0), 0.5, rtol=1e-12)


LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize("loss", [LARGEST, -LARGEST, 1e306, -1e306])
def test_any_finite_loss_leaves_utilities_and_state_finite(loss):
    """No sum or product may become infinite: that ended runs, or made states unloadable."""
    selector = Oort(4, 2, data_sizes=[1000.0, 10.0, 10.0, 1e9], rng=0)
    for round in range(45):
        cohort = selector.select(round)
        losses = np.where(cohort.clients % 3 == 0, loss, 1.0)
        selector.update(Outcome(cohort, np.ones(2), loss=losses, seconds=np.ones(2)))
        assert np.isfinite(selector.utilities(round)).all()
        assert selector.inclusion(round).sum() == pytest.approx(2)
    again = Oort(4, 2, data_sizes=np.ones(4), rng=1)
    again.load_state_dict(selector.state_dict())
    assert np.isfinite(again.utility)


def test_the_largest_and_the_smallest_loss_are_the_ends_of_the_scale():
    # Utilities 0 and 1 of two clients, whose losses are as far apart as floats can be.
    selector = Oort(2, 2, data_sizes=np.ones(2), rng=0)
    tell(selector, 0, [0, 1], loss=[-LARGEST, LARGEST], seconds=[1.0, 1.0])
    assert selector.utilities(0).tolist() == [0.0, 1.0]
