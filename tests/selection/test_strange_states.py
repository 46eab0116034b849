"""States that no selector wrote are refused by their field, with a ValueError."""

import copy

import numpy as np
import pytest

from fedcohort.rng import Streams, check_rng_state, rng_state, set_rng_state, stream
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.random import Random

STRANGE = [None, "x", b"x", -1, 1.5, True, 2**200, [], [[]], [[1], [2, 3]], {}, {"a": 1}, object()]
STRANGE_IDS = [str(number) for number in range(len(STRANGE))]


def learned(rng=0, available=None):
    """Return a selector that has learned, with a cohort in flight."""
    selector = E3CS(8, 3, rng=rng, quota=0.2)
    cohort = selector.select(0)
    selector.update(Outcome(cohort, np.ones(cohort.clients.shape)))
    selector.select(1, available)
    return selector


def in_flight(**changes):
    """Return a state whose cohort in flight has changed values."""
    state = learned(available=[0, 1, 2, 3, 5, 7]).state_dict()
    state["asked"].update(changes)
    return state


@pytest.mark.parametrize("value", STRANGE, ids=STRANGE_IDS)
@pytest.mark.parametrize("rng", [0, [0, 1]], ids=["one run", "two runs"])
def test_any_strange_value_of_any_field_is_refused(rng, value):
    whole = learned(rng).state_dict()
    fields = [(name,) for name in whole]
    fields += [("asked", name) for name in whole["asked"]]
    for place in fields:
        state = copy.deepcopy(whole)
        table = state
        for name in place[:-1]:
            table = table[name]
        if place == ("asked", "present") and value is None:
            continue  # that is everyone
        table[place[-1]] = value
        selector = E3CS(8, 3, rng=rng, quota=0.2)
        before = selector.state_dict()
        with pytest.raises(ValueError, match=r"state|clients|inclusion|round"):
            selector.load_state_dict(state)
        np.testing.assert_equal(selector.state_dict(), before)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e301])
@pytest.mark.parametrize("algorithm", ["scan", "tree"])
@pytest.mark.parametrize("update", ["paper", "robust"])
def test_log_weights_that_no_allocation_takes_are_refused(update, algorithm, value):
    selector = E3CS(8, 3, rng=0, update=update, algorithm=algorithm)
    state = selector.state_dict()
    state["log_weights"][5] = value
    with pytest.raises(ValueError, match=r"log_weights of the state must be between .*, got "):
        selector.load_state_dict(state)
    assert np.isfinite(selector.log_weights).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"present": np.ones(7, bool)}, "present in the state must be bools of shape"),
        ({"present": np.ones(8)}, "present in the state must be bools of shape"),
        ({"present": np.zeros(8, bool)}, "present in the state must hold the clients asked"),
        ({"present": np.ones(8, bool)}, "log_cap in the state|inclusion in the state"),
        ({"log_cap": np.array(np.nan)}, "log_cap in the state must be numbers of shape"),
        ({"log_cap": np.zeros(2)}, "log_cap in the state must be numbers of shape"),
        ({"log_cap": np.array(0.123)}, "log_cap in the state must be .* by its weights"),
        ({"log_cap": None}, "log_cap in the state must be numbers of shape"),
        ({"clients": np.array([2, 1, 0])}, "clients asked in the state must be .* ascending"),
        ({"clients": np.array([0, 1, 8])}, "clients asked in the state must be below 8"),
        ({"inclusion": np.array([0.5, 0.5, 0.0])}, "inclusion of clients asked .* above 0"),
        ({"inclusion": np.array([0.5, 0.5, 0.25])}, "inclusion in the state must be"),
        ({"more": 1}, "asked in the state must have no more"),
    ],
)
def test_a_cohort_in_flight_that_does_not_fit_is_refused_by_its_field(changes, message):
    with pytest.raises(ValueError, match=message):
        E3CS(8, 3, rng=0, quota=0.2).load_state_dict(in_flight(**changes))


def test_a_cohort_in_flight_that_fits_is_taken():
    selector = E3CS(8, 3, rng=5, quota=0.2)
    selector.load_state_dict(in_flight())
    np.testing.assert_equal(selector.state_dict(), in_flight())


def changed_rng(*names, value):
    state = rng_state(stream(0, "x"))
    table = state
    for name in names[:-1]:
        table = table[name]
    table[names[-1]] = value
    return state


@pytest.mark.parametrize(
    "state",
    [
        changed_rng("bit_generator", value="MT19937"),
        changed_rng("state", "state", value=-1),
        changed_rng("state", "state", value=2**128),
        changed_rng("state", "state", value=1.0),
        changed_rng("state", "inc", value=4),
        changed_rng("has_uint32", value=2),
        changed_rng("has_uint32", value=False),
        changed_rng("uinteger", value=2**32),
        changed_rng("more", value=1),
        {},
        None,
        [],
        "PCG64",
    ],
)
def test_a_state_that_no_generator_has_is_refused_and_changes_nothing(state):
    for rng, given in (
        (stream(1, "x"), state),
        (Streams([stream(1, "x"), stream(2, "x")]), [rng_state(stream(1, "x")), state]),
    ):
        before = rng_state(rng)
        with pytest.raises(ValueError, match="rng of the state must be"):
            set_rng_state(rng, given)
        assert rng_state(rng) == before


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_the_state_of_any_generator_of_numpy_is_taken(kind):
    rng = np.random.Generator(kind(1))
    rng.integers(5, size=3, dtype=np.uint32)
    check_rng_state(np.random.Generator(kind(2)), rng_state(rng))


@pytest.mark.parametrize("state", [None, [], {}, {"0": {}}, {"0": {}, "2": {}}, {"0": 1, "1": 2}])
def test_lockstep_refuses_what_is_no_state_of_its_selectors(state):
    lockstep = Lockstep([Random(6, 2, rng=[0]), Random(6, 2, rng=[1])], [1, 1])
    with pytest.raises(ValueError, match="state must"):
        lockstep.load_state_dict(state)
