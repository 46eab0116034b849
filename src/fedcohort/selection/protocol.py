"""Two verbs, two small messages: ask with `select`, tell with `update`.

Every array may have leading batch axes: a selector built on S seeds plays S runs in lock-step, and its cohorts are [S, k].
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, State
from fedcohort.checks import check_array, check_int
from fedcohort.rng import Rng, batch_shape, rng_state, set_rng_state


@dataclass(frozen=True, eq=False)
class Cohort:
    """Who is asked in a round.

    clients:   [..., k] distinct ids, ascending.
    inclusion: [..., k] the probability, before the draw, that this client would be asked; 1 where there was no lottery.
    """

    round: int
    clients: Ints
    inclusion: Floats

    def __post_init__(self) -> None:
        check_int("round", self.round, 0)
        clients = np.asarray(self.clients)
        if clients.ndim == 0 or (clients.size and not np.issubdtype(clients.dtype, np.integer)):
            raise ValueError(
                f"clients must be an array of whole numbers [..., k], got {self.clients!r}"
            )
        clients = clients.astype(np.int64, copy=False)
        if clients.size and clients.min() < 0:
            raise ValueError(f"clients must be at least 0, got {clients.min()}")
        ordered = (
            clients if (clients[..., 1:] > clients[..., :-1]).all() else np.sort(clients, axis=-1)
        )
        twice = ordered[..., 1:] == ordered[..., :-1]
        if twice.any():
            raise ValueError(f"clients must be distinct, got {ordered[..., 1:][twice][0]} twice")
        inclusion = check_array("inclusion", self.inclusion, clients.shape, 0.0, 1.0)
        for name, values in (("clients", clients), ("inclusion", inclusion)):
            own = np.array(
                values
            )  # a selector learns by what it asked, whatever became of the caller's arrays
            own.setflags(write=False)
            object.__setattr__(self, name, own)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the server saw of a cohort: nothing about the clients it did not ask.

    success: [..., k] whether the update arrived before the deadline (a share in [0, 1] is allowed).
    loss:    [..., k] reported local loss, nan where nothing arrived; None if clients report none.
    """

    cohort: Cohort
    success: npt.NDArray[Any]
    loss: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        shape = self.cohort.clients.shape
        success = check_array("success", self.success, shape, 0.0, 1.0)
        object.__setattr__(self, "success", success)
        if self.loss is not None:
            loss = np.asarray(self.loss, dtype=np.float64)
            if loss.shape != shape:
                raise ValueError(f"loss must have shape {shape}, got {loss.shape}")
            lost = (success > 0) & ~np.isfinite(loss)
            if lost.any():
                raise ValueError(
                    f"loss must be finite where success is above 0, got {loss[lost][0]}"
                )
            object.__setattr__(self, "loss", loss)


class Selector(Protocol):
    """One call of `select` and one of `update` per round, in that order; `select` again forgets the cohort before."""

    num_clients: int
    cohort_size: int

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort: ...
    def update(self, outcome: Outcome) -> None: ...
    def join(self, count: int = 1) -> None: ...
    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> None: ...


def present_mask(
    available: npt.ArrayLike | None, num_clients: int, batch: tuple[int, ...]
) -> Bools | None:
    """Return who may be asked as a mask [..., K], or None for everyone; accept a mask or an array of client ids."""
    if available is None:
        return None
    given = np.asarray(available)
    if given.dtype == np.bool_:
        if given.shape not in ((num_clients,), (*batch, num_clients)):
            raise ValueError(
                f"available must have shape {(*batch, num_clients)}, got {given.shape}"
            )
        return np.broadcast_to(
            given, (*batch, num_clients)
        ).copy()  # the caller may use the array again before the update
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise ValueError(
            f"available must be a mask of {num_clients} clients or an array of client ids, got {available!r}"
        )
    strange = given[(given < 0) | (given >= num_clients)]
    if strange.size:
        raise ValueError(
            f"available must hold client ids between 0 and {num_clients - 1}, got {strange[0]}"
        )
    ids, times = np.unique(given.astype(np.int64), return_counts=True)
    if ids.size < given.size:
        raise ValueError(
            f"available must hold distinct client ids, got {ids[times > 1][0]} twice; a mask must be of bools"
        )
    mask = np.zeros(num_clients, dtype=np.bool_)
    mask[ids] = True
    return np.broadcast_to(mask, (*batch, num_clients))


def count_present(present: Bools | None, num_clients: int) -> Ints:
    """Return how many clients may be asked, [...]."""
    return np.asarray(num_clients if present is None else present.sum(axis=-1))


def reachable_size(cohort_size: int, present: Bools | None) -> int:
    """Return how many clients can be asked: k, or all present if they are fewer; runs in lock-step must agree."""
    if present is None:
        return cohort_size
    sizes = np.minimum(present.sum(axis=-1), cohort_size)
    if (sizes != sizes.flat[0]).any():
        raise ValueError(
            f"available must leave every run in lock-step the same cohort size, got between {sizes.min()} and {sizes.max()}"
        )
    return int(sizes.flat[0])


def answer_to(asked: Cohort | None, outcome: Outcome) -> Cohort:
    """Return the cohort last asked; refuse an outcome that does not answer it."""
    told = outcome.cohort
    if asked is None:
        raise ValueError(
            f"update needs a cohort from select first, got an outcome for round {told.round}"
        )
    if told.round != asked.round:
        raise ValueError(
            f"outcome must be for round {asked.round}, the last one selected, got round {told.round}"
        )
    if told is asked:
        return asked
    if told.clients.shape != asked.clients.shape or (told.clients != asked.clients).any():
        strange = np.setdiff1d(told.clients, asked.clients)
        other = (
            "the same in another order"
            if told.clients.shape == asked.clients.shape
            else f"clients of shape {told.clients.shape}"
        )
        who = f"client {strange[0]}" if strange.size else other
        raise ValueError(f"outcome must be for the clients asked in round {asked.round}, got {who}")
    return asked


class Restorable(Protocol):
    """The part of a selector that a snapshot always holds; `kind` tells states of different schemes apart."""

    kind: str
    num_clients: int
    cohort_size: int
    rng: Rng
    asked: Cohort | None


def snapshot(
    selector: Restorable, arrays: tuple[str, ...] = (), in_flight: tuple[str, ...] = ()
) -> State:
    """Return all that decides the future of a selector: arrays [..., K], the cohort in flight, the generator's state."""
    state: State = {
        name: getattr(selector, name) for name in ("kind", "num_clients", "cohort_size")
    }
    state |= {name: np.copy(getattr(selector, name)) for name in arrays}
    state["rng"] = rng_state(selector.rng)
    if selector.asked is not None:
        state["asked"] = {
            **vars(selector.asked),
            **{name: _copied(getattr(selector, name)) for name in in_flight},
        }
    return state


def _copied(value: Any) -> Any:
    return None if value is None else np.copy(value)


def restore(
    selector: Restorable,
    state: State,
    arrays: tuple[str, ...] = (),
    in_flight: tuple[str, ...] = (),
) -> None:
    """Continue exactly where the snapshot was taken; a state of another scheme or size is refused and changes nothing."""
    if not isinstance(state, Mapping):
        raise ValueError(f"state must be one of {selector.kind}, got {state!r}")
    strange = (set(state) - {"asked"}) ^ {"kind", "num_clients", "cohort_size", "rng", *arrays}
    if strange:
        raise ValueError(
            f"state must be one of {selector.kind}, got one that differs in {', '.join(sorted(strange))}"
        )
    for name in ("kind", "num_clients", "cohort_size"):
        if state[name] != getattr(selector, name):
            raise ValueError(
                f"{name} of the state must be {getattr(selector, name)}, got {state[name]}"
            )
    batch, clients = batch_shape(selector.rng), selector.num_clients
    runs = (len(state["rng"]),) if isinstance(state["rng"], list) else ()
    if runs != batch:
        raise ValueError(f"rng of the state must be for runs of shape {batch}, got {runs}")
    values: State = {
        name: np.array(state[name], dtype=getattr(selector, name).dtype, order="C")
        for name in arrays
    }
    for name, value in values.items():
        if value.shape != (*batch, clients) or np.isnan(value).any():
            raise ValueError(
                f"{name} of the state must be numbers of shape {(*batch, clients)}, got {value.shape}"
            )
    asked = None
    if "asked" in state:
        missing = {"round", "clients", "inclusion", *in_flight} - set(state["asked"] or ())
        if missing:
            raise ValueError(
                f"asked in the state must have {', '.join(sorted(missing))}, got {state['asked']!r}"
            )
        asked = Cohort(*(state["asked"][name] for name in ("round", "clients", "inclusion")))
        values |= {name: _copied(state["asked"][name]) for name in in_flight}
        if asked.clients.shape[:-1] != batch or (
            asked.clients.size and asked.clients.max() >= clients
        ):
            raise ValueError(
                f"clients asked in the state must be below {clients}, got {asked.clients}"
            )
    set_rng_state(selector.rng, state["rng"])
    for name in arrays + in_flight:
        setattr(selector, name, values.get(name))
    selector.asked = asked
