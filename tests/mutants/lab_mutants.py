"""Bugs in the laboratory."""

from mutant import Mutant

TRIAL = ("tests/lab/test_trial.py",)

MUTANTS = (
    Mutant(
        "every seed of a comparison plays the same world",
        "lab/trial.py",
        "seeds = [key.seed for key in self.keys]",
        "seeds = [self.config.first_seed for key in self.keys]",
        TRIAL,
    ),
    Mutant(
        "every seed of a comparison has the same partition",
        "lab/trial.py",
        'stream(seed, "partition", partition)',
        'stream(config.first_seed, "partition", partition)',
        TRIAL,
    ),
    Mutant(
        "every seed of a comparison reserves the same samples",
        "lab/trial.py",
        'stream(seed, "reserve", partition)',
        'stream(config.first_seed, "reserve", partition)',
        TRIAL,
    ),
    Mutant(
        "pow-d reads the losses of other runs",
        "lab/trial.py",
        "self.engine.losses(rows, clients)",
        "self.engine.losses(list(range(len(rows))), clients)",
        TRIAL,
    ),
)
