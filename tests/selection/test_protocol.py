import numpy as np
import pytest

from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Cohort, Outcome


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Cohort(0, np.array([1, 3, 3]), np.ones(3)),
            r"clients must be distinct, got 3 twice",
        ),
        (
            lambda: Cohort(0, np.array([[0, 1], [2, 2]]), np.ones((2, 2))),
            r"clients must be distinct, got 2 twice",
        ),
        (lambda: Cohort(0, np.array([-1, 3]), np.ones(2)), r"clients must be at least 0, got -1"),
        (
            lambda: Cohort(0, np.array([0.5, 3]), np.ones(2)),
            r"clients must be an array of whole numbers \[\.\.\., k\]",
        ),
        (
            lambda: Cohort(-1, np.array([1]), np.ones(1)),
            r"round must be a whole number at least 0, got -1",
        ),
        (
            lambda: Cohort(0, np.array([1, 2]), np.ones(3)),
            r"inclusion must have shape \(2,\), got \(3,\)",
        ),
        (
            lambda: Cohort(0, np.array([1, 2]), np.array([1, 1.1])),
            r"inclusion must be between 0\.0 and 1\.0, got 1\.1 at position 1",
        ),
        (lambda: outcome([1, 0, 1]), r"success must have shape \(2,\), got \(3,\)"),
        (
            lambda: outcome([1, np.nan]),
            r"success must be between 0\.0 and 1\.0, got nan at position 1",
        ),
        (
            lambda: outcome([-1, 0]),
            r"success must be between 0\.0 and 1\.0, got -1\.0 at position 0",
        ),
        (lambda: outcome([1, 0], [0.5]), r"loss must have shape \(2,\), got \(1,\)"),
        (
            lambda: outcome([1, 0], [np.nan, 0.5]),
            r"loss must be finite where success is above 0, got nan",
        ),
        (
            lambda: outcome([1, 1], [0.5, np.inf]),
            r"loss must be finite where success is above 0, got inf",
        ),
    ],
)
def test_bad_messages_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def outcome(success, loss=None):
    return Outcome(
        Cohort(0, np.array([4, 7]), np.ones(2)),
        np.array(success),
        None if loss is None else np.array(loss),
    )


def test_the_loss_of_a_client_that_failed_may_be_unknown():
    assert np.isnan(outcome([1, 0], [0.5, np.nan]).loss[1])


def test_a_cohort_cannot_be_changed_after_it_was_asked():
    selector = E3CS(6, 2, rng=0)
    cohort = selector.select(0)
    for values in (cohort.clients, cohort.inclusion, selector.state_dict()["asked"]["clients"]):
        with pytest.raises(ValueError, match="read-only"):
            values[:] = 0
    mine = np.array([1, 3])
    told = Cohort(0, mine, np.ones(2))
    mine[:] = 0
    assert told.clients.tolist() == [1, 3]
