"""Bugs in the selectors of other papers, and in what they share."""

from mutant import Mutant


def _mutant(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(name, f"selection/{file}", old, new, (f"tests/selection/{test}",))


MUTANTS = (
    _mutant(
        "being asked in vain makes a client young",
        "age.py",
        "np.where(outcome.success > 0, float(outcome.cohort.round), before)",
        "np.full(before.shape, float(outcome.cohort.round))",
        "test_age.py",
    ),
    _mutant(
        "F3AST weighs by the rates before the round",
        "f3ast.py",
        "return 1 / ((1 - self.memory) * before + self.memory)",
        "return 1 / before",
        "test_f3ast.py",
    ),
    _mutant(
        "rounding decides whom F3AST asks first",
        "f3ast.py",
        "lag = np.round(lag, 9)",
        "lag = lag + 0.0",
        "test_f3ast.py::test_clients_that_lag_alike_tie_whatever_their_data_and_the_rounding",
    ),
    _mutant(
        "a huge loss makes Oort's utilities infinite",
        "oort.py",
        "sizes * np.clip(losses, -LARGEST_LOSS, LARGEST_LOSS)",
        "sizes * losses",
        "test_oort.py",
    ),
    _mutant(
        "Oort punishes quick clients",
        "oort.py",
        "is_slow = (self.seconds > preferred)",
        "is_slow = (self.seconds < preferred)",
        "test_oort.py",
    ),
    _mutant(
        "Oort's pacer never closes a window",
        "oort.py",
        "self.rounds_in_window = np.asarray(self.rounds_in_window + 1)",
        "self.rounds_in_window = np.asarray(self.rounds_in_window)",
        "test_oort.py",
    ),
    _mutant(
        "Oort's pacer takes any growth of a window for growth",
        "oort.py",
        "FLAT = 1.1 ",
        "FLAT = 1.0 ",
        "test_oort.py",
    ),
    Mutant(
        "FedAU cuts absences later than published",
        "aggregation/fedau.py",
        "LONGEST_INTERVAL = 50 ",
        "LONGEST_INTERVAL = 60 ",
        ("tests/aggregation/test_fedau.py",),
    ),
    _mutant(
        "Oort does not cut the largest utilities",
        "oort.py",
        "(np.minimum(raw, top) - low) / span",
        "(raw - low) / span",
        "test_oort.py",
    ),
    _mutant(
        "CS-UCB rewards answers that never came",
        "cs_ucb.py",
        "+ outcome.success * speed",
        "+ speed",
        "test_cs_ucb.py",
    ),
    _mutant(
        "debts fall below zero",
        "cs_ucb.py",
        "np.maximum(pick(grown, asked) - 1, 0.0)",
        "pick(grown, asked) - 1",
        "test_cs_ucb.py",
    ),
    _mutant(
        "RBCS-F takes the seconds until a round closed for an answer",
        "rbcs_f.py",
        "time = np.where(outcome.success > 0, fraction, 1.0)",
        "time = fraction",
        "test_rbcs_f.py",
    ),
    _mutant(
        "RBCS-F's prefixes stay in the upper half with one value too few",
        "rbcs_f.py",
        "is_enough = found >= missing",
        "is_enough = found >= missing - 1",
        "test_rbcs_f.py",
    ),
    _mutant(
        "FedCS by time forgets the seconds of failures",
        "fedcs_time.py",
        "+ np.asarray(outcome.seconds))",
        "+ np.asarray(outcome.seconds) * outcome.success)",
        "test_fedcs_time.py",
    ),
    _mutant(
        "optimal sampling forgets the data sizes",
        "optimal.py",
        "np.log(self.data_sizes) + np.log(norms)",
        "np.log(norms)",
        "test_optimal.py",
    ),
    _mutant(
        "clustered sampling fills its bins in the order of the ids",
        "clustered.py",
        "np.argsort(-self.data_sizes",
        "np.argsort(0 * self.data_sizes",
        "test_clustered.py",
    ),
    _mutant(
        "clustered sampling draws the smallest with the chances of the largest",
        "clustered.py",
        "lines = lay_lines(pick(inclusion, largest_first), size)",
        "lines = lay_lines(pick(inclusion, largest_first)[..., ::-1], size)",
        "test_contract.py::test_clients_are_asked_with_the_probabilities_that_are_claimed",
    ),
    _mutant(
        "REFL learns from answers although it knows who was there",
        "refl.py",
        "self.times_there = self.times_there + self.present\n            return",
        "self.times_there = self.times_there + self.present",
        "test_refl.py",
    ),
    _mutant(
        "over-selection waits for everyone it asked",
        "over_selection.py",
        "self.enough = needed",
        "self.enough = self.cohort_size",
        "test_over_selection.py",
    ),
    _mutant(
        "states forget the values of runs",
        "base.py",
        "for name in (*self.client_arrays, *self.run_arrays):",
        "for name in self.client_arrays:",
        "test_oort.py::test_a_restored_pacer_goes_on_within_its_window",
    ),
    _mutant(
        "data sizes of a batch are laid out by column",
        "data_sizes.py",
        'order="C"',
        'order="K"',
        "test_contract.py::test_a_run_in_a_batch_is_the_run_alone",
    ),
    _mutant(
        "REFL skips rounds with nobody there",
        "refl.py",
        "if self.present is not None:",
        "if self.present is not None and not self.present.any():\n            return\n"
        "        if self.present is not None:",
        "test_refl.py",
    ),
    _mutant(
        "Age puts an empty cohort into its trees",
        "age.py",
        "if not clients.size:\n            return\n        before",
        "before",
        "test_age.py",
    ),
    _mutant(
        "E3CS takes infinite weights from a state",
        "e3cs.py",
        '{"log_weights": (-LARGEST_LOG, LARGEST_LOG)}',
        "{}",
        "test_strange_states.py",
    ),
    _mutant(
        "robust weights are written anew from the differences that were put",
        "tree_runs.py",
        "values[clients] = own ",
        "values[clients] = values[clients] ",
        "test_e3cs_tree.py",
    ),
)
