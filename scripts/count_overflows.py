"""Count the runs of E3CS in which weights that are multiplied, as the paper does, overflow.

    python scripts/count_overflows.py [--seeds 4000]

The paper's setting: 100 clients in four classes, 20 asked, 2,500 rounds, no floor. The package
adds logarithms instead, so it can say when the weight itself would be above what float64 holds.
The result is results/explorations/overflow.json; DEVIATIONS.md quotes it.
"""

import argparse
import json
from datetime import date
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort import E3CS, Outcome, class_rates
from fedcohort.arrays import Ints
from fedcohort.lab.environment import describe_environment

RECORD = Path(__file__).parents[1] / "results/explorations/overflow.json"
LARGEST = log(np.finfo(np.float64).max)  # about 709.78
ROUNDS = 2500
BEST_ETA = 0.096  # the theorem's own rate in this setting
CASES = (("successive", 0.5), ("systematic", 0.5), ("successive", BEST_ETA))
BATCH = 400


def first_overflows(sampler: str, eta: float, seeds: range, rounds: int = ROUNDS) -> Ints:
    """Return the round in which each seed's largest weight overflows; -1 for never.

    Args:
        sampler: Name of the sampler; "successive" is the paper's.
        eta: Learning rate.
        seeds: One run for each.
        rounds: Rounds to play.
    """
    selector = E3CS(100, 20, rng=list(seeds), eta=eta, sampler=sampler)
    rng = np.random.default_rng(seeds.start)
    rates = class_rates(100)
    first = np.full(len(seeds), -1)
    for round in range(rounds):
        cohort = selector.select(round)
        arrived = rng.random(cohort.clients.shape) < rates[cohort.clients]
        selector.update(Outcome(cohort, arrived))
        is_over = selector.log_weights.max(axis=-1) > LARGEST
        first[is_over & (first < 0)] = round + 1
    return first


def count(sampler: str, eta: float, seeds: int) -> dict[str, Any]:
    """Return the share of runs that overflow, its standard error, and the median round."""
    parts = []
    for start in range(0, seeds, BATCH):
        batch = range(start, min(start + BATCH, seeds))
        parts.append(first_overflows(sampler, eta, batch))
    first = np.concatenate(parts)
    share = float((first > 0).mean())
    middle = float(np.median(first[first > 0])) if share else None
    return {
        "sampler": sampler,
        "eta": eta,
        "rounds": ROUNDS,
        "seeds": seeds,
        "share": share,
        "standard error": sqrt(share * (1 - share) / seeds),
        "median round": middle,
    }


def origin(seeds: int) -> dict[str, Any]:
    """Return what a record says of how it was made."""
    versions = describe_environment()
    del versions["machine"]  # the counts do not depend on it
    return {
        "command": f"python scripts/count_overflows.py --seeds {seeds}",
        "date": date.today().isoformat(),
        "commit": versions.pop("commit"),
        "versions": versions,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count overflows of the paper's weights.")
    parser.add_argument("--seeds", type=int, default=4000)
    number = parser.parse_args().seeds
    cases = [count(sampler, eta, number) | origin(number) for sampler, eta in CASES]
    RECORD.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")
    print(RECORD.read_text(encoding="utf-8"))
