"""Bugs in the reproduction of the paper."""

from mutant import Mutant

MUTANTS = (
    Mutant(
        "the best fixed allocation counts all rounds alike",
        "paper/regret.py",
        "best_fixed(spare @ means, spare, floors)",
        "best_fixed(means.sum(axis=0), spare, floors)",
        (
            "tests/paper/test_regret.py::test_the_best_fixed_allocation_counts_a_round_by_what_it_has_to_spare",
        ),
    ),
)
