"""How fast selection is: many seeds in lock-step, and rounds of many clients.

One round of many clients is compared with one draw of `torch.multinomial`.
"""

from collections.abc import Callable
from itertools import count
from time import perf_counter

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.bench.measurement import Row, describe_machine, make_missing_row, make_row
from fedcohort.memory import check_memory
from fedcohort.rounds import play
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.large import LARGE
from fedcohort.selection.protocol import Outcome
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates

LARGEST_COHORT = 10**4
LARGEST_SCAN = 10**7
MOST_OF_TORCH = 2**24  # categories of torch.multinomial
BYTES_PER_CLIENT = 60  # of one round, at least


def measure_selection(quick: bool = False, largest: int | None = None) -> tuple[list[Row], str]:
    """Measure many seeds at K=100, and the curve of one round from a thousand clients on.

    Args:
        quick: Whether to measure fewer rounds, repetitions and clients.
        largest: Largest number of clients; by default ten million, or a million if `quick`. A
            round takes at least `BYTES_PER_CLIENT` for each of them.

    Returns:
        The rows of the table and a description of the machine.

    Raises:
        ValueError: If the largest federation does not fit the memory. Nothing is measured then.
    """
    if largest is None:
        largest = 10**6 if quick else 10**7
    sizes = [10**3]
    while 10 * sizes[-1] <= largest:
        sizes.append(10 * sizes[-1])
    check_memory("largest", f"{largest:,} clients", needed=BYTES_PER_CLIENT * sizes[-1])

    if quick:
        rows = [measure_lock_step(256, 100, 20, rounds=50, repeats=3)]
        repeats = 5
    else:
        rows = [measure_lock_step(256, 100, 20, rounds=300, repeats=7)]
        repeats = 15
    for num_clients in sizes:
        rows += measure_large_round(num_clients, min(num_clients // 10, LARGEST_COHORT), repeats)
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

    In large federations, rounds that pass over all clients take a third turn. Each call is
    preceded by one that is not timed: the others left their own data in the cache.
    """
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, 1.0, num_clients)
    calls = {"one whole round": _make_round(num_clients, cohort_size, noise, "auto")}
    if LARGE <= num_clients <= LARGEST_SCAN:
        scan = _make_round(num_clients, cohort_size, noise, "scan")
        calls["one round by a pass over all clients"] = scan
    draw = _make_torch_draw(noise, cohort_size)
    if draw is not None:
        calls["one torch.multinomial draw"] = draw

    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            call()
            start = perf_counter()
            call()
            seconds[name].append(perf_counter() - start)

    sizes = f"K={num_clients:,}, k={cohort_size:,}"
    rows = [make_row(f"{sizes}: {name}", "ms", 1e3, taken) for name, taken in seconds.items()]
    if num_clients > MOST_OF_TORCH:
        limit = f"torch.multinomial draws from at most {MOST_OF_TORCH:,}"
        rows.append(make_missing_row(f"{sizes}: {limit}", "ms"))
    if draw is not None:
        rounds = np.array(seconds["one whole round"])
        ratios = np.array(seconds["one torch.multinomial draw"]) / rounds
        rows.append(make_row(f"{sizes}: draw / round", "×", 1.0, ratios.tolist()))
    return rows


def _make_round(
    num_clients: int, cohort_size: int, noise: Floats, algorithm: str
) -> Callable[[], object]:
    """Return a function that plays the next round of E3CS, with weights e^noise at first."""
    selector = E3CS(num_clients, cohort_size, rng=0, algorithm=algorithm)
    selector.log_weights = selector.log_weights + noise
    rng = np.random.default_rng(1)
    rounds = count()

    def play_round() -> None:
        answered = rng.random(cohort_size) < 0.5
        selector.update(Outcome(selector.select(next(rounds)), answered))

    play_round()  # the first round builds the tree
    return play_round


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
