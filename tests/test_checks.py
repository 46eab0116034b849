from math import inf, nan

import numpy as np
import pytest

from fedcohort.checks import (
    MAX_COUNT,
    check_array,
    check_choice,
    check_int,
    check_positive,
    check_range,
    shown,
)


def test_what_is_within_its_bounds_comes_back_in_its_type():
    assert check_int("x", np.int32(3), 1, 3) == 3
    assert isinstance(check_int("x", np.int32(3), 1), int)
    assert isinstance(check_range("x", 1, 0.0, 1.0), float)
    assert check_range("x", np.float32(0.5), 0.0, 1.0) == 0.5
    assert check_positive("x", 2) == 2.0
    assert check_choice("x", "order", ("random", "order")) == "order"
    assert check_array("x", [[1, 2]], (1, 2), 0.0, inf).dtype == np.float64
    assert check_array("x", [], (0,), 0.0, 1.0).shape == (0,)


@pytest.mark.parametrize(
    ("value", "low", "high", "bound"),
    [
        (0, 1, None, "at least 1"),
        ("3", 1, None, "at least 1"),
        (None, 1, None, "at least 1"),
        (True, 0, None, "at least 0"),
        (np.True_, 0, 3, "between 0 and 3"),
        (4, 1, 3, "between 1 and 3"),
        (1.0, 1, 3, "between 1 and 3"),
        (0, 1, MAX_COUNT, "at least 1"),
        (MAX_COUNT + 1, 1, MAX_COUNT, f"between 1 and {MAX_COUNT}"),
    ],
)
def test_what_is_no_whole_number_within_its_bounds_is_refused(value, low, high, bound):
    with pytest.raises(ValueError, match=f"rounds must be a whole number {bound}, got "):
        check_int("rounds", value, low, high)


@pytest.mark.parametrize("value", [-0.1, 1.1, nan, inf, "0.5", b"1", True, None, [0.5, 0.6]])
def test_what_is_no_number_within_a_range_is_refused(value):
    with pytest.raises(ValueError, match=r"quota must be between 0\.0 and 1\.0, got "):
        check_range("quota", value, 0.0, 1.0)


@pytest.mark.parametrize("value", [0, -1, nan, inf, 10**400, "1", False, None])
def test_what_is_no_positive_number_is_refused(value):
    with pytest.raises(ValueError, match=r"eta must be a finite number above 0, got "):
        check_positive("eta", value)


@pytest.mark.parametrize(
    ("value", "hint"), [("Oder", r"'Oder'; did you mean 'order'\?"), ("zzz", "'zzz'$"), (3, "3$")]
)
def test_what_is_no_option_is_refused_with_the_nearest_one(value, hint):
    with pytest.raises(ValueError, match=f"ties must be one of random, order, got {hint}"):
        check_choice("ties", value, ("random", "order"))


@pytest.mark.parametrize(
    ("values", "shape", "high", "message"),
    [
        ("ab", (2,), 1.0, r"must be numbers of shape \(2,\), got 'ab'"),
        ([[1.0], [1.0, 2.0]], (2,), 1.0, r"must be numbers of shape \(2,\), got "),
        ([0.5], (2,), 1.0, r"must have shape \(2,\), got \(1,\)"),
        ([0.5, 1.5], (2,), 1.0, r"must be between 0\.0 and 1\.0, got 1\.5 at position 1"),
        (
            [[0.5], [nan]],
            (2, 1),
            1.0,
            r"must be between 0\.0 and 1\.0, got nan at position \[1, 0\]",
        ),
        ([0.5, inf], (2,), inf, r"must be finite and at least 0\.0, got inf at position 1"),
        (-1.0, (), inf, r"must be finite and at least 0\.0, got -1\.0$"),
    ],
)
def test_what_is_no_array_within_its_bounds_is_refused(values, shape, high, message):
    with pytest.raises(ValueError, match=f"rates {message}"):
        check_array("rates", values, shape, 0.0, high)


@pytest.mark.parametrize(
    "refuse",
    [
        lambda value: check_int("seeds", value, 1, 9),
        lambda value: check_range("seeds", value, 0.0, 1.0),
        lambda value: check_positive("seeds", value),
        lambda value: check_choice("seeds", value, ("one", "two")),
    ],
)
def test_a_number_that_python_does_not_write_is_refused_by_its_name(refuse):
    with pytest.raises(ValueError, match=r"^seeds must be .*, got a whole number of 16610 bits"):
        refuse(10**5000)


def test_long_values_are_cut_in_messages():
    with pytest.raises(ValueError, match=r"^seeds must be") as caught:
        check_choice("seeds", "x" * 10**6, ("one", "two"))
    assert len(str(caught.value)) < 1000


def test_arrays_are_shown_in_one_line():
    assert "\n" not in shown(np.zeros((3, 3)))
