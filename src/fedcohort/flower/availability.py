"""Wait for clients: before the first round, and whenever nobody can be asked."""

import logging
from time import monotonic, sleep

import numpy as np
from flwr.serverapp import Grid

from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.superlink import SuperLinkTrouble

log = logging.getLogger("flwr.fedcohort")
LOOK_PAUSE = 0.1  # seconds between two looks at the nodes
PAUSE_PER_NODE = 1e-4  # seconds: each look lists all nodes, so many are looked at less often


def gather_clients(
    registry: ClientRegistry,
    grid: Grid,
    *,
    minimum: int,
    wanted: int,
    wait: float,
    deadline: float | None,
) -> None:
    """Wait for the clients before the first round.

    Logs a warning if some clients are missing, or if the deadline is too short for most of them.

    Args:
        registry: Where the clients are registered.
        grid: The grid they are connected to.
        minimum: Number of clients without which the run cannot begin.
        wanted: Number of clients to wait for.
        wait: Longest time to wait, in seconds.
        deadline: Deadline of a round in seconds, None for none.

    Raises:
        ValueError: If fewer than `minimum` clients are there, or none at all.
    """
    try:
        wait_for_clients(registry, grid, wanted, wait)
    except SuperLinkTrouble as trouble:
        raise ValueError(
            f"wait must be long enough for the SuperLink to answer, got {wait:g} s: {trouble}"
        ) from None

    connected = len(registry.available)
    if connected == 0:
        raise ValueError(
            f"wait must be long enough for a client to connect, got {wait:g} s in which none did"
        )
    if connected < minimum:
        raise ValueError(
            f"cohort_size must be at most {connected}, as many clients connected in {wait:g} s, "
            f"got {minimum}"
        )
    if connected < wanted:
        log.warning(
            "%d of %d clients connected within %g s; the others may join later",
            connected,
            wanted,
            wait,
        )
    _warn_of_short_deadline(registry.node_names.answer_times, deadline)


def wait_for_clients(registry: ClientRegistry, grid: Grid, wanted: int, seconds: float) -> None:
    """Wait until enough clients are there or the time is up, then give them their indices.

    The indices follow the order of the names, not the order of arrival. If the number of clients
    was not announced, the clients that are there are all, so the function waits until every node
    has said who it is.

    Args:
        registry: Where the clients are registered.
        grid: The grid they are connected to.
        wanted: Number of clients to wait for.
        seconds: Longest time to wait.
    """
    end = monotonic() + seconds
    is_number_announced = len(registry) > 0
    nodes = registry.list_nodes(grid, seconds)
    while monotonic() < end:
        claims = registry.node_names.claims(nodes)
        identified = sum(map(len, claims.values()))
        if len(claims) >= wanted and (is_number_announced or identified == len(nodes)):
            break
        sleep(max(LOOK_PAUSE, PAUSE_PER_NODE * len(nodes)))
        nodes = registry.list_nodes(grid, max(0.0, end - monotonic()))
    registry.assign_nodes(nodes)


def wait_for_any_client(registry: ClientRegistry, grid: Grid, seconds: float) -> None:
    """Wait until at least one client can be asked, or the time is up."""
    end = monotonic() + seconds
    while not registry.available and monotonic() < end:
        sleep(0.25)
        registry.refresh(grid)


def _warn_of_short_deadline(answer_times: list[float], deadline: float | None) -> None:
    if deadline is None or not answer_times:
        return
    usual = float(np.median(answer_times))
    if deadline < usual:
        log.warning(
            "the deadline of %g s is shorter than the %.1f s that clients took to answer a message "
            "without any work: hardly any can return in time",
            deadline,
            usual,
        )
