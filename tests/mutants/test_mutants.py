"""The list of planted bugs must not rot; `make mutants` plants them."""

import pytest
from catalogue import MUTANTS
from mutant import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}: {mutant.name}")
def test_the_text_that_a_bug_replaces_occurs_exactly_once(mutant):
    assert mutant.planted() != mutant.path().read_text(encoding="utf-8")
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).exists()
