"""Optimal client sampling: draw clients in proportion to how far they move the model.

    u_i = share of the data x length of the update, p_i = min(1, u_i / theta), sum p = k

These probabilities make the variance of the sum of updates, each divided by its probability,
as small as k clients allow. The authors ask every client for the length of *this* round's
update before the draw. Nobody here trains without being asked, so the lengths are those that
arrived last. A client never heard of counts as the longest known one. The authors draw every
client by its own coin; here the draw always has k clients, with the same probabilities.

A round passes over all clients: the longest known length stands for everyone not heard of, and
the draw shuffles everyone, which decides the cohorts that a seed gives.
"""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, pick, place
from fedcohort.rng import RngLike
from fedcohort.selection.allocation import Allocation, allocate_present
from fedcohort.selection.data_sizes import SIZES, check_data_sizes
from fedcohort.selection.drawn import DrawnSelector
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.state import Bounds

SMALLEST_NORM = 1e-6  # beside the longest: whoever did not move the model keeps a probability


class OptimalSampling(DrawnSelector):
    """Ask in proportion to data size x length of the last known update.

    A client that joins has the mean data size and was never heard of.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        data_sizes: Number of samples of each client, shape [K] or [..., K].
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.

    Attributes:
        norms: Length of the update that arrived last, inf for never, shape [..., K].

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = OptimalSampling(4, 2, data_sizes=[10, 20, 30, 40], rng=0)
        >>> selector.inclusion(0).round(3).tolist()
        [0.2, 0.4, 0.6, 0.8]
    """

    needs_norms = True
    needs_data_sizes = True
    client_arrays = ("data_sizes", "norms")
    array_bounds: ClassVar[Bounds] = {"data_sizes": SIZES, "norms": (0.0, np.inf)}
    newcomer_values: ClassVar[dict[str, float]] = {"norms": np.inf}

    def __init__(
        self, num_clients: int, cohort_size: int, *, data_sizes: npt.ArrayLike, rng: RngLike
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.data_sizes = check_data_sizes(data_sizes, self.shape)
        self.norms: Floats = np.full(self.shape, np.inf)

    def allocate(self, round: int, size: int, present: Bools | None) -> Allocation:
        """Return probabilities in proportion to size x length, capped at 1."""
        is_known = np.isfinite(self.norms)
        longest = np.max(self.norms, axis=-1, keepdims=True, where=is_known, initial=0.0)
        longest = np.where(longest > 0, longest, 1.0)

        norms = np.where(is_known, self.norms, longest)
        norms = np.maximum(norms, SMALLEST_NORM * longest)
        return allocate_present(np.log(self.data_sizes) + np.log(norms), size, present)

    def learn(self, outcome: Outcome) -> None:
        """Remember the lengths that arrived."""
        clients = outcome.cohort.clients
        before = pick(self.norms, clients)
        place(self.norms, clients, np.where(outcome.success > 0, np.asarray(outcome.norm), before))
