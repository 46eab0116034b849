"""How fast selection is: many seeds in lock-step, and rounds of many clients.

One round of many clients is compared with one draw of `torch.multinomial`.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.bench.measurement import Row, describe_machine, make_row
from fedcohort.rounds import play
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Outcome
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates

LARGEST_COHORT = 10**4
MOST_OF_TORCH = 2**24  # categories of torch.multinomial


def measure_selection(quick: bool = False, largest: int | None = None) -> tuple[list[Row], str]:
    """Measure many seeds at K=100, and the curve of one round from a thousand clients on.

    Args:
        quick: Whether to measure fewer rounds, repetitions and clients.
        largest: Largest number of clients; by default ten million, or a million if `quick`. A
            hundred million take about 8 GB of memory.

    Returns:
        The rows of the table and a description of the machine.
    """
    if quick:
        rows = [measure_lock_step(256, 100, 20, rounds=50, repeats=3)]
        repeats = 5
    else:
        rows = [measure_lock_step(256, 100, 20, rounds=300, repeats=7)]
        repeats = 15
    if largest is None:
        largest = 10**6 if quick else 10**7

    num_clients = 10**3
    while num_clients <= largest:
        rows += measure_large_round(num_clients, min(num_clients // 10, LARGEST_COHORT), repeats)
        num_clients *= 10
    return rows, describe_machine()


def measure_lock_step(
    seeds: int, num_clients: int, cohort_size: int, rounds: int, repeats: int
) -> Row:
    """Time whole rounds (world, select, update) of many seeds in lock-step."""
    rates = class_rates(num_clients)
    all_seeds = list(range(seeds))
    seconds = []
    for _ in range(repeats):
        selector = E3CS(num_clients, cohort_size, rng=all_seeds, quota=0.5)
        start = perf_counter()
        for _record in play(selector, bernoulli(rates, all_seeds), rounds):
            pass
        seconds.append((perf_counter() - start) / (rounds * seeds))
    what = f"K={num_clients}, k={cohort_size}, {seeds} seeds: per round and seed"
    return make_row(what, "µs", 1e6, seconds)


def measure_large_round(num_clients: int, cohort_size: int, repeats: int) -> list[Row]:
    """Time one round (allocate, sample, update), by turns with one torch.multinomial draw.

    Each is preceded by one that is not timed: the other left its own data in the cache.
    """
    rng = np.random.default_rng(0)
    selector = E3CS(num_clients, cohort_size, rng=0)
    selector.log_weights += rng.normal(0.0, 1.0, num_clients)
    draw = _make_torch_draw(selector.log_weights, cohort_size)

    round_seconds = []
    draw_seconds = []
    for turn in range(repeats):
        for round in (2 * turn, 2 * turn + 1):
            answered = rng.random(cohort_size) < 0.5
            start = perf_counter()
            selector.update(Outcome(selector.select(round), answered))
            seconds = perf_counter() - start
        round_seconds.append(seconds)
        if draw is not None:
            draw()
            start = perf_counter()
            draw()
            draw_seconds.append(perf_counter() - start)

    name = f"K={num_clients:,}, k={cohort_size:,}"
    rows = [make_row(f"{name}: one whole round", "ms", 1e3, round_seconds)]
    if draw is not None:
        ratios = (np.array(draw_seconds) / np.array(round_seconds)).tolist()
        rows.append(make_row(f"{name}: one torch.multinomial draw", "ms", 1e3, draw_seconds))
        rows.append(make_row(f"{name}: draw / round", "×", 1.0, ratios))
    return rows


def _make_torch_draw(log_weights: Floats, cohort_size: int) -> Callable[[], object] | None:
    """Return the paper's draw in PyTorch's own precision.

    None without PyTorch, or where it cannot draw from so many.
    """
    try:
        import torch
    except ImportError:
        return None
    if log_weights.size > MOST_OF_TORCH:
        return None
    weights = torch.from_numpy(np.exp(log_weights - log_weights.max())).float()
    return lambda: torch.multinomial(weights, cohort_size, replacement=False)
