import re
from math import inf, nan

import pytest

from fedcohort.world.options import Option, format_options, parse_options, read_options
from fedcohort.world.registry import Conditions, make_world


def test_texts_become_values_in_the_order_of_their_names():
    assert list(parse_options(["off=20", " cycle = 1e1", "failure=.5"]).items()) == [
        ("cycle", 10.0),
        ("failure", 0.5),
        ("off", 20.0),
    ]
    assert parse_options([]) == {}


def test_values_are_written_in_one_way_and_come_back_exactly():
    values = {"a": 20.0, "b": 0.1, "c": 1 / 3, "d": 1e300, "e": -0.0}
    texts = format_options(values)
    assert texts[:2] == ("a=20", "b=0.1")
    assert parse_options(texts) == values
    assert format_options(parse_options(["x=5.0"])) == format_options(parse_options(["x=5"]))


@pytest.mark.parametrize(
    "text", ["cycle", "=3", "cycle=", "cycle=long", "cycle=nan", "cycle=inf", "cycle=1_0"]
)
def test_what_is_no_pair_of_name_and_number_is_refused(text):
    with pytest.raises(ValueError, match=rf"world_options must be name=number each, got '{text}'"):
        parse_options([text])


def test_an_option_that_stands_there_twice_is_refused():
    with pytest.raises(ValueError, match="world_options must name on once, got it twice"):
        parse_options(["on=3", "on=4"])


def test_defaults_fill_what_is_not_given_and_none_leaves_it_out():
    declared = {"a": Option(1.0), "b": Option(2.0), "c": Option(None)}
    assert read_options("some", {"b": 5.0}, declared) == {"a": 1.0, "b": 5.0}


@pytest.mark.parametrize("value", [1e19, 1e308, 2.0**31])
@pytest.mark.parametrize(
    ("world", "option"),
    [
        ("cyclic", "cycle"),
        ("diurnal", "period"),
        ("diurnal", "zones"),
        ("drift", "over"),
        ("swap", "at"),
        ("groups", "groups"),
    ],
)
def test_a_whole_number_that_counts_more_than_fits_any_memory_is_refused(world, option, value):
    conditions = Conditions(4, [0], options={option: value}, rounds=5)
    with pytest.raises(ValueError, match=f"option {option} must be .* at most 2147483647, got "):
        make_world(world, conditions)


@pytest.mark.parametrize("value", ["x", None, True, [3.0]])
@pytest.mark.parametrize("world", ["markov", "cyclic"])  # where it is any number, and a whole one
def test_an_option_that_is_no_number_is_refused_by_its_name(world, value):
    refusal = f"world option cycle must be a number, got {value!r}"
    with pytest.raises(ValueError, match=re.escape(refusal)):
        make_world(world, Conditions(4, [0], options={"cycle": value}))


@pytest.mark.parametrize("value", [2.5, 10**400], ids=["fraction", "huge"])
def test_a_whole_number_has_no_fraction_and_any_size_is_compared(value):
    with pytest.raises(ValueError, match="world option cycle must be a whole number"):
        make_world("cyclic", Conditions(4, [0], options={"cycle": value}))


@pytest.mark.parametrize("value", [inf, nan])
@pytest.mark.parametrize("option", [Option(1.0), Option(1.0, is_whole=True), Option(1.0, high=2.0)])
def test_options_are_finite(option, value):
    with pytest.raises(ValueError, match=f"world option length must be .*, got {value}"):
        read_options("some", {"length": value}, {"length": option})
