"""Bugs in reports and pages."""

from mutant import Mutant

MUTANTS = (
    Mutant(
        "success so far adds up over seeds",
        "reports/findings.py",
        "np.cumsum(self.asked, axis=1)",
        "np.cumsum(self.asked, axis=0)",
        ("tests/reports/test_findings.py",),
    ),
    Mutant(
        "final accuracy is that of the last seed",
        "reports/findings.py",
        "return self.accuracy[:, -1]",
        "return self.accuracy[-1]",
        ("tests/reports/test_findings.py",),
    ),
    Mutant(
        "curves start in round 0",
        "reports/charts/seeds.py",
        "Curve(rounds + 1, mean, sd)",
        "Curve(rounds, mean, sd)",
        ("tests/reports/test_chart_seeds.py",),
    ),
    Mutant(
        "a curve over time ends with the longest seed",
        "reports/charts/seeds.py",
        "last = min(time[-1] for time in times)",
        "last = max(time[-1] for time in times)",
        ("tests/reports/test_chart_seeds.py",),
    ),
    Mutant(
        "the cross of a dot is turned",
        "reports/charts/tradeoffs.py",
        "sd_x=sd(fairness)",
        "sd_x=sd(gain)",
        ("tests/reports/test_chart_tradeoffs.py",),
    ),
    Mutant(
        "heat maps count rounds from 0",
        "reports/charts/clients.py",
        "rounds=recorded.rounds + 1",
        "rounds=recorded.rounds",
        ("tests/reports/test_chart_clients.py",),
    ),
    Mutant(
        "the most frequent label is taken over clients",
        "reports/charts/clients.py",
        "counts.max(axis=1)",
        "counts.max(axis=0).mean()",
        ("tests/reports/test_chart_clients.py",),
    ),
    Mutant(
        "an unknown value spoils the mean",
        "reports/words.py",
        "known = values[values == values]",
        "known = values",
        ("tests/reports/test_words.py",),
    ),
    Mutant(
        "schemes are compared by position, not by seed",
        "reports/html/verdict.py",
        "[more[seed] - less[seed] for seed in more if seed in less]",
        "[a - b for a, b in zip(more.values(), less.values())]",
        ("tests/reports/test_verdict.py",),
    ),
    Mutant(
        "the lowest accuracy comes first",
        "reports/html/verdict.py",
        "sorted(values, key=lambda name: -_mean(values[name]))",
        "sorted(values, key=lambda name: _mean(values[name]))",
        ("tests/reports/test_verdict.py",),
    ),
    Mutant(
        "the worst class is the first",
        "reports/html/verdict.py",
        "int(np.nanargmin(scheme.class_means))",
        "0",
        ("tests/reports/test_verdict.py",),
    ),
    Mutant(
        "wasted seconds are those of the last round",
        "reports/pages/comparison.py",
        'records["wasted_seconds"][:, rows].sum(axis=0)',
        'records["wasted_seconds"][-1, rows]',
        ("tests/reports/test_comparison_page.py",),
    ),
    Mutant(
        "arrived updates count as used",
        "reports/pages/comparison.py",
        'records["valid"][:, rows]',
        'records["arrived"][:, rows]',
        ("tests/reports/test_comparison_page.py",),
    ),
    Mutant(
        "a client that is away keeps probability one",
        "reports/pages/deployment.py",
        'entry["probabilities"].get(client, 0.0)',
        'entry["probabilities"].get(client, 1.0)',
        ("tests/reports/test_deployment_page.py",),
    ),
)
