"""Whether clients change over time, and when: how often they answer, and how fast.

For every round we ask how much better two rates per client, before and after it, explain the
answers than one rate. The largest gain is compared with the gains of the same rounds in shuffled
order. Where failures last, blocks of rounds stay together, and shuffled gains are enlarged by what
answers of neighbouring blocks repeat. The same is asked of the logarithms of answer times, with two
means per client. After a change, the rest is tested again: a gradual one looks like several.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fedcohort.advice.estimates import block_length
from fedcohort.advice.log import FederationLog
from fedcohort.advice.own_rates import group_rounds, split_tables
from fedcohort.advice.persistence import estimate_persistence
from fedcohort.arrays import Bools, Floats, Ints

MOST_CLIENTS = 300
MOST_BINS = 1000  # positions at which a change is looked for
CHUNK = 50  # clients that are added up together, so that their sums fit the processor's cache
SHUFFLES = 399
POSSIBLE = 0.05
LEVEL = 0.005  # a change is certain below this share of shuffles as large
MARGIN = 0.1  # share of the rounds at each end in which no change is looked for
LEAST_ROUNDS = 20
LEAST_BLOCKS = 10  # fewer can hardly be shuffled
LEAST_TIMES = 20  # answers with a time; fewer say nothing
WITHIN = 7.35  # gains this close to the largest belong to the 95 % interval of the time
RATES = "rates"
TIMES = "times"
Likelihood = Callable[[Any, Any], Floats]


@dataclass(frozen=True)
class Change:
    """The last change of the clients that is certain, or else the likeliest.

    Attributes:
        is_certain: Whether there is one for certain.
        p_value: Share of shuffled logs with as large a change; doubled for times, the second test.
        position: First round after the change, from 0; None if there is none.
        first: Earliest round that it may be; None if it may be earlier than we looked.
        last: Latest round that it may be; None if it may be later than we looked.
        kind: What changed, "rates" or "times".
        count: Number of changes, one after the other; several may be one that is gradual.
        start: First round from which on no change is certain.
        rest_p_value: The p-value of a change after `start`.
    """

    is_certain: bool
    p_value: float
    position: int | None
    first: int | None
    last: int | None
    kind: str = RATES
    count: int = 0
    start: int = 0
    rest_p_value: float = 1.0

    @property
    def is_possible(self) -> bool:
        """Whether fewer than one in twenty shuffled logs has as large a change."""
        return self.p_value < POSSIBLE

    @property
    def may_go_on(self) -> bool:
        """Whether clients may have changed after `start`, too."""
        return self.rest_p_value < POSSIBLE


NO_CHANGE = Change(False, 1.0, None, None, None)


def find_change(log: FederationLog, rng: np.random.Generator) -> Change:
    """Return the last change in a log that is certain.

    Args:
        log: The log. Times are not tested if the deadlines of its rounds differ, because these
            decide which times are seen. Nothing is tested if too many deadlines differ.
        rng: Source of the shuffles.
    """
    found = NO_CHANGE
    start = 0
    count = 0
    while True:
        change = _largest_change(log.since(start), rng)
        if not change.is_certain:
            break
        count += 1
        found = _moved(change, start)
        if found.last is None or found.last <= start:
            break  # nobody knows where the rest begins
        start = found.last
    if not count:
        return replace(change, rest_p_value=change.p_value)
    return replace(found, count=count, start=start, rest_p_value=change.p_value)


def _moved(change: Change, rounds: int) -> Change:
    """Return a change of a log's part with positions of the whole log."""

    def move(place: int | None) -> int | None:
        return None if place is None else place + rounds

    return replace(
        change,
        position=move(change.position),
        first=move(change.first),
        last=move(change.last),
    )


def _largest_change(log: FederationLog, rng: np.random.Generator) -> Change:
    """Return the change of rates or of times; of two that are certain, the later one."""
    if log.num_rounds < LEAST_ROUNDS:
        return NO_CHANGE
    block = block_length(log.num_rounds, 0.0)
    rates = _test_rates(log, block, rng)
    times = _test_times(log, block, rng)
    if rates.is_certain and times.is_certain:
        return max(rates, times, key=_end)
    change = min(times, rates, key=lambda change: change.p_value)
    return change if change.is_certain else replace(change, position=None, first=None, last=None)


def _end(change: Change) -> float:
    return np.inf if change.last is None else change.last


def _test_rates(log: FederationLog, block: int, rng: np.random.Generator) -> Change:
    """Test how often clients answer, each under each deadline of its own.

    A change looks like failures that last. So these are estimated beside two rates per client, and
    only if there may be a change at all.
    """
    group = group_rounds(log)
    if group is None:
        return NO_CHANGE
    asked, arrived = split_tables(log, group, MOST_CLIENTS)
    counts = np.stack([asked, arrived]).astype(np.intp)
    # Sums are whole numbers, at most one per round: a table is faster than logarithms.
    table = _xlogx(np.arange(log.num_rounds + 1.0))
    likelihood = partial(_answers_likelihood, table)
    first = _test(counts, likelihood, block, rng)
    if not first.is_possible:
        return first
    lasting = estimate_persistence(log, has_trend=True, position=first.position or 0)
    if not lasting.is_certain:
        return first
    most = max(block, log.num_rounds // LEAST_BLOCKS)
    block = min(block_length(log.num_rounds, lasting.memory), most)
    missing = _repetition(asked, lasting.share, lasting.decay, log.num_rounds)
    missing /= _repetition(asked, lasting.share, lasting.decay, block)
    return _test(counts, likelihood, block, rng, missing)


def _repetition(asked: Bools, share: float, decay: float, block: int) -> float:
    """Return by how much answers repeat each other within blocks of rounds; 1 if not at all.

    Args:
        asked: Who was asked [T, C].
        share: Share of a client's state that lasts.
        decay: How much of it is left after a round.
        block: Rounds per block.
    """
    sums = np.zeros(asked.shape[1])
    total = np.zeros(asked.shape[1])
    for round, row in enumerate(asked):
        if round % block == 0:
            sums[:] = 0.0  # what came before belongs to another block
        total += row * sums
        sums = (sums + row) * decay
    return float((1 + 2 * share * total / asked.sum(axis=0)).mean())


def _test_times(log: FederationLog, block: int, rng: np.random.Generator) -> Change:
    is_timed = np.isfinite(log.seconds)
    if log.deadlines is not None or is_timed.sum() < LEAST_TIMES:
        return NO_CHANGE
    asked, _, chosen = log.tables(MOST_CLIENTS)
    column = np.full(log.num_clients, -1)
    column[chosen] = np.arange(len(chosen))
    kept = is_timed & (column[log.client] >= 0)
    places = (log.round[kept], column[log.client[kept]])
    counts = np.zeros((2, *asked.shape))
    counts[0][places] = 1.0
    counts[1][places] = _scores(log, kept)
    change = _test(counts, _times_likelihood, block, rng)
    doubled = min(1.0, 2 * change.p_value)
    return replace(change, is_certain=doubled <= LEVEL, p_value=doubled, kind=TIMES)


def _scores(log: FederationLog, kept: Bools) -> Floats:
    """Return the logarithms of the times beside each client's mean, in standard deviations."""
    logs = np.log(log.seconds[kept])
    client = log.client[kept]
    number = np.bincount(client, minlength=log.num_clients)
    means = np.bincount(client, weights=logs, minlength=log.num_clients) / np.maximum(number, 1)
    residuals = logs - means[client]
    degrees = max(1, len(logs) - int((number > 0).sum()))
    deviation = float(np.sqrt((residuals**2).sum() / degrees))
    return np.asarray(residuals / max(deviation, 1e-9))


def _test(
    counts: Floats | Ints,
    likelihood: Likelihood,
    block: int,
    rng: np.random.Generator,
    missing: float = 1.0,
) -> Change:
    """Compare the largest change with those of shuffled blocks of rounds.

    Args:
        counts: Two numbers for each round and client that sums are made of [2, T, C].
        likelihood: The log-likelihood of such sums.
        block: Rounds per block.
        rng: Source of the shuffles.
        missing: By how much gains are larger than in shuffles, because answers of neighbouring
            blocks repeat each other, too.
    """
    # Neighbouring rounds of a long log are counted together: shuffling them all takes minutes.
    rounds = counts.shape[1]
    width = -(-rounds // MOST_BINS)
    starts = np.arange(0, rounds, width)
    counts = np.add.reduceat(counts, starts, axis=1)
    chunks: list[Any] = []
    for start in range(0, counts.shape[-1], CHUNK):
        chunks.append(np.ascontiguousarray(counts[..., start : start + CHUNK]))
    gains = _gains(chunks, np.arange(len(starts)), likelihood)
    largest = float(gains.max())
    above = 0
    for _ in range(SHUFFLES):
        order = _shuffled(len(starts), -(-block // width), rng)
        above += missing * float(_gains(chunks, order, likelihood).max()) >= largest
    p_value = (above + 1) / (SHUFFLES + 1)
    candidates = starts[_candidates(len(starts))]
    near = candidates[gains >= largest - WITHIN]
    # A change beyond the rounds in which we look is found at their end.
    first = None if near.min() == candidates[0] else int(near.min())
    last = None if near.max() == candidates[-1] else int(near.max())
    position = int(candidates[int(gains.argmax())])
    return Change(p_value <= LEVEL, p_value, position, first, last)


def _candidates(rounds: int) -> Ints:
    margin = max(2, int(MARGIN * rounds))
    return np.arange(margin, rounds - margin + 1)


def _gains(chunks: Sequence[Floats | Ints], order: Ints, likelihood: Likelihood) -> Floats:
    """Return twice the gain in log-likelihood for a change before each candidate round.

    Args:
        chunks: The numbers of `_test`, for some of the clients each [2, T, c].
        order: The rounds in the order in which they count [T].
        likelihood: The log-likelihood of sums of such numbers.
    """
    candidates = _candidates(len(order))
    gains = []
    for counts in chunks:
        sums = np.cumsum(counts.take(order, axis=1), axis=1)
        total = sums[:, -1]
        before = sums[:, candidates[0] - 1 : candidates[-1]]
        after = total[:, None] - before
        gains.append(likelihood(*before) + likelihood(*after) - likelihood(*total))
    return np.asarray(2 * np.concatenate(gains, axis=-1).sum(axis=-1))


def _answers_likelihood(table: Floats, asked: Ints, arrived: Ints) -> Floats:
    """Return the log-likelihood of counts at their own rates.

    Args:
        table: x log x of each whole number.
        asked: How often clients were asked.
        arrived: How often they answered.
    """
    return table.take(arrived) + table.take(asked - arrived) - table.take(asked)


def _times_likelihood(number: Floats, sums: Floats) -> Floats:
    """Return the log-likelihood of normal numbers at their own means, up to a constant."""
    return np.asarray(sums**2 / np.maximum(number, 1.0) / 2)


def _xlogx(values: Floats) -> Floats:
    return values * np.log(np.maximum(values, 1.0))


def _shuffled(rounds: int, block: int, rng: np.random.Generator) -> Ints:
    """Return the rounds in an order in which blocks are shuffled."""
    parts = []
    for start in range(0, rounds, block):
        parts.append(np.arange(start, min(start + block, rounds)))
    return np.concatenate([parts[place] for place in rng.permutation(len(parts))])
