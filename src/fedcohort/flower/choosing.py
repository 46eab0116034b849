"""Who chooses: a selector by its name or an object of one's own, made to fit the clients that are there."""

from typing import Any, cast

from fedcohort.checks import check_choice, check_int
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.protocol import Selector
from fedcohort.selection.registry import SELECTORS, Federation, make_selector

Choice = str | Selector


NEEDED = ("num_clients", "cohort_size", "select", "update", "join")
KEPT = ("state_dict", "load_state_dict")  # to go on after a crash


def cohort_size_of(choice: Choice, given: int | None) -> int:
    """Return how many clients are asked: as given for a name, as the selector says for an object."""
    if isinstance(choice, str):
        return check_int("cohort_size", given, 1)
    if given is not None and given != choice.cohort_size:
        raise ValueError(f"cohort_size must be the selector's, {choice.cohort_size}, got {given!r}")
    return int(choice.cohort_size)


def num_clients_of(choice: Choice, given: int | None) -> int | None:
    """Return how many clients there will be: as given, else as many as a selector of one's own has."""
    return given if given is not None or isinstance(choice, str) else choice.num_clients


def refuse_no_selector(choice: Any, kept: bool) -> None:
    """Refuse an object that is no selector, and with a folder one that cannot say its state."""
    lacks = [name for name in NEEDED + KEPT * kept if not hasattr(choice, name)]
    if not isinstance(choice, str) and (lacks or isinstance(choice, type)):
        got = (
            f"the class {choice.__name__}"
            if isinstance(choice, type)
            else f"{choice!r} without {', '.join(lacks)}"
        )
        raise ValueError(
            f"selector must be a name or an object with {', '.join(NEEDED + KEPT * kept)}, got {got}"
        )


def refuse_unfit(choice: Choice, cohort_size: int, loss_key: str | None) -> None:
    """Refuse a name that stands for nothing, or a selector that needs more than it will be told."""
    made = choice
    if isinstance(choice, str):
        check_choice("selector", choice, SELECTORS)
        try:
            made = make_selector(choice, Federation(cohort_size, cohort_size, rng=0, horizon=1))
        except ValueError as error:
            raise ValueError(
                f"selector must be an object, not the name {choice!r}, where {error}"
            ) from None
    if loss_key is not None and (not isinstance(loss_key, str) or not loss_key):
        raise ValueError(f"loss_key must be the name of a metric, got {loss_key!r}")
    if getattr(made, "needs_losses", False) and loss_key is None:
        raise ValueError(
            "loss_key must name the loss that clients report, by which this selector ranks them, got None"
        )


def make(choice: Choice, clients: int, cohort_size: int, seed: int, horizon: int) -> Selector:
    """Return the selector for so many clients."""
    if isinstance(choice, str):
        return make_selector(choice, Federation(clients, cohort_size, rng=seed, horizon=horizon))
    if choice.num_clients < clients:
        choice.join(clients - choice.num_clients)
    return choice


def name_of(choice: Choice) -> str:
    """Return what to call it."""
    return choice if isinstance(choice, str) else type(choice).__name__


def probabilities(selector: Selector, round: int, available: Any) -> list[float] | None:
    """Return every client's probability of being asked, where the selector can say."""
    if not getattr(selector, "has_inclusion", False):
        return None
    inclusion = cast(BaseSelector, selector).inclusion(round, available)
    return [float(p) for p in inclusion]
