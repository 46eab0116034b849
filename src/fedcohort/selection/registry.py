"""All selectors by name: the command line, the lab, the tests and the docs read this dict.

To add a scheme, write its file and one line in `SELECTORS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy.typing as npt

from fedcohort.checks import shown
from fedcohort.references import call_own, resolve
from fedcohort.rng import RngLike
from fedcohort.selection.age import Age
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.clustered import ClusteredSampling
from fedcohort.selection.cs_ucb import CSUCB, CSUCBQ
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.f3ast import F3AST
from fedcohort.selection.fedcs import FedCS
from fedcohort.selection.fedcs_time import FedCSTime
from fedcohort.selection.oort import Oort
from fedcohort.selection.optimal import OptimalSampling
from fedcohort.selection.over_selection import OverSelection
from fedcohort.selection.powd import LastLoss, LossProbe, PowD
from fedcohort.selection.protocol import Selector
from fedcohort.selection.quotas import Quota, constant, cosine, linear, step
from fedcohort.selection.random import Random
from fedcohort.selection.rbcs_f import RBCSF
from fedcohort.selection.refl import REFL

T = TypeVar("T")
SELECTOR_PARTS = ("num_clients", "cohort_size", "select", "update", "state_dict", "load_state_dict")


@dataclass(frozen=True)
class Federation:
    """What may be known before the first round; each scheme takes only what it needs.

    Attributes:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        horizon: Number of rounds, for schemes whose quota or rate depends on it.
        success_rates: True success rates [K], for schemes that know them (FedCS).
        loss_of: Function that returns the losses of clients, for schemes that probe (pow-d).
        candidates: Number of candidates of pow-d, rpow-d and fedcs-time.
        eta: Learning rate of E3CS, or "auto".
        sampler: Name of the function in `SAMPLERS` with which E3CS draws.
        data_sizes: Number of training samples of each client [K] or [..., K], for schemes that
            weigh clients by their data; None if it is unknown.
        deadline: Seconds after which the server stops waiting; None if it is unknown.

    Examples:
        >>> federation = Federation(num_clients=100, cohort_size=20, rng=0)
        >>> SELECTORS["random"](federation).select(0).clients.shape
        (20,)
    """

    num_clients: int
    cohort_size: int
    rng: RngLike
    horizon: int | None = None
    success_rates: npt.ArrayLike | None = None
    loss_of: LossProbe | None = None
    candidates: int | None = None
    eta: float | str = 0.5
    sampler: str = "systematic"
    data_sizes: npt.ArrayLike | None = None
    deadline: float | None = None


@dataclass(frozen=True)
class Scheme:
    """One entry of `SELECTORS`; call it with a federation to make a selector.

    Attributes:
        selector: The class, whose attributes declare what the scheme needs and offers.
        make: Function that makes a selector for a federation. By default the class is called
            with the sizes and the randomness, and with `data_sizes` and `deadline` if it
            declares that it needs them.

    Examples:
        >>> scheme = Scheme(Random)
        >>> scheme.selector.needs_losses
        False
        >>> scheme(Federation(num_clients=10, cohort_size=2, rng=0)).cohort_size
        2
    """

    selector: type[BaseSelector]
    make: Callable[[Federation], Selector] | None = None

    def __call__(self, federation: Federation) -> Selector:
        """Return a new selector for this federation."""
        if self.make is not None:
            return self.make(federation)
        known = {name: getattr(federation, name) for name in self.needs}
        return self.selector(
            federation.num_clients, federation.cohort_size, rng=federation.rng, **known
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """Fields of the federation that may be None elsewhere, but not for this scheme."""
        fields = ("data_sizes", "deadline")
        return tuple(name for name in fields if getattr(self.selector, f"needs_{name}"))


def make_selector(name: str, federation: Federation) -> Selector:
    """Return a new selector by its name.

    Args:
        name: A key of `SELECTORS`, a name that an installed package registers, or a reference
            such as "mine.py:Oldest" (see `find_scheme`).
        federation: Sizes, randomness and whatever else the scheme may know.

    Returns:
        The selector.

    Raises:
        ValueError: If the name is unknown, with the nearest name as a suggestion, or if the
            federation lacks something that the scheme needs.

    Examples:
        >>> selector = make_selector("e3cs-0.5", Federation(100, 20, rng=0))
        >>> selector.select(0).clients.shape
        (20,)
    """
    scheme = find_scheme(name)
    for field in scheme.needs:
        _require(getattr(federation, field), field, name)
    if name in SELECTORS:
        return scheme(federation)
    about = f"selector {name!r}"
    selector: Selector = call_own(about, scheme, federation)
    missing = [part for part in SELECTOR_PARTS if not hasattr(selector, part)]
    if missing:
        raise ValueError(
            f"{about} must have all that a selector has, got a {type(selector).__name__} "
            f"without {', '.join(missing)}"
        )
    return selector


def find_scheme(name: str) -> Scheme:
    """Return a scheme by its name, or by a reference to one's own.

    Args:
        name: A key of `SELECTORS`, a name that an installed package registers, or a reference to
            a subclass of `BaseSelector` or a function from a `Federation` to a selector.

    Returns:
        The scheme. What a function makes is not known before it is called, so its scheme declares
        no needs.

    Raises:
        ValueError: If there is no such name, or it is of another kind.

    Examples:
        >>> find_scheme("pow-d").selector.probes_losses
        True
    """
    found = resolve("selector", name, SELECTORS)
    if isinstance(found, Scheme):
        return found
    if isinstance(found, type) and issubclass(found, BaseSelector):
        return Scheme(found)
    if callable(found):
        return Scheme(BaseSelector, found)
    raise ValueError(
        f"selector {name!r} must be a subclass of BaseSelector or a function from a Federation "
        f"to a selector, got {shown(found)}"
    )


def _require(value: T | None, argument: str, name: str) -> T:
    if value is None:
        raise ValueError(f"{argument} must be given for {name}, got None")
    return value


def _e3cs(make_quota: Callable[[Federation], Quota], update: str = "paper") -> Scheme:
    def make(federation: Federation) -> Selector:
        return E3CS(
            federation.num_clients,
            federation.cohort_size,
            rng=federation.rng,
            quota=make_quota(federation),
            eta=federation.eta,
            horizon=federation.horizon,
            update=update,
            sampler=federation.sampler,
        )

    return Scheme(E3CS, make)


def _fraction(value: float) -> Callable[[Federation], Quota]:
    return lambda federation: constant(value)


def _incremental(federation: Federation) -> Quota:
    horizon = _require(federation.horizon, "horizon", "e3cs-inc")
    return step(at=horizon // 4)


def _linear(federation: Federation) -> Quota:
    return linear(_require(federation.horizon, "horizon", "e3cs-linear"))


def _cosine(federation: Federation) -> Quota:
    return cosine(_require(federation.horizon, "horizon", "e3cs-cosine"))


def _fedcs(federation: Federation) -> Selector:
    if federation.success_rates is None:
        raise ValueError("success_rates must be given for fedcs, got None")
    return FedCS(
        federation.num_clients,
        federation.cohort_size,
        success_rates=federation.success_rates,
        rng=federation.rng,
    )


def _pow_d(federation: Federation) -> Selector:
    return PowD(
        federation.num_clients,
        federation.cohort_size,
        loss_of=_require(federation.loss_of, "loss_of", "pow-d"),
        rng=federation.rng,
        candidates=federation.candidates,
    )


def _rpow_d(federation: Federation) -> Selector:
    return LastLoss(
        federation.num_clients,
        federation.cohort_size,
        rng=federation.rng,
        candidates=federation.candidates,
    )


def _fedcs_time(federation: Federation) -> Selector:
    return FedCSTime(
        federation.num_clients,
        federation.cohort_size,
        deadline=_require(federation.deadline, "deadline", "fedcs-time"),
        rng=federation.rng,
        candidates=federation.candidates,
    )


SELECTORS: dict[str, Scheme] = {
    "e3cs-0": _e3cs(_fraction(0.0)),
    "e3cs-0.5": _e3cs(_fraction(0.5)),
    "e3cs-0.8": _e3cs(_fraction(0.8)),
    "e3cs-inc": _e3cs(_incremental),
    "e3cs-linear": _e3cs(_linear),
    "e3cs-cosine": _e3cs(_cosine),
    "e3cs-robust": _e3cs(_fraction(0.0), update="robust"),
    "e3cs-0.5-robust": _e3cs(_fraction(0.5), update="robust"),
    "e3cs-0.8-robust": _e3cs(_fraction(0.8), update="robust"),
    "e3cs-inc-robust": _e3cs(_incremental, update="robust"),
    "fedcs": Scheme(FedCS, _fedcs),
    "random": Scheme(Random),
    "pow-d": Scheme(PowD, _pow_d),
    "rpow-d": Scheme(LastLoss, _rpow_d),
    "age": Scheme(Age),
    "f3ast": Scheme(F3AST),
    "oort": Scheme(Oort),
    "cs-ucb": Scheme(CSUCB),
    "cs-ucb-q": Scheme(CSUCBQ),
    "rbcs-f": Scheme(RBCSF),
    "fedcs-time": Scheme(FedCSTime, _fedcs_time),
    "optimal": Scheme(OptimalSampling),
    "clustered": Scheme(ClusteredSampling),
    "refl": Scheme(REFL),
    "over-selection": Scheme(OverSelection),
}
"""Every scheme by name."""

PAPER_SELECTORS = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "random", "pow-d")
