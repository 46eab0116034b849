"""Power of choice: of d random candidates, ask the k with the highest loss.

`PowD` asks a probe for the candidates' losses on the current model (pow-d). `LastLoss` uses what clients reported when they
last trained, and takes those never heard of first (rpow-d): no extra communication.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats, Ints, State, pick, place
from fedcohort.checks import check_array, check_int
from fedcohort.rng import Rng, RngLike, as_rng, batch_shape
from fedcohort.selection.protocol import (
    Cohort,
    Outcome,
    answer_to,
    count_present,
    present_mask,
    reachable_size,
    restore,
    snapshot,
)
from fedcohort.selection.random import draw_uniformly

LossProbe = Callable[[Ints], npt.ArrayLike]


class PowD:
    """Ask the k lossiest of d candidates; inclusion is the chance of being a candidate, all that is known of it."""

    kind = "PowD"

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        loss_of: LossProbe,
        rng: RngLike,
        candidates: int | None = None,
    ) -> None:
        self.num_clients = check_int("num_clients", num_clients, 1)
        self.cohort_size = check_int("cohort_size", cohort_size, 1, num_clients)
        self.candidates = (
            None
            if candidates is None
            else check_int("candidates", candidates, cohort_size, num_clients)
        )
        self.loss_of = loss_of
        self.rng = as_rng(rng, "selection")
        self.asked: Cohort | None = None

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        self.asked = _lossiest(self, round, available, self._probe)
        return self.asked

    def update(self, outcome: Outcome) -> None:
        answer_to(self.asked, outcome)
        self.asked = None

    def join(self, count: int = 1) -> None:
        self.num_clients += check_int("count", count, 1)
        self.asked = None

    def state_dict(self) -> State:
        return snapshot(self)

    def load_state_dict(self, state: State) -> None:
        restore(self, state)

    def _probe(self, clients: Ints) -> Floats:
        return check_array(
            "loss_of(clients)", self.loss_of(clients), clients.shape, -np.inf, np.inf
        )


class LastLoss:
    """Ask the k candidates whose last reported loss is highest; who never reported comes first."""

    kind = "LastLoss"

    def __init__(
        self, num_clients: int, cohort_size: int, *, rng: RngLike, candidates: int | None = None
    ) -> None:
        self.num_clients = check_int("num_clients", num_clients, 1)
        self.cohort_size = check_int("cohort_size", cohort_size, 1, num_clients)
        self.candidates = (
            None
            if candidates is None
            else check_int("candidates", candidates, cohort_size, num_clients)
        )
        self.rng = as_rng(rng, "selection")
        self.last_losses: Floats = np.full((*batch_shape(self.rng), num_clients), np.inf)
        self.asked: Cohort | None = None

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        self.asked = _lossiest(
            self, round, available, lambda clients: pick(self.last_losses, clients)
        )
        return self.asked

    def update(self, outcome: Outcome) -> None:
        answer_to(self.asked, outcome)
        if outcome.loss is None:
            raise ValueError(
                "loss must be reported to a selector that ranks clients by it, got None"
            )
        clients = outcome.cohort.clients
        place(
            self.last_losses,
            clients,
            np.where(outcome.success > 0, outcome.loss, pick(self.last_losses, clients)),
        )
        self.asked = None

    def join(self, count: int = 1) -> None:
        unheard = np.full((*self.last_losses.shape[:-1], check_int("count", count, 1)), np.inf)
        self.last_losses = np.concatenate([self.last_losses, unheard], axis=-1)
        self.num_clients += count
        self.asked = None

    def state_dict(self) -> State:
        return snapshot(self, ("last_losses",))

    def load_state_dict(self, state: State) -> None:
        restore(self, state, ("last_losses",))


def _lossiest(
    selector: PowD | LastLoss,
    round: int,
    available: npt.ArrayLike | None,
    loss_of: Callable[[Ints], Floats],
) -> Cohort:
    """Return the k of d random candidates with the highest loss; ties fall to the candidate drawn first.

    The paper does not state d: 2.5 k unless given, 50 in its setting; fewer where fewer are present, alike in all runs.
    """
    rng: Rng = selector.rng
    batch = batch_shape(rng)
    check_int("round", round, 0)
    present = present_mask(available, selector.num_clients, batch)
    size = reachable_size(selector.cohort_size, present)
    count = count_present(present, selector.num_clients)
    drawn = min(selector.candidates or -(-5 * selector.cohort_size // 2), int(count.min()))
    candidates = draw_uniformly(drawn, (*batch, selector.num_clients), present, rng)
    if not size:
        return Cohort(round, candidates, np.empty(candidates.shape))
    best = np.argsort(-loss_of(candidates), axis=-1, kind="stable")[..., :size]
    clients = np.sort(pick(candidates, best), axis=-1)
    return Cohort(round, clients, np.broadcast_to((drawn / count)[..., None], clients.shape))
