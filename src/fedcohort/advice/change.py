"""Whether clients change over time, and when.

For every round we ask how much better two rates per client, before and after it, explain the
answers than one rate. The largest gain is compared with the gains of the same rounds in shuffled
order; blocks of rounds stay together where failures last.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.estimates import block_length
from fedcohort.advice.log import FederationLog
from fedcohort.advice.persistence import estimate_persistence
from fedcohort.arrays import Floats, Ints

MOST_CLIENTS = 300
MOST_BINS = 1000  # positions at which a change is looked for
SHUFFLES = 399
POSSIBLE = 0.05
LEVEL = 0.005  # a change is certain below this share of shuffles as large
MARGIN = 0.1  # share of the rounds at each end in which no change is looked for
LEAST_ROUNDS = 20
WITHIN = 7.35  # gains this close to the largest belong to the 95 % interval of the time


@dataclass(frozen=True)
class Change:
    """The largest change of the clients' rates.

    Attributes:
        is_certain: Whether there is one for certain.
        p_value: Share of shuffled logs with as large a change.
        position: First round after the change, from 0; None if there is none.
        first: Earliest round that it may be.
        last: Latest round that it may be.
    """

    is_certain: bool
    p_value: float
    position: int | None
    first: int | None
    last: int | None

    @property
    def is_possible(self) -> bool:
        """Whether fewer than one in twenty shuffled logs has as large a change."""
        return self.p_value < POSSIBLE


NO_CHANGE = Change(False, 1.0, None, None, None)


def find_change(log: FederationLog, rng: np.random.Generator) -> Change:
    """Return the largest change in a log.

    A change looks like failures that last, so how long they last is asked within the two parts.

    Args:
        log: The log.
        rng: Source of the shuffles.
    """
    if log.num_rounds < LEAST_ROUNDS:
        return NO_CHANGE
    block = block_length(log.num_rounds, 0.0)
    change = _test(log, block, rng)
    if change.position is None:
        return change
    parts = (log.until(change.position), log.since(change.position))
    memory = max(estimate_persistence(part).memory for part in parts)
    longer = block_length(log.num_rounds, memory)
    return _test(log, longer, rng) if longer > block else change


def _test(log: FederationLog, block: int, rng: np.random.Generator) -> Change:
    """Compare the largest change with those of shuffled blocks of rounds."""
    asked, arrived, _ = log.tables(MOST_CLIENTS)
    # Neighbouring rounds of a long log are counted together: shuffling them all takes minutes.
    width = -(-log.num_rounds // MOST_BINS)
    starts = np.arange(0, log.num_rounds, width)
    counts = np.add.reduceat(np.stack([asked, arrived]).astype(np.float64), starts, axis=1)
    gains = _gains(counts)
    largest = float(gains.max())
    above = 0
    for _ in range(SHUFFLES):
        order = _shuffled(len(starts), -(-block // width), rng)
        above += float(_gains(counts[:, order]).max()) >= largest
    p_value = (above + 1) / (SHUFFLES + 1)
    if p_value > LEVEL:
        return Change(False, p_value, None, None, None)
    candidates = starts[_candidates(len(starts))]
    near = candidates[gains >= largest - WITHIN]
    position = int(candidates[int(gains.argmax())])
    return Change(True, p_value, position, int(near.min()), int(near.max()))


def _candidates(rounds: int) -> Ints:
    margin = max(2, int(MARGIN * rounds))
    return np.arange(margin, rounds - margin + 1)


def _gains(counts: Floats) -> Floats:
    """Return twice the gain in log-likelihood for a change before each candidate round."""
    sums = np.cumsum(counts, axis=1)
    total = sums[:, -1]
    before = sums[:, _candidates(counts.shape[1]) - 1]
    after = total[:, None] - before
    gain = _likelihood(*before) + _likelihood(*after) - _likelihood(*total)
    return np.asarray(2 * gain.sum(axis=-1))


def _likelihood(asked: Floats, arrived: Floats) -> Floats:
    """Return the log-likelihood of counts at their own rates."""
    missing = asked - arrived
    return _xlogx(arrived) + _xlogx(missing) - _xlogx(asked)


def _xlogx(values: Floats) -> Floats:
    return values * np.log(np.maximum(values, 1.0))


def _shuffled(rounds: int, block: int, rng: np.random.Generator) -> Ints:
    """Return the rounds in an order in which blocks are shuffled."""
    parts = []
    for start in range(0, rounds, block):
        parts.append(np.arange(start, min(start + block, rounds)))
    return np.concatenate([parts[place] for place in rng.permutation(len(parts))])
