"""Wait for clients: before the first round, and whenever too few can be asked."""

import logging
from time import monotonic, sleep

import numpy as np
from flwr.serverapp import Grid

from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.flwr_internals import is_simulation
from fedcohort.flower.superlink import SuperLinkTrouble

log = logging.getLogger("flwr.fedcohort")
LOOK_PAUSE = 0.1  # seconds between two looks at the nodes
PAUSE_LOOK = 0.25  # seconds between two looks while a run pauses
LOOK_PATIENCE = 1.0  # seconds: a SuperLink that lists the nodes later than this makes a run pause
PAUSE_PER_NODE = 1e-4  # seconds: each look lists all nodes, so many are looked at less often


def gather_clients(
    registry: ClientRegistry,
    grid: Grid,
    *,
    minimum: int,
    wanted: int,
    wait: float,
    deadline: float | None,
    partial_start: bool = True,
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
        partial_start: Whether the run may begin although some of the wanted clients are missing.

    Raises:
        ValueError: If the SuperLink does not answer, if too few clients are there, or none at all.
    """
    try:
        wait_for_clients(registry, grid, wanted, wait)
    except SuperLinkTrouble as trouble:
        raise ValueError(
            f"wait must be long enough for the SuperLink to answer, got {wait:g} s: {trouble}"
        ) from None

    connected = len(registry.available)
    if connected == 0 and registry.num_ineligible:
        raise ValueError(
            f"eligible must admit a client, got none of the {registry.num_ineligible} that "
            f"connected in {wait:g} s"
        )
    if connected == 0:
        raise ValueError(
            f"wait must be long enough for a client to connect, got {wait:g} s in which none did"
        )
    if connected < minimum:
        raise ValueError(
            f"cohort_size must be at most {connected}, as many clients connected in {wait:g} s, "
            f"got {minimum}; start more clients, or wait longer for them"
        )
    if connected < wanted and not partial_start:
        raise ValueError(
            f"num_clients must be at most {connected}, as many clients connected in {wait:g} s, "
            f"got {wanted}; with others missing the same seed would give other cohorts "
            f"(a longer wait waits for them, partial_start=True begins without them)"
        )
    if connected < wanted:
        log.warning(
            "%d of %d clients connected within %g s; the others may join later",
            connected,
            wanted,
            wait,
        )
    nameless = registry.num_nameless
    if nameless:
        log.warning(
            "%d nodes have not said which clients they are within %g s; they may join later, and "
            "the same seed may then give other cohorts",
            nameless,
            wait,
        )
    _warn_of_passing_names(registry)
    _warn_of_short_deadline(registry.node_names.answer_times, deadline)
    if deadline is not None and is_simulation(grid):
        log.warning(
            "the simulation engine queues clients, so a deadline of %g s only favours those it "
            "starts first; deadline=None waits for all",
            deadline,
        )


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
        identified = sum(map(len, registry.node_names.claims(nodes).values()))
        claims = registry.eligible_claims(nodes)
        if len(claims) >= wanted and (is_number_announced or identified == len(nodes)):
            break
        sleep(max(LOOK_PAUSE, PAUSE_PER_NODE * len(nodes)))
        try:
            nodes = registry.list_nodes(grid, max(0.0, end - monotonic()))
        except SuperLinkTrouble:
            break  # the time is up, and those who were listed before count
    registry.assign_nodes(nodes)


def wait_for_enough(registry: ClientRegistry, grid: Grid, enough: int, pause: float) -> float:
    """Pause the run until enough clients can be asked and the SuperLink answers.

    A look at the nodes that finds enough clients at once is no pause.

    Args:
        registry: Where the clients are registered.
        grid: The grid they are connected to.
        enough: Number of clients that must be there.
        pause: Longest time to wait, in seconds.

    Returns:
        The seconds that the run paused.

    Raises:
        ValueError: If there are too few when the time is up.
    """
    start = monotonic()
    answers = registry.refresh(grid, LOOK_PATIENCE)
    is_pause_logged = False
    while not answers or len(registry.available) < enough:
        missing = f"{len(registry.available)} clients can be asked"
        if not answers:
            missing = "the SuperLink does not say who is there"
        if monotonic() - start >= pause:
            raise ValueError(
                f"pause must be long enough for {enough} clients to be there (least_clients), "
                f"got {pause:g} s after which {missing}"
            )
        if not is_pause_logged:
            log.warning("the run pauses for at most %g s: %s, %d must", pause, missing, enough)
            is_pause_logged = True
        sleep(max(PAUSE_LOOK, PAUSE_PER_NODE * registry.num_nodes))
        answers = registry.refresh(grid, LOOK_PATIENCE)

    if not is_pause_logged:
        return 0.0
    seconds = monotonic() - start
    log.info("the run goes on after a pause of %.1f s", seconds)
    return seconds


def _warn_of_passing_names(registry: ClientRegistry) -> None:
    """Warn if clients are known by their node's id, which changes whenever the node starts."""
    passing = [client.name for client in registry.known if client.name == str(client.node)]
    if passing:
        log.warning(
            "%d clients have no name, %s for one; when its SuperNode restarts, each counts as a "
            "new client. Start SuperNodes with --node-config 'client-id=\"...\"'",
            len(passing),
            passing[0],
        )


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
