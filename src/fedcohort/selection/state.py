"""Reading back the state of a selector: whatever does not fit is refused by its field."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, State, pick
from fedcohort.checks import LARGEST_FLOAT, MAX_COUNT, check_int
from fedcohort.rng import check_rng_state
from fedcohort.selection.availability import reachable_size
from fedcohort.selection.protocol import Cohort

if TYPE_CHECKING:
    from fedcohort.selection.base import BaseSelector

Bounds = dict[str, tuple[float, float]]  # smallest and largest value, by name of an array
COUNT = (0.0, float(MAX_COUNT))  # bounds of what is counted
AMOUNT = (0.0, LARGEST_FLOAT)  # and of what is measured
CONFIG_KEYS = ("kind", "num_clients", "cohort_size")
COHORT_KEYS = ("round", "clients", "inclusion")


def check_config(selector: "BaseSelector", state: State) -> None:
    """Refuse a state of another scheme or size, or with a generator that is none.

    Args:
        selector: The selector that is to take the state.
        state: The state.

    Raises:
        ValueError: If a field is missing, unknown or of another value.
    """
    if not isinstance(state, Mapping):
        raise ValueError(f"state must be one of {selector.kind}, got {state!r}")
    expected = {*CONFIG_KEYS, "rng", *selector.client_arrays, *selector.run_arrays}
    different = (set(state) - {"asked"}) ^ expected
    if different:
        raise ValueError(
            f"state must be one of {selector.kind}, "
            f"got one that differs in {', '.join(sorted(map(str, different)))}"
        )
    for name in CONFIG_KEYS:
        own = getattr(selector, name)
        if type(state[name]) is not type(own) or state[name] != own:
            raise ValueError(f"{name} of the state must be {own}, got {state[name]}")

    runs = (len(state["rng"]),) if isinstance(state["rng"], list) else ()
    if runs != selector.batch:
        raise ValueError(f"rng of the state must be for runs of shape {selector.batch}, got {runs}")
    check_rng_state(selector.rng, state["rng"])


def read_arrays(selector: "BaseSelector", state: State) -> dict[str, npt.NDArray[Any]]:
    """Return copies of the arrays in a state, those of clients [..., K] and of runs [...].

    Raises:
        ValueError: If an array holds anything but numbers, has another shape, or leaves its
            bounds.
    """
    arrays = {}
    shapes = dict.fromkeys(selector.client_arrays, selector.shape)
    shapes |= dict.fromkeys(selector.run_arrays, selector.batch)
    for name, shape in shapes.items():
        values = check_numbers(f"{name} of the state", state[name], shape)
        low, high = selector.array_bounds.get(name, (-np.inf, np.inf))
        outside = (values < low) | (values > high)
        if outside.any():
            raise ValueError(
                f"{name} of the state must be between {low} and {high}, got {values[outside][0]}"
            )
        arrays[name] = np.array(values, dtype=getattr(selector, name).dtype, order="C")
    return arrays


def read_cohort(selector: "BaseSelector", state: State) -> tuple[Cohort | None, dict[str, Any]]:
    """Return the cohort in flight, if there is one, and the values that belong to it.

    Raises:
        ValueError: If a value is missing or unknown, or cannot belong to a cohort.
    """
    if "asked" not in state:
        return None, {}
    values = state["asked"]
    expected = {*COHORT_KEYS, *selector.in_flight}
    keys = set(values) if isinstance(values, Mapping) else set()
    if expected - keys:
        missing = ", ".join(sorted(expected - keys))
        raise ValueError(f"asked in the state must have {missing}, got {values!r}")
    optional = {"weights"}
    if keys - expected - optional:
        unknown = ", ".join(sorted(map(str, keys - expected - optional)))
        raise ValueError(f"asked in the state must have no {unknown}, got {values!r}")

    copies = {}
    try:
        cohort = Cohort(
            values["round"], values["clients"], values["inclusion"], values.get("weights")
        )
        for name in selector.in_flight:
            copies[name] = None if values[name] is None else np.array(values[name])
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"asked in the state must be a cohort, got: {error}") from None
    _check_cohort(selector, cohort)
    return cohort, copies


def check_present(selector: "BaseSelector", present: Any, cohort: Cohort) -> Bools | None:
    """Return the mask of those who could be asked, None for everyone.

    Raises:
        ValueError: If it is no mask, or does not fit the clients that were asked.
    """
    if present is not None:
        if present.dtype != np.bool_ or present.shape != selector.shape:
            raise ValueError(
                f"present in the state must be bools of shape {selector.shape}, "
                f"got {present.dtype} of {present.shape}"
            )
        if not pick(present, cohort.clients).all():
            raise ValueError(
                f"present in the state must hold the clients asked, got {cohort.clients} as well"
            )
    size = reachable_size(selector.cohort_size, present)
    if cohort.clients.shape[-1] != size:
        raise ValueError(
            f"clients asked in the state must be {size}, got {cohort.clients.shape[-1]}"
        )
    mask: Bools | None = present
    return mask


def check_log_cap(log_cap: Any, batch: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return the logarithm of the cap [...]; it is infinite where nobody is capped.

    Raises:
        ValueError: If it is no number, or of another shape.
    """
    return check_numbers("log_cap in the state", log_cap, batch).astype(np.float64)


def check_close(name: str, found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
    """Refuse values other than those computed anew, but for rounding on another machine.

    Raises:
        ValueError: If a value differs by more than a billionth.
    """
    if not np.allclose(found, expected, rtol=1e-9, atol=1e-9):
        raise ValueError(f"{name} must be {expected} by its weights, got {found}")


def _check_cohort(selector: "BaseSelector", cohort: Cohort) -> None:
    check_int("round asked in the state", cohort.round, 0, MAX_COUNT)
    clients = cohort.clients
    is_known = clients.size == 0 or clients.max() < selector.num_clients
    if clients.shape[:-1] != selector.batch or not is_known:
        raise ValueError(
            f"clients asked in the state must be below {selector.num_clients}, got {clients}"
        )
    if clients.shape[-1] > selector.cohort_size or (np.diff(clients) <= 0).any():
        raise ValueError(
            f"clients asked in the state must be at most {selector.cohort_size}, in ascending "
            f"order, got {clients}"
        )
    if (cohort.inclusion <= 0).any():
        raise ValueError(
            f"inclusion of clients asked in the state must be above 0, got {cohort.inclusion}"
        )


def check_numbers(name: str, values: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return an array of numbers of this shape, none of them nan.

    Raises:
        ValueError: If it is anything else.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    is_numbers = array.dtype.kind in "fiu" and not np.isnan(array).any()
    if array.shape != shape:
        raise ValueError(f"{name} must be numbers of shape {shape}, got {array.shape}")
    if not is_numbers:
        raise ValueError(f"{name} must be numbers of shape {shape}, got {values!r:.80}")
    return array
