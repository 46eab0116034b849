"""Checks of what selectors return and are told: a mistake names the bound and the value.

Each check looks at the clients that were chosen and at nobody else, so its cost does not grow with
the number of clients.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Ints
from fedcohort.checks import shown
from fedcohort.selection.protocol import NOBODY, Cohort, Outcome, Selector

if TYPE_CHECKING:
    from fedcohort.selection.base import BaseSelector


def make_cohort(
    selector: "BaseSelector", round: int, chosen: Any, size: int, present: Bools | None
) -> Cohort:
    """Return the cohort that a selector chose, with the factors of its `weigh`.

    Args:
        selector: The selector.
        round: The round, counted from 0.
        chosen: What its `choose` returned: clients and their inclusion probabilities.
        size: Number of clients that it had to choose.
        present: Who may be asked, shape [..., K]; None for everyone.

    Raises:
        ValueError: If the clients are not as many as asked for, do not exist or may not be asked,
            or a probability is not above 0.
    """
    about = describe_selector(selector)
    try:
        clients, inclusion = chosen
    except (TypeError, ValueError):
        raise ValueError(
            f"{about} must choose clients and their inclusion, got {shown(chosen)}"
        ) from None
    try:
        cohort = Cohort(round, clients, inclusion)
    except ValueError as error:
        raise ValueError(f"{about} must choose a cohort, got: {error}") from None

    _check_shape(about, cohort.clients, (*selector.batch, size))
    if size and selector.batch and cohort.clients.min() < 0:
        raise _unknown_client(about, NOBODY, selector.num_clients)
    _check_members(about, cohort, selector.num_clients, present)

    weights = selector.weigh(cohort.clients)
    if weights is None:
        return cohort
    try:
        return replace(cohort, weights=weights)
    except ValueError as error:
        raise ValueError(f"{about} must weigh its cohort, got: {error}") from None


def check_cohort(
    selector: Selector,
    round: int,
    cohort: Any,
    available: npt.ArrayLike | None = None,
    runs: tuple[int, ...] = (),
) -> Cohort:
    """Return what the `select` of any selector returned, if it can be asked.

    Args:
        selector: The selector, which may ask fewer clients than k.
        round: The round, counted from 0.
        cohort: What it returned.
        available: Who may be asked: a mask [K] or [..., K], or client ids; None for all.
        runs: Shape of the runs in lock-step that the cohort must have; () is not checked.

    Raises:
        ValueError: If it is no cohort of this round, has too many clients, or clients that do not
            exist or may not be asked, or a probability is not above 0.
    """
    about = describe_selector(selector)
    if not isinstance(cohort, Cohort):
        raise ValueError(f"{about} must return a Cohort, got {shown(cohort)}")
    if cohort.round != round:
        raise ValueError(f"{about} must return a cohort of round {round}, got {cohort.round}")
    *batch, size = cohort.clients.shape
    if runs and tuple(batch) != runs:
        raise ValueError(
            f"{about} must choose clients of shape {(*runs, selector.cohort_size)}, "
            f"got {cohort.clients.shape}"
        )
    if size > selector.cohort_size:
        raise ValueError(f"{about} must choose at most {selector.cohort_size} clients, got {size}")
    _check_members(about, cohort, selector.num_clients, available)
    return cohort


def check_reports(selector: "BaseSelector", outcome: Outcome) -> None:
    """Refuse an outcome that lacks what the scheme ranks clients by."""
    for name, is_needed in (
        ("loss", selector.needs_losses),
        ("seconds", selector.needs_seconds),
        ("norm", selector.needs_norms),
    ):
        if is_needed and getattr(outcome, name) is None:
            raise ValueError(
                f"{name} must be reported to a selector that ranks clients by it, got None"
            )


def describe_selector(selector: Any) -> str:
    """Return how messages name a selector: by its class."""
    return f"selector {type(selector).__name__}"


def _check_shape(about: str, clients: Ints, shape: tuple[int, ...]) -> None:
    if clients.shape == shape:
        return
    if clients.shape[:-1] == shape[:-1]:
        raise ValueError(f"{about} must choose {shape[-1]} clients, got {clients.shape[-1]}")
    raise ValueError(f"{about} must choose clients of shape {shape}, got {clients.shape}")


def _check_members(
    about: str, cohort: Cohort, num_clients: int, available: npt.ArrayLike | None
) -> None:
    """Refuse clients that do not exist or may not be asked, and probabilities of 0."""
    clients = cohort.clients
    if not clients.size:
        return
    if clients.max() >= num_clients:
        raise _unknown_client(about, int(clients.max()), num_clients)

    if cohort.inclusion.min() <= 0:  # which only NOBODY may have
        bad = cohort.is_asked & (cohort.inclusion <= 0)
        if bad.any():
            raise ValueError(
                f"inclusion of {about} must be above 0, got {cohort.inclusion[bad][0]} "
                f"for client {clients[bad][0]}"
            )

    if available is not None:
        absent = cohort.is_asked & ~_is_among(clients, np.asarray(available))
        if absent.any():
            raise ValueError(
                f"{about} must choose clients that are available, "
                f"got client {clients[absent][0]}, who is not"
            )


def _is_among(clients: Ints, available: npt.NDArray[Any]) -> Bools:
    """Return which clients [..., k] a mask [K] or [..., K], or an array of ids, contains."""
    if available.dtype != np.bool_:
        return np.isin(clients, available)
    positions = np.maximum(clients, 0)
    if available.ndim == 1:
        return np.asarray(available[positions])
    return np.take_along_axis(available, positions, axis=-1)


def _unknown_client(about: str, client: int, num_clients: int) -> ValueError:
    return ValueError(f"{about} must choose clients from 0 to {num_clients - 1}, got {client}")
