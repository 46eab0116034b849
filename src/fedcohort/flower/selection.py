"""The selector of a run: a registered name or an object, for the clients that are there."""

from typing import Any, cast

import numpy.typing as npt

from fedcohort.checks import check_choice, check_int
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.protocol import Selector
from fedcohort.selection.registry import SELECTORS, Federation, make_selector

# What CohortStrategy uses of a selector.
REQUIRED = ("num_clients", "cohort_size", "select", "update", "join")
# What it uses in addition to resume a run.
REQUIRED_TO_RESUME = ("state_dict", "load_state_dict")
# What a selector may ask for by an attribute, and a run on Flower does not have.
NOT_ON_FLOWER = {
    "enough": "rounds that close before the deadline",
}


def check_selector(selector: Any, keeps_state: bool) -> None:
    """Check that a selector is a name or an object with the methods that are used.

    Args:
        selector: The argument of the user.
        keeps_state: Whether the run has a folder, so that the selector's state is saved.

    Raises:
        ValueError: If methods are missing, or the selector is a class instead of an object.
    """
    if isinstance(selector, str):
        return
    required: tuple[str, ...] = REQUIRED
    if keeps_state:
        required += REQUIRED_TO_RESUME

    missing = [name for name in required if not hasattr(selector, name)]
    if isinstance(selector, type):
        problem = f"the class {selector.__name__}"
    elif missing:
        problem = f"{selector!r} without {', '.join(missing)}"
    else:
        return
    raise ValueError(
        f"selector must be a name or an object with {', '.join(required)}, got {problem}"
    )


def check_requirements(
    selector: str | Selector,
    cohort_size: int,
    loss_key: str | None,
    deadline: float | None = None,
) -> None:
    """Check that Flower can give the selector all that it needs.

    Args:
        selector: A name or an object.
        cohort_size: Number of clients to ask in each round.
        loss_key: Metric in which clients report their loss; None if they do not.
        deadline: Seconds that a round may take; None for no limit.

    Raises:
        ValueError: If the name is unknown, if the selector needs what Flower does not have, or
            if it ranks clients by their losses and `loss_key` is None.
    """
    example: Selector
    if isinstance(selector, str):
        check_choice("selector", selector, SELECTORS)
        _check_needs(selector, SELECTORS[selector].selector)
        try:
            federation = Federation(cohort_size, cohort_size, rng=0, horizon=1, deadline=deadline)
            example = make_selector(selector, federation)
        except ValueError as error:
            raise ValueError(
                f"selector must be an object, not the name {selector!r}, where {error}"
            ) from None
    else:
        example = selector
    _check_needs(selector, example)

    if loss_key is not None and (not isinstance(loss_key, str) or not loss_key):
        raise ValueError(f"loss_key must be the name of a metric, got {loss_key!r}")
    if getattr(example, "needs_losses", False) and loss_key is None:
        raise ValueError(
            "loss_key must name the loss that clients report, "
            "by which this selector ranks them, got None"
        )


def _check_needs(selector: str | Selector, declares: Any) -> None:
    """Refuse a selector whose attributes, or those of its class, ask for too much."""
    for attribute, what in NOT_ON_FLOWER.items():
        if getattr(declares, attribute, None):
            raise ValueError(
                f"selector must not need {what}, which Flower does not offer, "
                f"got {selector_name(selector)}"
            )


def resolve_cohort_size(selector: str | Selector, cohort_size: int | None) -> int:
    """Return the number of clients per round; an object brings its own."""
    if isinstance(selector, str):
        return check_int("cohort_size", cohort_size, 1)
    if cohort_size is not None and cohort_size != selector.cohort_size:
        raise ValueError(
            f"cohort_size must be the selector's, {selector.cohort_size}, got {cohort_size!r}"
        )
    return int(selector.cohort_size)


def resolve_num_clients(
    selector: str | Selector, num_clients: int | None, cohort_size: int
) -> int | None:
    """Return the announced number of clients; None if only the connected clients count."""
    if num_clients is None and not isinstance(selector, str):
        num_clients = selector.num_clients
    if num_clients is None:
        return None
    return check_int("num_clients", num_clients, cohort_size)


def build_selector(
    selector: str | Selector,
    *,
    num_clients: int,
    cohort_size: int,
    seed: int,
    horizon: int,
    deadline: float | None = None,
) -> Selector:
    """Return the selector for these clients. In an object with fewer, the others join."""
    if isinstance(selector, str):
        federation = Federation(
            num_clients, cohort_size, rng=seed, horizon=horizon, deadline=deadline
        )
        return make_selector(selector, federation)
    if selector.num_clients < num_clients:
        selector.join(num_clients - selector.num_clients)
    return selector


def selector_name(selector: str | Selector) -> str:
    """Return the registered name, or the class of an object."""
    if isinstance(selector, str):
        return selector
    return type(selector).__name__


def inclusion_probabilities(
    selector: Selector, round: int, available: npt.ArrayLike | None
) -> list[float] | None:
    """Return each client's probability of being asked; None if the selector cannot tell."""
    if not getattr(selector, "has_inclusion", False):
        return None
    inclusion = cast(BaseSelector, selector).inclusion(round, available)
    return [float(probability) for probability in inclusion]
