"""FedCS as the paper plays it: a prophet that knows every client's success rate and always asks the k best."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats, State
from fedcohort.checks import check_array, check_choice, check_int
from fedcohort.rng import RngLike, as_rng, batch_shape
from fedcohort.selection.protocol import (
    Cohort,
    Outcome,
    answer_to,
    present_mask,
    reachable_size,
    restore,
    snapshot,
)

TIES = ("random", "order")


class FedCS:
    """Ask the k available clients of the highest success rate; equal rates rank at random, drawn once, or by id."""

    kind = "FedCS"

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        success_rates: npt.ArrayLike,
        rng: RngLike,
        ties: str = "random",
    ) -> None:
        self.num_clients = check_int("num_clients", num_clients, 1)
        self.cohort_size = check_int("cohort_size", cohort_size, 1, num_clients)
        self.success_rates = check_array("success_rates", success_rates, (num_clients,), 0.0, 1.0)
        self.ties = check_choice("ties", ties, TIES)
        self.rng = as_rng(rng, "selection")
        self.asked: Cohort | None = None
        self.lots = self._draw_lots(num_clients)

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        check_int("round", round, 0)
        present = present_mask(available, self.num_clients, batch_shape(self.rng))
        size = reachable_size(self.cohort_size, present)
        worth = np.broadcast_to(self.success_rates, self.lots.shape)
        if present is not None:
            worth = np.where(present, worth, -1.0)
        clients = np.sort(np.lexsort((self.lots, -worth), axis=-1)[..., :size], axis=-1)
        self.asked = Cohort(round, clients, np.ones(clients.shape))
        return self.asked

    def update(self, outcome: Outcome) -> None:
        answer_to(self.asked, outcome)
        self.asked = None

    def join(self, count: int = 1, success_rates: npt.ArrayLike | None = None) -> None:
        """Add clients at the end; a prophet must be told their rates too."""
        count = check_int("count", count, 1)
        if success_rates is None:
            raise ValueError(
                f"success_rates must be given for the {count} clients that join FedCS, got None"
            )
        rates = check_array("success_rates", success_rates, (count,), 0.0, 1.0)
        self.success_rates = np.concatenate([self.success_rates, rates])
        self.lots = np.concatenate([self.lots, self._draw_lots(count)], axis=-1)
        self.num_clients += count
        self.asked = None

    def state_dict(self) -> State:
        return snapshot(self, ("lots",))

    def load_state_dict(self, state: State) -> None:
        restore(self, state, ("lots",))

    def _draw_lots(self, count: int) -> Floats:
        """Return who goes first among equals [..., count]: the lower lot, or with all lots zero the lower id."""
        shape = (*batch_shape(self.rng), count)
        return self.rng.random(shape).copy() if self.ties == "random" else np.zeros(shape)
