"""Who can be asked in a round: newcomers join, and those who were rejected too often rest."""

import logging

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.flower.backoff import BackOff
from fedcohort.flower.clients import ClientRegistry
from fedcohort.selection.protocol import Selector

log = logging.getLogger("flwr.fedcohort")


def find_available(
    registry: ClientRegistry, selector: Selector, back_off: BackOff, server_round: int
) -> tuple[Ints | None, list[str]]:
    """Return who can be asked, None if all can, and the names of the clients that rest.

    Clients that the selector does not know yet join it.
    """
    newcomers = len(registry) - selector.num_clients
    if newcomers > 0:
        selector.join(newcomers)

    there = registry.available
    resting = _find_resting(registry, back_off, server_round, there)
    available = [index for index in there if index not in resting]
    if len(available) < selector.cohort_size:
        log.warning(
            "%d clients are there, fewer than the %d to ask", len(available), selector.cohort_size
        )
    names = [registry.name(index) for index in resting]
    if names:
        log.warning(
            "round %d: not asked, because they were rejected again and again: %s",
            server_round,
            ", ".join(names),
        )
    if len(available) == selector.num_clients:
        return None, names
    return np.array(available, dtype=np.int64), names


def find_absent(registry: ClientRegistry, available: Ints | None) -> list[str]:
    """Return the names of known clients that cannot be asked.

    Args:
        registry: The clients.
        available: Indices of those who can be asked; None if all can.
    """
    if available is None:
        return []
    there = set(available.tolist())
    absent = []
    for index, client in enumerate(registry.clients):
        if client and index not in there:
            absent.append(client.name)
    return absent


def _find_resting(
    registry: ClientRegistry, back_off: BackOff, server_round: int, there: list[int]
) -> list[int]:
    """Return the clients that are not asked because they were rejected again and again.

    If these were more than half of those who are there, something else is wrong, such as too
    narrow a limit. Then all are asked.
    """
    resting = []
    for index in there:
        if back_off.rests(registry.name(index), server_round):
            resting.append(index)
    if 2 * len(resting) > len(there):
        return []
    return resting


def name_values(registry: ClientRegistry, values: list[float] | None) -> dict[str, float] | None:
    """Return the values of the known clients by name, rounded; None if there are none."""
    if values is None:
        return None
    by_name = {}
    for client, value in zip(registry.clients, values, strict=True):
        if client:
            by_name[client.name] = round(value, 6)
    return by_name
