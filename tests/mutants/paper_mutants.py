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
    Mutant(
        "the official accuracy is read from the reserved data",
        "paper/cells.py",
        "return float(run.official[-1])",
        "return float(run.accuracy[-1])",
        ("tests/paper/test_cells.py",),
    ),
    Mutant(
        "outside means one standard deviation below",
        "paper/cells.py",
        "self.paper < self.mean - 2 * self.sd",
        "self.paper < self.mean - self.sd",
        ("tests/paper/test_cells.py",),
    ),
    Mutant(
        "runs of a cell stand in the order of their files",
        "paper/cells.py",
        "sorted(runs, key=lambda run: run.config.first_seed)",
        "list(runs)",
        ("tests/paper/test_cells.py",),
    ),
    Mutant(
        "the paper's never is not compared after as many rounds",
        "paper/tables.py",
        "if config.rounds > paper_rounds and value == inf:",
        "if config.rounds >= paper_rounds and value == inf:",
        ("tests/paper/test_tables.py",),
    ),
    Mutant(
        "the speed-up is upside down",
        "paper/server_step.py",
        "log(rounds / rounds_fast[seed])",
        "log(rounds_fast[seed] / rounds)",
        ("tests/paper/test_server_step.py",),
    ),
    Mutant(
        "the part left is upside down",
        "paper/server_step.py",
        "100 * part / whole",
        "100 * whole / part",
        ("tests/paper/test_server_step.py",),
    ),
    Mutant(
        "the difference to the first variant has the wrong sign",
        "paper/ablations.py",
        "values[seed] - first_values[seed]",
        "first_values[seed] - values[seed]",
        ("tests/paper/test_ablations.py",),
    ),
    Mutant(
        "the difference of the test sets has the wrong sign",
        "paper/ablations.py",
        "official.mean - reserved.mean",
        "reserved.mean - official.mean",
        ("tests/paper/test_ablations.py",),
    ),
    Mutant(
        "a table of a curve shows the round before",
        "paper/curves.py",
        "accuracy = curve[:, round - 1]",
        "accuracy = curve[:, round - 2]",
        ("tests/paper/test_curves.py",),
    ),
    Mutant(
        "the paper's never is a mark",
        "paper/curves.py",
        "value < inf",
        "value <= inf",
        ("tests/paper/test_curves.py",),
    ),
    Mutant(
        "what speaks most for a claim is shown",
        "paper/claims/verdicts.py",
        "min(were_run, key=margins)",
        "max(were_run, key=margins)",
        ("tests/paper/test_claims.py",),
    ),
    Mutant(
        "success counts all rounds",
        "paper/claims/evidence.py",
        "self.successes[:, first_round:].mean(axis=-1)",
        "self.successes.mean(axis=-1)",
        ("tests/paper/test_claims.py",),
    ),
    Mutant(
        "never counts as the rounds that were played",
        "paper/claims/claim.py",
        "round = 2 * horizon",
        "round = horizon",
        ("tests/paper/test_claims.py",),
    ),
    Mutant(
        "the regret against the clairvoyant is per round",
        "paper/theorem.py",
        "float(ahead.sum(axis=-1).mean())",
        "float(ahead.mean(axis=-1).mean())",
        ("tests/paper/test_theorem.py",),
    ),
    Mutant(
        "the regret of E3CS-inc assumes a turn one round late",
        "paper/regret.py",
        "np.arange(rounds) >= rounds // 4",
        "np.arange(rounds) > rounds // 4",
        (
            "tests/paper/test_regret.py"
            "::test_the_quota_of_the_growing_scheme_is_that_of_its_selector",
        ),
    ),
    Mutant(
        "unfinished runs of pow-d are shown",
        "paper/participation.py",
        "        if run.finished:\n            by_seed",
        "        if run:\n            by_seed",
        ("tests/paper/test_participation.py",),
    ),
)
