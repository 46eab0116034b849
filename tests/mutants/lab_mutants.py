"""Bugs in the laboratory."""

from mutant import Mutant

TRIAL = ("tests/lab/test_trial.py",)

MUTANTS = (
    Mutant(
        "every seed of a comparison plays the same world",
        "lab/trial_world.py",
        "seeds = [seed for _, seed in pairs]",
        "seeds = [config.first_seed for _ in pairs]",
        TRIAL,
    ),
    Mutant(
        "every seed of a comparison has the same partition",
        "lab/owners.py",
        'stream(seed, "partition", partition)',
        'stream(config.first_seed, "partition", partition)',
        TRIAL,
    ),
    Mutant(
        "every seed of a comparison reserves the same samples",
        "lab/owners.py",
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
    Mutant(
        "every seed has the same local epochs",
        "lab/trial.py",
        "local_epochs(self.config.clients, key.seed, self.config.epochs)",
        "local_epochs(self.config.clients, self.config.first_seed, self.config.epochs)",
        ("tests/lab/test_trial.py",),
    ),
    Mutant(
        "every seed starts from the same model",
        "lab/trial.py",
        "make_model(config.model, images.shape[1:], data.num_classes, seed)",
        (
            "make_model(\n"
            "                config.model, images.shape[1:], data.num_classes, config.first_seed\n"
            "            )"
        ),
        ("tests/lab/test_trial.py",),
    ),
    Mutant(
        "a rejected update wastes its bytes once",
        "lab/trial_records.py",
        "(lost + 2 * rejected)",
        "(lost + rejected)",
        ("tests/lab/test_trial.py",),
    ),
    Mutant(
        "the owners of labels are counted on the test samples",
        "lab/trial.py",
        "label_counts(data.y, owners.train, data.num_classes)",
        "label_counts(data.y, owners.test, data.num_classes)",
        ("tests/lab/test_trial.py",),
    ),
    Mutant(
        "the number of candidates is ignored",
        "lab/trial.py",
        "candidates=config.candidates",
        "candidates=None",
        ("tests/lab/test_trial.py",),
    ),
    Mutant(
        "probabilities are recorded one round early",
        "lab/trial.py",
        "self._record_allocations(recorder, done)",
        "self._record_allocations(recorder, done - 1)",
        ("tests/lab/test_trial.py",),
    ),
    Mutant(
        "the learning rate of a simulation is ignored",
        "lab/simulation.py",
        "eta=config.eta",
        "eta=0.5",
        ("tests/lab/test_lab_simulation.py",),
    ),
    Mutant(
        "the last run's probabilities are recorded",
        "lab/recorder.py",
        "first_run = (0,) *",
        "first_run = (-1,) *",
        ("tests/lab/test_recorder.py",),
    ),
    Mutant(
        "time to a target is that of the round before",
        "lab/summary.py",
        "elapsed[int(count) - 1, run]",
        "elapsed[int(count) - 2, run]",
        ("tests/lab/test_summary.py",),
    ),
    Mutant(
        "the gap is that of single runs",
        "lab/summary.py",
        "100 * float(gap(means))",
        "100 * float(gap(by_class[-1]).mean())",
        ("tests/lab/test_summary.py",),
    ),
    Mutant(
        "a run goes on with more records than it began with",
        "lab/trial.py",
        "for name in recorded or row}",
        "for name in row}",
        ("tests/lab/test_trial.py",),
    ),
    Mutant(
        "the classes of clients are those of the labels",
        "learning/evaluation.py",
        "by_class = _shares(correct.sum(axis=2), sizes.sum(axis=2))",
        "by_class = _shares(correct.sum(axis=1), sizes.sum(axis=1))",
        ("tests/learning/test_evaluation.py",),
    ),
    Mutant(
        "wasted seconds are per round",
        "lab/summary.py",
        'records["wasted_seconds"].sum(axis=0).mean()',
        'records["wasted_seconds"].mean(axis=0).mean()',
        ("tests/lab/test_summary.py",),
    ),
    Mutant(
        "of two equally long runs the last is kept",
        "lab/archive.py",
        "len(result.accuracy) > len(results[key].accuracy)",
        "len(result.accuracy) >= len(results[key].accuracy)",
        ("tests/lab/test_archive.py",),
    ),
    Mutant(
        "the time left counts the rounds of the last chunk again",
        "lab/progress.py",
        "(self.config.rounds - rounds_now) * seconds_per_round",
        "(self.config.rounds - rounds_before) * seconds_per_round",
        ("tests/cli/test_watch.py",),
    ),
    Mutant(
        "the rates of a comparison are ignored",
        "lab/config.py",
        "        rates=config.rates,\n",
        "",
        ("tests/lab/test_lab_simulation.py",),
    ),
    Mutant(
        "scalars are counted from round 0",
        "lab/tracking.py",
        "append((int(round), float(value)))",
        "append((int(round) - 1, float(value)))",
        ("tests/lab/test_tracking.py",),
    ),
    Mutant(
        "the fairness of a simulation is that of all seeds together",
        "lab/summary.py",
        '"Jain": float(jain(result.counts).mean()),',
        '"Jain": float(jain(result.counts.sum(axis=0))),',
        ("tests/lab/test_summary.py", "tests/lab/test_lab_simulation.py"),
    ),
    Mutant(
        "a part begins with the first seed of its comparison",
        "lab/parts.py",
        "first_seed=min(seeds),",
        "first_seed=config.first_seed,",
        ("tests/lab/test_parts.py",),
    ),
    Mutant(
        "more rounds than the limit are recorded",
        "lab/recorder.py",
        "interval = -(-self.rounds // MAX_ROUNDS)",
        "interval = max(1, self.rounds // MAX_ROUNDS)",
        ("tests/lab/test_recorder.py",),
    ),
    Mutant(
        "the success of a comparison counts rejected updates",
        "lab/summary.py",
        'success_share(records["valid"].sum(), counts.sum())',
        'success_share(records["arrived"].sum(), counts.sum())',
        ("tests/lab/test_summary.py",),
    ),
    Mutant(
        "the last rounds of a simulation are not reported",
        "lab/simulation_result.py",
        "if on_round and (done % PROGRESS_EVERY == 0 or done == rounds):",
        "if on_round and done % PROGRESS_EVERY == 0:",
        ("tests/lab/test_lab_simulation.py", "tests/cli/test_cli.py"),
    ),
)
