"""FedCS as the paper plays it: a prophet that knows every client's success rate and always asks the k best."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import State
from fedcohort.checks import array_of, known, whole
from fedcohort.rng import RngLike, as_rng, batch_shape
from fedcohort.selection.protocol import Cohort, Outcome, answer_to, present_mask, reachable_size, restore, snapshot

TIES = ("random", "order")


class FedCS:
    """Ask the k available clients of the highest success rate; equal rates rank at random, drawn once, or by id."""

    def __init__(
        self, num_clients: int, cohort_size: int, *, success_rates: npt.ArrayLike, rng: RngLike, ties: str = "random"
    ) -> None:
        self.num_clients = whole("num_clients", num_clients, 1)
        self.cohort_size = whole("cohort_size", cohort_size, 1, num_clients)
        self.success_rates = array_of("success_rates", success_rates, (num_clients,), 0.0, 1.0)
        self.ties = known("ties", ties, TIES)
        self.rng = as_rng(rng, "selection")
        self.asked: Cohort | None = None
        self.places = self._rank(self.success_rates)

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        present = present_mask(available, self.num_clients, batch_shape(self.rng))
        size = reachable_size(self.cohort_size, present)
        places = self.places if present is None else np.where(present, self.places, self.num_clients)
        clients = np.sort(np.argsort(places, axis=-1, kind="stable")[..., :size], axis=-1)
        self.asked = Cohort(round, clients, np.ones(clients.shape))
        return self.asked

    def update(self, outcome: Outcome) -> None:
        answer_to(self.asked, outcome)
        self.asked = None

    def join(self, count: int = 1, success_rates: npt.ArrayLike | None = None) -> None:
        """Add clients at the end; a prophet must be told their rates too."""
        count = whole("count", count, 1)
        if success_rates is None:
            raise ValueError(f"success_rates must be given for the {count} clients that join FedCS, got None")
        rates = array_of("success_rates", success_rates, (count,), 0.0, 1.0)
        self.success_rates = np.concatenate([self.success_rates, rates])
        self.num_clients += count
        self.asked = None
        self.places = self._rank(self.success_rates)

    def state_dict(self) -> State:
        return snapshot(self, "places")

    def load_state_dict(self, state: State) -> None:
        restore(self, state, "places")

    def _rank(self, rates: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return each client's place in the order of preference, [..., K], 0 the best."""
        shape = (*batch_shape(self.rng), self.num_clients)
        lots = self.rng.random(shape) if self.ties == "random" else np.broadcast_to(np.arange(float(self.num_clients)), shape)
        order = np.lexsort((lots, np.broadcast_to(-rates, shape)), axis=-1)
        return np.argsort(order, axis=-1)
