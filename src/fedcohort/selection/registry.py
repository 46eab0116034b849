"""The one list of selectors: the command line, the experiments, the tests and the documentation read it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy.typing as npt

from fedcohort.checks import check_choice
from fedcohort.rng import RngLike
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.fedcs import FedCS
from fedcohort.selection.powd import LastLoss, LossProbe, PowD
from fedcohort.selection.protocol import Selector
from fedcohort.selection.quotas import Quota, constant, cosine, linear, step
from fedcohort.selection.random import Random

T = TypeVar("T")


@dataclass(frozen=True)
class Federation:
    """What may be known before the first round; each selector takes only what it is entitled to.

    success_rates and loss_of are for the schemes that are prophets or probe losses; eta and sampler are E3CS's.
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


def make_selector(name: str, federation: Federation) -> Selector:
    """Return a new selector by its registered name; an unknown name gets the nearest one suggested."""
    return SELECTORS[check_choice("selector", name, SELECTORS)](federation)


def _needs(value: T | None, what: str, who: str) -> T:
    if value is None:
        raise ValueError(f"{what} must be given for {who}, got None")
    return value


def _e3cs(
    quota: Callable[[Federation], Quota], update: str = "paper"
) -> Callable[[Federation], Selector]:
    def make(of: Federation) -> Selector:
        return E3CS(
            of.num_clients,
            of.cohort_size,
            rng=of.rng,
            quota=quota(of),
            eta=of.eta,
            horizon=of.horizon,
            update=update,
            sampler=of.sampler,
        )

    return make


def _fraction(value: float) -> Callable[[Federation], Quota]:
    return lambda of: constant(value)


def _incremental(of: Federation) -> Quota:
    return step(at=_needs(of.horizon, "horizon", "e3cs-inc") // 4)


def _fedcs(of: Federation) -> Selector:
    if of.success_rates is None:
        raise ValueError("success_rates must be given for fedcs, got None")
    return FedCS(of.num_clients, of.cohort_size, success_rates=of.success_rates, rng=of.rng)


def _pow_d(of: Federation) -> Selector:
    probe = _needs(of.loss_of, "loss_of", "pow-d")
    return PowD(of.num_clients, of.cohort_size, loss_of=probe, rng=of.rng, candidates=of.candidates)


SELECTORS: dict[str, Callable[[Federation], Selector]] = {
    "e3cs-0": _e3cs(_fraction(0.0)),
    "e3cs-0.5": _e3cs(_fraction(0.5)),
    "e3cs-0.8": _e3cs(_fraction(0.8)),
    "e3cs-inc": _e3cs(_incremental),
    "e3cs-linear": _e3cs(lambda of: linear(_needs(of.horizon, "horizon", "e3cs-linear"))),
    "e3cs-cosine": _e3cs(lambda of: cosine(_needs(of.horizon, "horizon", "e3cs-cosine"))),
    "e3cs-robust": _e3cs(_fraction(0.0), "robust"),
    "e3cs-0.5-robust": _e3cs(_fraction(0.5), "robust"),
    "e3cs-0.8-robust": _e3cs(_fraction(0.8), "robust"),
    "e3cs-inc-robust": _e3cs(_incremental, "robust"),
    "fedcs": _fedcs,
    "random": lambda of: Random(of.num_clients, of.cohort_size, rng=of.rng),
    "pow-d": _pow_d,
    "rpow-d": lambda of: LastLoss(
        of.num_clients, of.cohort_size, rng=of.rng, candidates=of.candidates
    ),
}
PAPER_SELECTORS = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "random", "pow-d")
