"""The selector of a run: a registered name or an object, for the clients that are there."""

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fedcohort.checks import check_int
from fedcohort.flower.data_sizes import HINT
from fedcohort.references import is_reference
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.protocol import Selector
from fedcohort.selection.registry import Federation, find_scheme, make_selector

# What CohortStrategy uses of a selector.
REQUIRED = ("num_clients", "cohort_size", "select", "update", "join")
# What it uses in addition to resume a run.
REQUIRED_TO_RESUME = ("state_dict", "load_state_dict")


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


def make_example(
    selector: str | Selector,
    cohort_size: int,
    deadline: float | None = None,
    has_data_sizes: bool = False,
    has_other_deadline: bool = False,
) -> Selector:
    """Return a selector that declares what the one of the run will need; an object is its own.

    Args:
        selector: A registered name, a reference, or an object.
        cohort_size: Number of clients to ask in each round.
        deadline: Seconds that each round may take; None for no limit, or no fixed one.
        has_data_sizes: Whether the clients' numbers of samples will be known.
        has_other_deadline: Whether the deadline changes from round to round.

    Raises:
        ValueError: If the name is unknown, or the selector needs what Flower does not have.
    """
    if not isinstance(selector, str):
        return selector
    needs = find_scheme(selector).needs
    if "data_sizes" in needs and not has_data_sizes:
        raise ValueError(f"data_sizes must be given for {selector!r}: {HINT}; got None")
    if "deadline" in needs and has_other_deadline:
        raise ValueError(
            f"deadline must be a number for {selector!r}, which compares times with it, "
            "got one that changes"
        )
    sizes = np.ones(cohort_size) if has_data_sizes else None
    federation = Federation(
        cohort_size, cohort_size, rng=0, horizon=1, deadline=deadline, data_sizes=sizes
    )
    try:
        return make_selector(selector, federation)
    except ValueError as error:
        if is_reference(selector):
            raise
        raise ValueError(
            f"selector must be an object, not the name {selector!r}, where {error}"
        ) from None


def check_loss_key(example: Selector, loss_key: str | None) -> None:
    """Check that clients report a loss if the selector ranks them by it.

    Raises:
        ValueError: If `loss_key` is no name, or None although it is needed.
    """
    if loss_key is not None and (not isinstance(loss_key, str) or not loss_key):
        raise ValueError(f"loss_key must be the name of a metric, got {loss_key!r}")
    if getattr(example, "needs_losses", False) and loss_key is None:
        raise ValueError(
            "loss_key must name the loss that clients report, "
            "by which this selector ranks them, got None"
        )


def resolve_enough(example: Selector, enough: int | None, cohort_size: int) -> int | None:
    """Return the number of valid answers at which a round closes; None waits for all.

    Raises:
        ValueError: If the selector has another one, or it is not between 1 and the cohort size.
    """
    own = getattr(example, "enough", None)
    if enough is None:
        return None if own is None else int(own)
    check_int("enough", enough, 1, cohort_size)
    if own is not None and own != enough:
        raise ValueError(f"enough must be the selector's, {own}, got {enough}")
    return enough


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
    """Return the announced number of clients; None if only the connected clients count.

    Raises:
        ValueError: If there are fewer than a cohort, or than the selector knows.
    """
    if num_clients is None and not isinstance(selector, str):
        num_clients = selector.num_clients
    if num_clients is None:
        return None
    num_clients = check_int("num_clients", num_clients, cohort_size)
    if not isinstance(selector, str) and num_clients < selector.num_clients:
        raise ValueError(
            f"num_clients must be at least the selector's, {selector.num_clients}, "
            f"got {num_clients}"
        )
    return num_clients


def build_selector(
    selector: str | Selector,
    *,
    num_clients: int,
    cohort_size: int,
    seed: int,
    horizon: int,
    deadline: float | None = None,
    data_sizes: npt.ArrayLike | None = None,
) -> Selector:
    """Return the selector for these clients. In an object with fewer, the others join."""
    if isinstance(selector, str):
        federation = Federation(
            num_clients,
            cohort_size,
            rng=seed,
            horizon=horizon,
            deadline=deadline,
            data_sizes=data_sizes,
        )
        return make_selector(selector, federation)
    if selector.num_clients < num_clients:
        selector.join(num_clients - selector.num_clients)
    return selector


def restore_cohort_size(selector: Selector, state: dict[str, Any]) -> None:
    """Let a selector that over-selects ask as many as before, if clients joined meanwhile.

    It asks at most all clients that were there when the run began.
    """
    saved = state.get("cohort_size")
    if getattr(selector, "enough", None) is not None and isinstance(saved, int):
        selector.cohort_size = min(saved, selector.cohort_size)


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
