"""How a mistake of a user is told in one line."""

import pytest

from fedcohort.lab.mistakes import describe_mistake


def test_a_file_that_cannot_be_used_is_named_without_the_number_of_the_error(tmp_path):
    with pytest.raises(OSError, match="missing") as caught:
        (tmp_path / "missing" / "file").open()
    said = describe_mistake(caught.value)
    assert said == f"{tmp_path / 'missing' / 'file'} cannot be used: no such file or directory"


def test_an_error_without_a_file_keeps_its_own_words():
    assert describe_mistake(OSError("the disk is full")) == "the disk is full"
    assert describe_mistake(ValueError("k must be at least 1")) == "k must be at least 1"


def test_a_mistake_of_ours_has_no_such_line():
    assert describe_mistake(KeyError("x")) is None
