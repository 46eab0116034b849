"""Selection: many seeds in lock-step, and one round of up to ten million clients beside one torch.multinomial draw."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from fedcohort.bench.machine import Row, machine, row
from fedcohort.rounds import play
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Outcome
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates


def selection(quick: bool = False) -> tuple[list[Row], str]:
    """Measure many seeds at K=100, and one round of many clients beside one draw of torch.multinomial."""
    rows = [lock_step(256, 100, 20, rounds=50 if quick else 300, repeats=3 if quick else 7)]
    sizes = [10**5, 10**6] if quick else [10**5, 10**6, 10**7]
    for num_clients in sizes:
        rows += large_round(
            num_clients,
            num_clients // 100,
            repeats=(5 if quick else 15) if num_clients < 10**7 else 5,
        )
    return rows, machine()


def lock_step(seeds: int, num_clients: int, cohort_size: int, rounds: int, repeats: int) -> Row:
    """Time whole rounds (world, select, update) of many seeds in lock-step."""
    rates = class_rates(num_clients)
    times = []
    for _ in range(repeats):
        selector = E3CS(num_clients, cohort_size, rng=list(range(seeds)), quota=0.5)
        start = perf_counter()
        for _record in play(selector, bernoulli(rates, list(range(seeds))), rounds):
            pass
        times.append((perf_counter() - start) / (rounds * seeds))
    return row(
        f"K={num_clients}, k={cohort_size}, {seeds} seeds: per round and seed", "µs", 1e6, times
    )


def large_round(num_clients: int, cohort_size: int, repeats: int) -> list[Row]:
    """Time allocate + sample + update of one selector, alternating with one torch.multinomial draw of the same size."""
    chance = np.random.default_rng(0)
    selector = E3CS(num_clients, cohort_size, rng=0)
    selector.log_weights += chance.normal(0.0, 1.0, num_clients)
    ours, theirs = [], []
    draw = _torch_draw(selector.log_weights, cohort_size)
    for round in range(repeats + 2):
        answered = chance.random(cohort_size) < 0.5
        start = perf_counter()
        selector.update(Outcome(selector.select(round), answered))
        middle = perf_counter()
        if draw is not None:
            draw()
        theirs.append(perf_counter() - middle)
        ours.append(middle - start)
    name = f"K={num_clients:,}, k={cohort_size:,}"
    rows = [row(f"{name}: one whole round", "ms", 1e3, ours[2:])]  # two rounds to warm up
    if draw is not None:
        rows.append(row(f"{name}: one torch.multinomial draw", "ms", 1e3, theirs[2:]))
        ratios = [b / a for a, b in zip(ours[2:], theirs[2:], strict=True)]
        rows.append(row(f"{name}: draw / round", "×", 1.0, ratios))
    return rows


def _torch_draw(log_weights: np.ndarray[Any, Any], cohort_size: int) -> Callable[[], Any] | None:
    """Return the paper's draw in torch's own precision, or None without torch."""
    try:
        import torch
    except ImportError:
        return None
    weights = torch.from_numpy(np.exp(log_weights - log_weights.max())).float()
    return lambda: torch.multinomial(weights, cohort_size, replacement=False)
