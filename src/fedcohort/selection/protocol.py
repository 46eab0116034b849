"""The two messages and the interface of selection: ask with `select`, tell with `update`.

Arrays may have a leading batch axis. A selector that is built on S seeds plays S runs in
lock-step, and its cohorts have shape [S, k].
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats, Ints, State
from fedcohort.checks import check_array, check_int

NOBODY = -1  # fills the rows of runs in lock-step that ask fewer clients than others


@dataclass(frozen=True, eq=False)
class Cohort:
    """The clients that are asked to train in a round.

    A cohort copies its arrays and makes the copies read-only, because a selector learns
    by what it asked, whatever the caller does to the arrays later.

    Attributes:
        round: The round, counted from 0.
        clients: Distinct client ids in ascending order, shape [..., k]. Runs in lock-step that
            ask fewer clients than others have `NOBODY` (-1) at the end of their row.
        inclusion: Probability, before the draw, that this client would be asked, given who is
            available; 1 where chance had no part in it. Schemes that take the best of random
            candidates, pow-d, rpow-d and fedcs-time, do not know it and give the probability of
            being a candidate, which is higher. E3CS with the sampler "successive" gives the
            probability that it misses. Shape [..., k]; 0 for `NOBODY`.
        weights: Factor of each client's share in an unbiased aggregation, shape [..., k]; 0 for
            `NOBODY`. It counts rounds in which the client was not available, too. None stands for
            the inverse of `inclusion`.

    Raises:
        ValueError: If a value is out of bounds or a client is named twice.

    Examples:
        >>> cohort = Cohort(round=0, clients=[2, 5], inclusion=[0.5, 1.0])
        >>> cohort.clients
        array([2, 5])
    """

    round: int
    clients: Ints
    inclusion: Floats
    weights: Floats | None = None

    def __post_init__(self) -> None:
        check_int("round", self.round, 0)
        clients = _check_clients(self.clients)
        inclusion = check_array("inclusion", self.inclusion, clients.shape, 0.0, 1.0)
        object.__setattr__(self, "clients", _read_only_copy(clients))
        object.__setattr__(self, "inclusion", _read_only_copy(inclusion))
        if self.weights is not None:
            weights = check_array("weights", self.weights, clients.shape, 0.0, np.inf)
            object.__setattr__(self, "weights", _read_only_copy(weights))

    @property
    def is_asked(self) -> npt.NDArray[np.bool_]:
        """Where a client stands, and not `NOBODY`, shape [..., k]."""
        return np.asarray(self.clients != NOBODY)

    @property
    def correction(self) -> Floats:
        """The weights, or the inverse of `inclusion` where there are none, shape [..., k]."""
        if self.weights is not None:
            return self.weights
        inverse = np.zeros(self.inclusion.shape)
        np.divide(1.0, self.inclusion, out=inverse, where=self.inclusion > 0)
        return inverse


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the server saw of a cohort: nothing about clients that it did not ask.

    Attributes:
        cohort: The cohort that was asked.
        success: Whether the update arrived before the deadline; a share in [0, 1] is allowed.
            Shape [..., k].
        loss: Local loss that the client reported, nan where nothing arrived, shape [..., k];
            None if clients report no loss.
        seconds: How long the server waited for the client, shape [..., k]: until its answer, or
            until the round closed if that came first. None if nobody measured it.
        norm: Length of the client's update, nan where nothing arrived, shape [..., k]; None if
            nobody measured it.
        censored: Where the round closed, because enough others had answered, before anybody could
            know whether the client would, shape [..., k]. There `success` is 0, but it is no
            failure. None if the server waited for everyone.

    Raises:
        ValueError: If a value is out of bounds, a client that succeeded has no finite loss or
            no finite norm, or a censored client succeeded.

    Examples:
        >>> cohort = Cohort(round=0, clients=[2, 5], inclusion=[0.5, 1.0])
        >>> Outcome(cohort, success=[True, False]).success
        array([1., 0.])
    """

    cohort: Cohort
    success: npt.NDArray[Any]
    loss: npt.NDArray[Any] | None = None
    seconds: npt.NDArray[Any] | None = None
    norm: npt.NDArray[Any] | None = None
    censored: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        shape = self.cohort.clients.shape
        success = check_array("success", self.success, shape, 0.0, 1.0)
        object.__setattr__(self, "success", success)
        for name in ("loss", "norm"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, _check_reported(name, values, success))
        if self.seconds is not None:
            seconds = check_array("seconds", self.seconds, shape, 0.0, np.inf)
            object.__setattr__(self, "seconds", seconds)
        if self.censored is not None:
            censored = _check_censored(self.censored, success)
            object.__setattr__(self, "censored", censored)

    @property
    def observed(self) -> npt.NDArray[np.bool_]:
        """Where the server knows whether the client succeeded or failed, shape [..., k]."""
        if self.censored is None:
            return np.ones(self.success.shape, dtype=np.bool_)
        return ~self.censored


class Selector(Protocol):
    """Chooses who trains: one call of `select` and one of `update` per round, in that order.

    A second `select` before the `update` replaces the cohort that was asked.
    `BaseSelector` implements everything but the choice itself.

    Attributes:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.

    Examples:
        >>> from fedcohort import Random
        >>> selector: Selector = Random(100, 20, rng=0)
        >>> cohort = selector.select(0)
        >>> selector.update(Outcome(cohort, success=np.ones(20)))
    """

    num_clients: int
    cohort_size: int

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        """Return the clients to ask in this round.

        Args:
            round: The round, counted from 0.
            available: Who may be asked: a mask [K] or [..., K], or client ids; None for all.
        """
        ...

    def update(self, outcome: Outcome) -> None:
        """Learn from the outcome of the cohort that was asked last."""
        ...

    def join(self, count: int = 1) -> None:
        """Add clients at the end, so that the ids of the others stay."""
        ...

    def state_dict(self) -> State:
        """Return everything that decides the selector's future choices."""
        ...

    def load_state_dict(self, state: State) -> None:
        """Continue from a state that `state_dict` returned."""
        ...


def check_answers(asked: Cohort | None, answered: Cohort) -> None:
    """Check that an outcome's cohort is the one that was asked last.

    Args:
        asked: The cohort asked last, or None if there is none.
        answered: The cohort of the outcome.

    Raises:
        ValueError: If the round or the clients differ, or no cohort was asked.
    """
    if asked is None:
        raise ValueError(
            f"update needs a cohort from select first, got an outcome for round {answered.round}"
        )
    if answered is asked:
        return
    if answered.round != asked.round:
        raise ValueError(
            f"outcome must be for round {asked.round}, the last one selected, "
            f"got round {answered.round}"
        )
    if not np.array_equal(answered.clients, asked.clients):
        raise ValueError(
            f"outcome must be for the clients asked in round {asked.round}, "
            f"got {_describe_difference(asked, answered)}"
        )


def _describe_difference(asked: Cohort, answered: Cohort) -> str:
    strangers = np.setdiff1d(answered.clients, asked.clients)
    if strangers.size:
        return f"client {strangers[0]}"
    if answered.clients.shape == asked.clients.shape:
        return "the same in another order"
    return f"clients of shape {answered.clients.shape}"


def _check_reported(name: str, values: npt.ArrayLike, success: Floats) -> Floats:
    """Return what clients reported if it is finite wherever a client succeeded."""
    reported = np.asarray(values, dtype=np.float64)
    if reported.shape != success.shape:
        raise ValueError(f"{name} must have shape {success.shape}, got {reported.shape}")
    missing = (success > 0) & ~np.isfinite(reported)
    if missing.any():
        bad = reported[missing][0]
        raise ValueError(f"{name} must be finite where success is above 0, got {bad}")
    return reported


def _check_censored(values: npt.ArrayLike, success: Floats) -> npt.NDArray[np.bool_]:
    """Return who is censored if nobody of them succeeded."""
    censored = np.asarray(values)
    if censored.dtype != np.bool_ or censored.shape != success.shape:
        raise ValueError(
            f"censored must be bool of shape {success.shape}, "
            f"got {censored.dtype} of {censored.shape}"
        )
    succeeded = success[censored]
    if succeeded.any():
        raise ValueError(f"success must be 0 where censored, got {succeeded.max()}")
    return censored


def _check_clients(values: npt.ArrayLike) -> Ints:
    """Return client ids as int64 [..., k] if they are distinct; NOBODY may stand at the end."""
    clients = np.asarray(values)
    is_integer = np.issubdtype(clients.dtype, np.integer) or clients.size == 0
    if clients.ndim == 0 or not is_integer:
        raise ValueError(f"clients must be an array of whole numbers [..., k], got {values!r}")

    clients = clients.astype(np.int64, copy=False)
    if clients.size and clients.min() < 0:
        _check_padding(clients)

    if (clients[..., 1:] > clients[..., :-1]).all():
        return clients
    ascending = np.sort(clients, axis=-1)
    repeated = (ascending[..., 1:] == ascending[..., :-1]) & (ascending[..., 1:] != NOBODY)
    if repeated.any():
        first = ascending[..., 1:][repeated][0]
        raise ValueError(f"clients must be distinct, got {first} twice")
    return clients


def _check_padding(clients: Ints) -> None:
    """Refuse negative ids, except NOBODY behind the clients of one of several runs."""
    if clients.ndim == 1 or clients.min() < NOBODY:
        raise ValueError(f"clients must be at least 0, got {clients.min()}")
    is_nobody = clients == NOBODY
    if (is_nobody[..., :-1] & ~is_nobody[..., 1:]).any():
        raise ValueError(f"clients must have {NOBODY} only behind the others, got {clients}")


def _read_only_copy(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copy = np.array(values)
    copy.setflags(write=False)
    return copy
