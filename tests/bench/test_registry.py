import pytest

from fedcohort.bench import BENCHES
from fedcohort.checks import check_choice


def test_the_benchmarks_that_are_installed_are_those_of_selection_and_learning():
    assert list(BENCHES) == ["selection", "learning"]


def test_a_benchmark_that_is_not_installed_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"name must be one of selection, learning, got 'flower'"):
        check_choice("name", "flower", BENCHES)
