"""Run folders made by hand, so that nothing is trained."""

import json

import numpy as np

from fedcohort import E3CS
from fedcohort.arrays import pick
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.recorder import AllocationRecorder
from fedcohort.lab.runs import run_keys
from fedcohort.selection.protocol import Outcome

SMALL = ComparisonConfig(
    selectors=("e3cs-0.5", "random"),
    partitions=("iid", "primary-label"),
    aggregations=("paper",),
    seeds=3,
    clients=8,
    cohort=3,
    rounds=12,
    targets=(0.3, 0.5),
)


def make_records(config, seed=0):
    """Return records in which accuracy grows and about half of the updates arrive."""
    rng = np.random.default_rng(seed)
    runs = len(run_keys(config))
    valid = rng.random((config.rounds, runs, config.cohort)) < 0.5
    noise = rng.normal(0, 0.02, (config.rounds, runs))
    accuracy = np.linspace(0.1, 0.9, config.rounds)[:, None] + noise
    order = rng.random((config.rounds, runs, config.clients)).argsort(axis=-1)
    more = np.random.default_rng([seed, 1])
    by_class = accuracy[..., None] + more.normal(0, 0.05, (*accuracy.shape, 4))
    by_label = accuracy[..., None] + more.normal(0, 0.05, (*accuracy.shape, 3))
    return {
        "class_accuracy": by_class.clip(0, 1).astype(np.float32),
        "label_accuracy": by_label.clip(0, 1).astype(np.float32),
        "clients": np.sort(order[..., : config.cohort]).astype(np.int32),
        "arrived": valid,
        "valid": valid,
        "accuracy": accuracy.clip(0, 1),
        "loss": 1 - accuracy,
        "seconds": rng.uniform(1, 4, (config.rounds, runs)),
        "wasted_seconds": rng.uniform(0, 4, (config.rounds, runs)),
        "wasted_bytes": rng.integers(0, 1000, (config.rounds, runs)),
    }


def write_comparison(folder, config=SMALL, chunks=1, with_owners=True):
    """Write the folder of a comparison, with its records in so many chunks; return the records."""
    run_folder.write_settings(folder, config.as_dict())
    records = make_records(config)
    for rounds in np.array_split(np.arange(config.rounds), chunks):
        chunk = {name: values[rounds] for name, values in records.items()}
        run_folder.save_records(folder, int(rounds[0]), chunk)
    write_allocations(folder, config)
    run_folder.save_class_rates(folder, np.array([0.1, 0.3, 0.6, 0.9]))
    if with_owners:
        rng = np.random.default_rng(1)
        counts = {name: rng.integers(0, 9, (config.clients, 4)) for name in config.partitions}
        run_folder.save_label_counts(folder, counts)
    return records


def write_allocations(folder, config):
    """Write the probabilities of an E3CS whose last two clients alone answer."""
    recorder = AllocationRecorder(config.rounds)
    selector = E3CS(config.clients, config.cohort, rng=[0, 1], quota=0.0)
    answers = np.array([[0.0] * (config.clients - 2) + [1.0] * 2] * 2)
    for round in range(config.rounds):
        recorder.record("e3cs-0.5", selector, round)
        cohort = selector.select(round)
        selector.update(Outcome(cohort, pick(answers, cohort.clients)))
    recorder.save(folder, 0)


def journal_entry(number, outcomes, probabilities=None):
    """Return the entry of a round in a Flower journal; outcomes: by client."""
    asked = []
    for name, outcome in outcomes.items():
        asked.append(
            {"client": name, "inclusion": 0.5, "status": outcome, "reason": "", "seconds": 1.0}
        )
    arrived = list(outcomes.values()).count("arrived")
    return {
        "round": number,
        "seconds": 2.5,
        "asked": asked,
        "arrived": arrived,
        "cep": arrived,
        "success_ratio": arrived / len(asked),
        "fairness": 1.0,
        "probabilities": probabilities,
    }


def write_journal(folder, entries):
    """Write the folder of a Flower run with these rounds."""
    folder.mkdir(exist_ok=True)
    lines = [f"{json.dumps(entry)}\n" for entry in entries]
    (folder / "rounds.jsonl").write_text("".join(lines))
