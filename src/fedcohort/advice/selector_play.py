"""Selectors that play in a world, and what comes of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.metrics import jain
from fedcohort.rng import stream
from fedcohort.rounds import play
from fedcohort.selection.fedcs import FedCS
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.protocol import Selector
from fedcohort.selection.registry import SELECTORS, Federation, find_scheme, make_selector

RUNS = 48  # an even number
FIFTHS = 5
TINY = 1e-9
MOST_VALUES = 30_000_000  # entries of a world
LACKING = {  # what a selector may declare to need, and a log cannot give
    "needs_data_sizes": "data sizes",
    "needs_losses": "losses",
    "probes_losses": "losses",
    "needs_norms": "lengths of updates",
    "needs_seconds": "the times of all clients",
    "needs_deadline": "a deadline",
}


@dataclass(frozen=True, eq=False)
class Played:
    """What came of a selector in one of the worlds.

    Attributes:
        arrivals: Mean answers per round of each run [S].
        neglected: How often the fifth of the clients that is asked least in a run is asked, over
            how often uniform selection asks it [S].
        jain: Jain's index of how often clients are asked, for each run [S].
    """

    arrivals: Floats
    neglected: Floats
    jain: Floats

    def part(self, runs: slice) -> "Played":
        """Return what came of some of the runs."""
        return Played(self.arrivals[runs], self.neglected[runs], self.jain[runs])

    @property
    def least_asked(self) -> float:
        """How often the least asked fifth of the clients is asked, the mean over all runs."""
        return float(self.neglected.mean())


def world_size(clients: int, rounds: int) -> tuple[int, int]:
    """Return how many rounds and runs to play, so that a world fits the memory.

    Args:
        clients: Number of clients.
        rounds: Rounds that one would like to play.
    """
    runs = int(np.clip(MOST_VALUES // (clients * rounds), 4, RUNS)) // 2 * 2
    return min(rounds, max(20, MOST_VALUES // (clients * runs))), runs


def make_playable(name: str, federation: Federation) -> Selector:
    """Return a new selector that needs nothing but what a log has.

    Args:
        name: Name of a selector.
        federation: What is known.

    Raises:
        ValueError: If there is no such selector, or it needs more.
    """
    scheme = find_scheme(name)
    check_needs(name, scheme.selector)
    if issubclass(scheme.selector, FedCS) and federation.success_rates is None:
        raise ValueError(_lacking(name, "known rates"))
    selector = make_selector(name, federation)
    check_needs(name, selector)  # what a function makes is known only now
    return selector


def check_needs(name: str, selector: Any) -> None:
    """Refuse a selector that needs something that a log lacks.

    Args:
        name: Its name, for the message.
        selector: The selector or its class.

    Raises:
        ValueError: If it does.
    """
    for capability, what in LACKING.items():
        if getattr(selector, capability, False):
            raise ValueError(_lacking(name, what))


def _lacking(name: str, what: str) -> str:
    return f"selectors must need nothing that a log lacks, got {name!r}, which needs {what}"


def can_play(name: str, clients: int, cohort: int, rates: Floats | None = None) -> bool:
    """Return whether a selector of this name can be compared with others.

    It must be known, need nothing that a log lacks, and ask as many clients as others do.

    Args:
        name: Name of a selector, from a log.
        clients: Number of clients.
        cohort: Clients asked per round.
        rates: Rates [K], for selectors that know them.
    """
    if name not in SELECTORS:  # the file of a stranger must not name code to run
        return False
    federation = Federation(clients, cohort, rng=[0], horizon=1, success_rates=rates)
    try:
        selector = make_playable(name, federation)
    except ValueError:
        return False
    return selector.cohort_size == cohort


def asks_as_many(name: str, clients: int, cohort: int, rates: Floats | None = None) -> bool:
    """Return whether a selector asks as many clients as it is told to.

    One that asks more gets more answers, which says nothing about whom it asks.

    Args:
        name: Name of a selector.
        clients: Number of clients.
        cohort: Clients asked per round.
        rates: Rates [K], for selectors that know them.

    Raises:
        ValueError: If there is no such selector, or it needs what is not known.
    """
    federation = Federation(clients, cohort, rng=[0], horizon=1, success_rates=rates)
    return make_playable(name, federation).cohort_size == cohort


def play_selectors(
    world: Bools,
    cohort: int,
    names: Sequence[str],
    rates: Floats | None = None,
    available: Bools | None = None,
) -> dict[str, Played]:
    """Return what comes of selectors that meet the same rounds.

    Args:
        world: Who would answer [T, S, K].
        cohort: Clients asked per round.
        names: Names of selectors.
        rates: Rates [K], for selectors that know them.
        available: Who can be asked [T, S, K]; None for everyone.

    Raises:
        ValueError: If a selector needs something that a log lacks.
    """
    rounds, runs, clients = world.shape
    rows = np.broadcast_to(np.True_, world.shape) if available is None else available
    half = stream(0, "advice", "halves").permutation(rounds) % 2
    fair = _fair_counts(rows, cohort, half)
    batches = _batches(rows, cohort)
    federation = Federation(clients, cohort, rng=0, horizon=rounds, success_rates=rates)
    played = {}
    for name in names:
        selectors = [make_playable(name, replace(federation, rng=batch)) for batch in batches]
        selector = Lockstep(selectors, [len(batch) for batch in batches])
        arrivals = np.zeros(runs)
        counts = np.zeros((2, runs, clients), dtype=np.int64)
        for round, record in enumerate(play(selector, world, rounds, available=available)):
            is_asked = record.cohort.is_asked
            run, _ = np.nonzero(is_asked)
            counts[half[round], run, record.cohort.clients[is_asked]] += 1
            arrivals += record.arrived.sum(axis=-1)
        played[name] = Played(
            arrivals=arrivals / rounds,
            neglected=least_asked_shares(counts, fair, world.mean(axis=0)),
            jain=jain(counts.sum(axis=0)),
        )
    return played


def _batches(available: Bools, cohort: int) -> list[list[int]]:
    """Return the seeds of selectors, one for all runs unless these ask cohorts of other sizes."""
    runs = available.shape[1]
    sizes = np.minimum(available.sum(axis=-1), cohort)
    if (sizes == sizes[:, :1]).all():
        return [list(range(runs))]
    return [[seed] for seed in range(runs)]


def _fair_counts(available: Bools, cohort: int, half: Ints) -> Floats:
    """Return how often uniform selection asks each client in each half, on average [2, S, K]."""
    fair = np.zeros((2, *available.shape[1:]))
    for round, row in enumerate(available):
        number = np.maximum(row.sum(axis=-1, keepdims=True), 1)
        fair[half[round]] += row * np.minimum(cohort / number, 1.0)
    return fair


def least_asked_shares(counts: Ints, fair: Floats, rates: Floats) -> Floats:
    """Return how often the least asked fifth of the clients is asked, over its fair share [S].

    One half of the rounds tells which clients are asked least, and the other half how often they
    are asked. In the same rounds, chance alone would make clients look neglected. Of clients that
    are asked equally often, those that answer least come first: they are neglected, if any are.

    Args:
        counts: How often each client was asked in each half of the rounds [2, S, K].
        fair: How often uniform selection asks it on average [2, S, K].
        rates: How often each client answers [S, K].

    Examples:
        >>> counts = np.array([[[0, 3, 3, 3, 6]], [[1, 2, 3, 3, 6]]])
        >>> least_asked_shares(counts, np.full((2, 1, 5), 3.0), np.zeros((1, 5))) * 6
        array([1.])
    """
    size = ceil(counts.shape[-1] / FIFTHS)
    asked = np.zeros(len(rates))
    due = np.zeros(len(rates))
    for ranked, measured in ((0, 1), (1, 0)):
        share = np.full(rates.shape, np.inf)  # who can never be asked is not neglected
        np.divide(counts[ranked], fair[ranked], out=share, where=fair[ranked] > 0)
        lowest = np.lexsort((rates, share))[:, :size]
        asked += np.take_along_axis(counts[measured], lowest, axis=-1).sum(axis=-1)
        due += np.take_along_axis(fair[measured], lowest, axis=-1).sum(axis=-1)
    return np.asarray(asked / np.maximum(due, TINY))
