"""Bugs that were written down before anybody looked which tests would fail.

Each is tried against all quick tests of its package, not against a choice of test files.
"""

from mutant import Mutant

LAB = ("tests/lab",)
PAPER = ("tests/paper",)
FLOWER = ("tests/flower",)
REPORTS = ("tests/reports",)
CLI = ("tests/cli",)
STUDY = ("tests/study",)
WORLD = ("tests/world",)

MUTANTS = (
    Mutant(
        "the accuracy of a comparison under way is that of the chunk's first test",
        "lab/progress.py",
        "float(tested[-1].mean())",
        "float(tested[0].mean())",
        (*LAB, "tests/cli/test_watch.py", "tests/cli/test_watch_lines.py"),
    ),
    Mutant(
        "a part begins with its last seed",
        "lab/parts.py",
        "first_seed=min(seeds),",
        "first_seed=max(seeds),",
        LAB,
    ),
    Mutant(
        "wasted megabytes are mebibytes",
        "lab/summary.py",
        ".sum(axis=0).mean() / 1e6)",
        ".sum(axis=0).mean() / 2**20)",
        LAB,
    ),
    Mutant(
        "progress of a simulation leaves out the last rounds",
        "lab/simulation_result.py",
        "(done % PROGRESS_EVERY == 0 or done == rounds)",
        "(done % PROGRESS_EVERY == 0)",
        LAB,
    ),
    Mutant(
        "the memory keeps the files of the last checkpoint alone",
        "lab/memory_log.py",
        "keep={*self._rows_by_round, *self._previous}",
        "keep={*self._rows_by_round}",
        LAB,
    ),
    Mutant(
        "the rate of a class is a sum",
        "lab/reliability.py",
        "Reliability(classes, totals / members, members",
        "Reliability(classes, totals, members",
        LAB,
    ),
    Mutant(
        "lost updates waste no bytes",
        "lab/trial_records.py",
        "(record.cohort.is_asked & ~record.arrived)",
        "(record.cohort.is_asked & record.arrived)",
        LAB,
    ),
    Mutant(
        "the spread of a cell is that of all values",
        "paper/cells.py",
        "return sd(self.reached)",
        "return sd(np.array(self.values))",
        PAPER,
    ),
    Mutant(
        "the note names the model that is shown",
        "paper/cells.py",
        "{name.replace('_', ' ')} {value}",
        "{name.replace('_', ' ')} {shown_value}",
        PAPER,
    ),
    Mutant(
        "clients that fail lose less",
        "paper/claims/training_checks.py",
        "losses[0] - losses[-1]",
        "losses[-1] - losses[0]",
        ("tests/paper/test_claims.py",),
    ),
    Mutant(
        "the spread of the fit counts fast unfinished runs",
        "paper/fit_cells.py",
        "if not any(cell.pending for cell in shown.values()):",
        "if True:",
        ("tests/paper/test_fit.py",),
    ),
    Mutant(
        "halves go to the even number",
        "paper/labels.py",
        "floor(scaled + FLOAT32_ERROR * abs(scaled) + 0.5) / scale",
        "round(scaled) / scale",
        ("tests/paper/test_labels.py",),
    ),
    Mutant(
        "halves that no float holds go down",
        "paper/labels.py",
        "FLOAT32_ERROR = 6e-8",
        "FLOAT32_ERROR = 0.0",
        ("tests/paper/test_labels.py",),
    ),
    Mutant(
        "comparisons of unknown noise are never equal",
        "statistics.py",
        "        if not self.degrees:\n            return UNKNOWN_NOISE  # Comparisons",
        "        if self.degrees < 0:\n            return UNKNOWN_NOISE  # Comparisons",
        ("tests/paper/test_claims.py",),
    ),
    Mutant(
        "a difference of zero is negative",
        "paper/tables.py",
        'sign = "+" if difference >= 0 else "−"',
        'sign = "+" if difference > 0 else "−"',
        PAPER,
    ),
    Mutant(
        "shorter runs than the paper's compare their final accuracy",
        "paper/tables.py",
        '        if quantity == "final":\n            return None\n        if selector',
        '        if quantity == "official":\n            return None\n        if selector',
        PAPER,
    ),
    Mutant(
        "speed is seconds per step",
        "paper/labels.py",
        "{steps / seconds:,.0f}",
        "{seconds / steps:,.0f}",
        PAPER,
    ),
    Mutant(
        "the accuracies of a page are those of the first seed twice",
        "paper/page.py",
        "seeds=[run.config.first_seed for run in runs],",
        "seeds=[runs[0].config.first_seed for run in runs],",
        PAPER,
    ),
    Mutant(
        "a rest ends one round early",
        "flower/backoff.py",
        "self.resting.get(client, 0) >= server_round",
        "self.resting.get(client, 0) > server_round",
        FLOWER,
    ),
    Mutant(
        "the median is the upper of two",
        "flower/history.py",
        "medians.append(median_low(known.values()))",
        "medians.append(sorted(known.values())[len(known) // 2])",
        FLOWER,
    ),
    Mutant(
        "unknown outcomes count as sent",
        "flower/journal.py",
        'sum(verdict.status not in ("unknown", "unneeded") for verdict in verdicts)',
        "len(verdicts)",
        FLOWER,
    ),
    Mutant(
        "a pause is part of the round",
        "flower/training.py",
        "started_at = called_at + paused",
        "started_at = called_at",
        FLOWER,
    ),
    Mutant(
        "a selector learns from a round that is known in part",
        "flower/training.py",
        'if any(verdict.status == "unknown" for verdict in verdicts):',
        'if all(verdict.status == "unknown" for verdict in verdicts):',
        FLOWER,
    ),
    Mutant(
        "the last node is no probe",
        "flower/registration.py",
        "last = len(nodes) - 1",
        "last = len(nodes) - 2",
        FLOWER,
    ),
    Mutant(
        "the loss of a reply is its number of examples",
        "flower/replies.py",
        "return float(self.metrics[self.rules.loss_key])",
        "return float(self.metrics[self.rules.examples_key])",
        FLOWER,
    ),
    Mutant(
        "the names of a list lack their conjunction",
        "reports/words.py",
        "return f\"{', '.join(first)} {conjunction} {last}\"",
        "return f\"{', '.join(first)} and {last}\"",
        REPORTS,
    ),
    Mutant(
        "quartiles of a box are tenths",
        "reports/svg/bars.py",
        "[0, 25, 50, 75, 100]",
        "[0, 10, 50, 90, 100]",
        REPORTS,
    ),
    Mutant(
        "a scheme beyond the first colours has the dash of the first",
        "reports/palette.py",
        "dash=(place + colours_used_up) % NUM_DASHES",
        "dash=place % NUM_DASHES",
        REPORTS,
    ),
    Mutant(
        "clients of a chart are the first ones",
        "reports/charts/clients.py",
        "clients = evenly_spread(num_clients, max_clients or num_clients)",
        "clients = np.arange(min(num_clients, max_clients or num_clients))",
        REPORTS,
    ),
    Mutant(
        "the page names its title where the seeds should stand",
        "reports/html/page.py",
        'origin = {"seeds": findings.seeds} | origin',
        'origin = {"seeds": findings.title} | origin',
        REPORTS,
    ),
    Mutant(
        "a look without a new round is printed, too",
        "cli/watch.py",
        "        if snapshot.done > done_before:\n            print_snapshot(snapshot)",
        "        if snapshot.done >= done_before:\n            print_snapshot(snapshot)",
        CLI,
    ),
    Mutant(
        "a reproduction without its data ends well",
        "cli/reproduce.py",
        "    if reproduction.absent:\n        raise typer.Exit(INCOMPLETE)",
        "    if reproduction.stopped:\n        raise typer.Exit(INCOMPLETE)",
        (*CLI, *PAPER),
    ),
    Mutant(
        "a study does not count rejected updates as sent back",
        "study/measures.py",
        '(asked + int(records["arrived"].sum()))',
        '(asked + int(records["valid"].sum()))',
        STUDY,
    ),
    Mutant(
        "the spread of a study's curve is that of all there are",
        "study/runs.py",
        "accuracy.std(axis=0, ddof=1)",
        "accuracy.std(axis=0)",
        STUDY,
    ),
    Mutant(
        "an unknown accuracy voids the tests of its case",
        "study/table_checks.py",
        'FINITE = ("seed", "target", "final", "worst_class")',
        'FINITE = ("seed", "target", "worst_class")',
        STUDY,
    ),
    Mutant(
        "a client is online for one round more of its cycle",
        "world/cyclic.py",
        "% cycle < rounds_on for",
        "% cycle <= rounds_on for",
        WORLD,
    ),
)
