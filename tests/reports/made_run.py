"""A comparison's folder made by hand: nothing is trained."""

import numpy as np

from fedcohort import E3CS
from fedcohort.arrays import pick
from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.recorder import AllocationRecorder
from fedcohort.lab.runs import run_keys
from fedcohort.selection.protocol import Outcome

SMALL = ComparisonConfig(
    selectors=("e3cs-0.5", "random"), partitions=("iid", "primary-label"), aggregations=("paper",), seeds=3, clients=8,
    cohort=3, rounds=12, targets=(0.3, 0.5),
)  # fmt: skip


def records(of, seed=0):
    """Return records in which accuracy grows and about half of the updates arrive."""
    rng, runs = np.random.default_rng(seed), len(run_keys(of))
    valid = rng.random((of.rounds, runs, of.cohort)) < 0.5
    accuracy = np.linspace(0.1, 0.9, of.rounds)[:, None] + rng.normal(0, 0.02, (of.rounds, runs))
    return {
        "clients": np.sort(
            rng.random((of.rounds, runs, of.clients)).argsort(axis=-1)[..., : of.cohort]
        ).astype(np.int32),
        "arrived": valid,
        "valid": valid,
        "accuracy": accuracy.clip(0, 1),
        "loss": 1 - accuracy,
        "seconds": rng.uniform(1, 4, (of.rounds, runs)),
        "wasted_seconds": rng.uniform(0, 4, (of.rounds, runs)),
        "wasted_bytes": rng.integers(0, 1000, (of.rounds, runs)),
    }


def comparison(folder, of=SMALL, chunks=1, owners=True):
    """Write a run folder, its records in so many chunks; return the records."""
    rundir.write_settings(folder, of.as_dict())
    kept = records(of)
    for rounds in np.array_split(np.arange(of.rounds), chunks):
        rundir.save_records(
            folder, int(rounds[0]), {name: values[rounds] for name, values in kept.items()}
        )
    watch, selector = (
        AllocationRecorder(of.rounds),
        E3CS(of.clients, of.cohort, rng=[0, 1], quota=0.0),
    )
    for round in range(of.rounds):
        watch.record("e3cs-0.5", selector, round)
        cohort = selector.select(round)
        selector.update(
            Outcome(cohort, pick(np.array([[0.0] * 6 + [1.0] * 2] * 2), cohort.clients))
        )
    watch.save(folder, 0)
    if owners:
        rng = np.random.default_rng(1)
        rundir.save_label_counts(
            folder, {name: rng.integers(0, 9, (of.clients, 4)) for name in of.partitions}
        )
    return kept


def round_row(number, asked, probabilities=None):
    """Return a line of a Flower journal; asked: what came of each client, by name."""
    arrived = sum(word == "arrived" for word in asked.values())
    return {
        "round": number,
        "seconds": 2.5,
        "asked": [
            {"client": name, "inclusion": 0.5, "status": word, "reason": "", "seconds": 1.0}
            for name, word in asked.items()
        ],
        "arrived": arrived,
        "cep": arrived,
        "success_ratio": arrived / len(asked),
        "fairness": 1.0,
        "probabilities": probabilities,
    }
