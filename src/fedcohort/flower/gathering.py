"""Before the first round: wait for the clients, and say what will not go well."""

import logging

import numpy as np
from flwr.serverapp import Grid

from fedcohort.flower.registry import Registry

log = logging.getLogger("flwr.fedcohort")


def gather(
    registry: Registry, grid: Grid, least: int, wanted: int, wait: float, deadline: float | None
) -> None:
    """Wait for the clients; too few to begin is an error, some missing or a deadline too short for them a warning."""
    registry.gather(grid, wanted, wait)
    there, times = len(registry.available), registry.start_up
    if there == 0:
        raise ValueError(
            f"wait must be long enough for a client to connect, got {wait:g} s in which none did"
        )
    if there < least:
        raise ValueError(
            f"cohort_size must be at most {there}, as many clients connected in {wait:g} s, got {least}"
        )
    if there < wanted:
        log.warning(
            "%d of %d clients connected within %g s; the others may join later", there, wanted, wait
        )
    if deadline is not None and times and deadline < float(np.median(times)):
        log.warning(
            "the deadline of %g s is shorter than the %.1f s that clients took to answer a message without any work: "
            "hardly any can return in time",
            deadline,
            float(np.median(times)),
        )
