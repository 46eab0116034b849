import numpy as np
import pytest

from fedcohort.selection.powd import LastLoss, PowD
from fedcohort.selection.protocol import Outcome


def test_pow_d_asks_the_lossiest_candidates():
    probed = []

    def loss_of(clients):
        probed.append(clients)
        return -1.0 * clients

    cohort = PowD(20, 3, rng=0, candidates=6, loss_of=loss_of).select(0)
    assert probed[0].size == np.unique(probed[0]).size == 6
    assert cohort.clients.tolist() == sorted(probed[0])[:3]
    assert (cohort.inclusion == 6 / 20).all()


def test_there_are_two_and_a_half_times_k_candidates_unless_given():
    cohort = PowD(100, 20, rng=0, loss_of=np.cos).select(0)
    assert (cohort.inclusion == 50 / 100).all()


def test_candidates_grow_with_the_federation_up_to_what_is_usual():
    selector = LastLoss(4, 3, rng=0)
    assert (selector.select(0).inclusion == 1).all()
    selector.join(16)
    assert (selector.select(1).inclusion == 8 / 20).all()


def test_runs_with_different_numbers_present_draw_equally_many_candidates():
    selector = LastLoss(6, 2, rng=[0, 1], candidates=5)
    present = np.array([[True] * 4 + [False] * 2, [True] * 6])
    cohort = selector.select(0, present)
    np.testing.assert_array_equal(cohort.inclusion, [[1.0, 1.0], [4 / 6, 4 / 6]])


def test_pow_d_with_all_as_candidates_is_the_top_of_the_losses():
    losses = np.array([3.0, 9.0, 1.0, 7.0, 8.0])
    selector = PowD(5, 2, rng=0, candidates=5, loss_of=lambda clients: losses[clients])
    assert selector.select(0).clients.tolist() == [1, 4]


def test_rpow_d_asks_who_never_reported_first_and_then_the_lossiest():
    selector = LastLoss(6, 2, rng=0, candidates=6)
    losses = np.array([5.0, 1.0, 4.0, 2.0, 6.0, 3.0])
    heard = set()
    for round in range(3):
        cohort = selector.select(round)
        assert not heard & set(cohort.clients)
        heard |= set(cohort.clients)
        selector.update(Outcome(cohort, np.ones(2), losses[cohort.clients]))
    cohort = selector.select(3)
    assert cohort.clients.tolist() == [0, 4]
    selector.update(Outcome(cohort, np.array([1, 0]), np.array([0.5, np.nan])))
    assert selector.select(4).clients.tolist() == [2, 4]  # 4 failed and keeps its 6, 0 fell to 0.5


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: PowD(5, 2, rng=0, loss_of=np.cos, candidates=1),
            r"candidates must be a whole number between 2 and 5, got 1",
        ),
        (
            lambda: PowD(5, 2, rng=0, loss_of=lambda c: np.full(c.shape, np.nan)).select(0),
            r"loss_of\(clients\) must be finite, got nan",
        ),
        (
            lambda: PowD(5, 2, rng=0, loss_of=lambda c: np.ones(1)).select(0),
            r"loss_of\(clients\) must have shape \(5,\), got \(1,\)",
        ),
    ],
)
def test_bad_arguments_of_pow_d_are_named_with_bound_and_value(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_rpow_d_needs_losses():
    selector = LastLoss(5, 2, rng=0)
    with pytest.raises(
        ValueError, match=r"loss must be reported to a selector that ranks clients by it, got None"
    ):
        selector.update(Outcome(selector.select(0), np.ones(2)))


def test_clients_that_join_rpow_d_are_asked_before_those_that_reported():
    selector = LastLoss(4, 2, rng=0)  # five candidates at most, so that all are candidates
    for round in range(2):
        cohort = selector.select(round)
        selector.update(Outcome(cohort, np.ones(2), np.full(2, 1e9)))
    selector.join(1)
    assert 4 in selector.select(2).clients


@pytest.mark.parametrize("kind", ["pow-d", "rpow-d"])
def test_a_tie_is_broken_by_lot(kind):
    runs = 3000
    if kind == "pow-d":
        selector = PowD(5, 2, rng=range(runs), candidates=5, loss_of=lambda c: np.ones(c.shape))
    else:
        selector = LastLoss(5, 2, rng=range(runs), candidates=5)
    asked = np.bincount(selector.select(0).clients.ravel(), minlength=5)
    error = 5 * np.sqrt(runs * 0.4 * 0.6)  # five standard errors; everyone is asked with 2/5
    assert (np.abs(asked - 0.4 * runs) <= error).all()
