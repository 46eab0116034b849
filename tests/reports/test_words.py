import numpy as np
import pytest

from fedcohort.reports.words import counted, format_value, listed, mean_with_sd, three_digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"),
        (False, "no"),
        (None, "-"),
        (float("nan"), "-"),
        (0.123456, "0.123"),
        (999.94, "1,000"),
        (1234567.8, "1,234,568"),
        (-4321.0, "-4,321"),
        (20, "20"),
        ("12/13/14", "12/13/14"),
        (0.0, "0"),
    ],
)
def test_values_are_shown_as_a_reader_wants_them(value, text):
    assert format_value(value) == text


def test_one_thing_is_singular():
    assert [counted(number, "seed") for number in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]


def test_a_mean_has_its_deviation_if_there_are_several_values():
    assert mean_with_sd(np.array([1.0, 3.0])) == "2.000 ± 1.414"
    assert mean_with_sd(np.array([1.0, np.nan]), digits=1) == "1.0"
    assert mean_with_sd(np.array([np.nan])) == "-"


def test_names_are_listed_as_in_a_sentence():
    assert listed(["a"]) == "a"
    assert listed(["a", "b"], "or") == "a or b"
    assert listed(["a", "b", "c"]) == "a, b and c"


def test_what_is_not_known_is_a_dash():
    assert three_digits(0.25) == "0.250"
    assert three_digits(float("nan")) == "-"
