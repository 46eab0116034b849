"""Bugs in the worlds, and in what reads who was asked."""

from mutant import Mutant

IN_THE_LAB = ("tests/lab/test_worlds_in_the_lab.py",)
INTERVALS = ("tests/world/test_intervals.py",)

MUTANTS = (
    Mutant(
        "on times are as long as off times",
        "world/markov.py",
        "leaves = np.where(share < 1, 1 / mean_on, 0.0)",
        "leaves = np.where(share < 1, 1 / mean_off, 0.0)",
        ("tests/world/test_markov.py",),
    ),
    Mutant(
        "failures shift the chains",
        "world/online.py",
        'as_rng(list(conditions.seeds), "world", "failure")',
        'as_rng(list(conditions.seeds), "world")',
        ("tests/world/test_markov.py",),
    ),
    Mutant(
        "the groups are blocks of one class each",
        "world/groups.py",
        "np.arange(num_clients) % num_groups",
        "np.arange(num_clients) * num_groups // num_clients",
        ("tests/world/test_groups.py",),
    ),
    Mutant(
        "the swap comes one round late",
        "world/swap.py",
        "before if round < at else after",
        "before if round <= at else after",
        ("tests/world/test_swap.py",),
    ),
    Mutant(
        "the model is sent one way only",
        "world/devices.py",
        "sending = 2 * model_bytes",
        "sending = model_bytes",
        ("tests/world/test_devices.py",),
    ),
    Mutant(
        "times that touch are two times",
        "world/intervals.py",
        "merged = _merge(intervals)",
        "merged = intervals",
        INTERVALS,
    ),
    Mutant(
        "the rounds of a trace suffer from rounding",
        "world/intervals.py",
        "    rounds -= (rounds - 1) * length >= seconds\n",
        "",
        INTERVALS,
    ),
    Mutant(
        "nobody counts as the last client",
        "lab/summary.py",
        "np.bincount(run[run != NOBODY], minlength=num_clients)",
        "np.bincount(run.ravel() % num_clients, minlength=num_clients)",
        IN_THE_LAB,
    ),
    Mutant(
        "who could not be asked wastes bytes",
        "lab/trial_records.py",
        "(record.cohort.is_asked & ~record.arrived)",
        "(~record.arrived)",
        IN_THE_LAB,
    ),
    Mutant(
        "an empty round takes no time",
        "rounds.py",
        "duration = np.where(is_asked.any(axis=-1), duration, limit)",
        "duration = np.where(is_asked.any(axis=-1), duration, 0.0)",
        ("tests/test_rounds.py",),
    ),
    Mutant(
        "success rates of one's own world stay as they were written",
        "world/registry.py",
        "replace(world, success_rates=rates)",
        "replace(world)",
        ("tests/world/test_worlds.py",),
    ),
)
