"""Random: every available client with the same probability, the selection of FedAvg and FedProx."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Ints, State, pick
from fedcohort.checks import check_int
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


class Random:
    """Ask k clients drawn uniformly, or all available if they are fewer; learn nothing."""

    kind = "Random"

    def __init__(self, num_clients: int, cohort_size: int, *, rng: RngLike) -> None:
        self.num_clients = check_int("num_clients", num_clients, 1)
        self.cohort_size = check_int("cohort_size", cohort_size, 1, num_clients)
        self.rng = as_rng(rng, "selection")
        self.asked: Cohort | None = None

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        check_int("round", round, 0)
        batch = batch_shape(self.rng)
        present = present_mask(available, self.num_clients, batch)
        size = reachable_size(self.cohort_size, present)
        clients = np.sort(
            draw_uniformly(size, (*batch, self.num_clients), present, self.rng), axis=-1
        )
        count = np.maximum(count_present(present, self.num_clients), 1)
        inclusion = np.broadcast_to((size / count)[..., None], clients.shape)
        self.asked = Cohort(round, clients, inclusion)
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


def draw_uniformly(size: int, shape: tuple[int, ...], present: Bools | None, rng: Rng) -> Ints:
    """Return `size` distinct ids [..., size] among those present, all equally likely, in random order."""
    keys = rng.random(shape)
    if present is not None:
        keys = np.where(present, keys, 2.0)
    if size == shape[-1]:
        return np.argsort(keys, axis=-1)
    first = np.argpartition(keys, size, axis=-1)[..., :size]
    return pick(first, np.argsort(pick(keys, first), axis=-1))
