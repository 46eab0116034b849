"""Text that clients send is short and harmless when it is printed."""

import pytest

from fedcohort.flower.text import LONGEST_REASON, describe_error, printable, quote


def test_control_characters_become_question_marks():
    assert printable("a\x1b[31mb\nc\u202ed") == "a?[31mb?c?d"


def test_a_long_text_is_cut():
    assert printable("x" * 10_000) == "x" * LONGEST_REASON
    assert printable("abc", 2) == "ab"


@pytest.mark.parametrize(
    ("sent", "quoted"),
    [
        ("w", "'w'"),
        (None, "None"),
        ([1.0, 2.0], "[1.0, 2.0]"),
        ("x" * 101, "'" + "x" * 100 + "'… (length 101)"),
        (b"x" * 200, "b'" + "x" * 100 + "'… (length 200)"),
        ([0] * 1000, "[" + ", ".join(["0"] * 100) + "]… (length 1000)"),
        (10**100, "an integer of 333 bits"),
        (-(10**4000), "an integer of 13288 bits"),
        (10**100 - 1, "9" * 100),
    ],
)
def test_a_quote_of_what_a_client_sent_is_short(sent, quoted):
    assert quote(sent) == quoted


def test_an_error_is_described_in_one_line():
    assert describe_error(KeyError("x")) == "KeyError: 'x'"
    assert describe_error(ValueError()) == "ValueError"
    assert describe_error(ValueError("one\n  two\x1b")) == "ValueError: one two?"
    assert len(describe_error(ValueError("x" * 10_000))) == LONGEST_REASON
