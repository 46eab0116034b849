"""Clustered sampling by data size: one client out of each of k bins of equal data.

The clients, largest first, are laid end to end by their data and cut into k bins of equal length;
each bin gives one client, in proportion to its length in the bin. So a client is asked with
probability k times its share of the data, and never two that lie in one bin alone: the cohort's
data vary less than with independent draws.

This is the authors' first algorithm but for one thing: there, a client across the border of two
bins can be drawn in both, and the cohort shrinks. Here it is drawn in one of them at most, by the
sequential pivotal method, which keeps all probabilities. A client that would fill more than a bin
is asked for certain, and the others share the other bins.
"""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick
from fedcohort.rng import RngLike
from fedcohort.selection.allocation import Allocation, allocate_present
from fedcohort.selection.data_sizes import SIZES, check_data_sizes
from fedcohort.selection.drawn import DrawnSelector
from fedcohort.selection.sampling import pivotal
from fedcohort.selection.state import Bounds


class ClusteredSampling(DrawnSelector):
    """Ask one client out of each of k bins of equal data; learn nothing.

    A client that joins gets the mean data size of the others.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        data_sizes: Number of samples of each client, shape [K] or [..., K].
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = ClusteredSampling(4, 2, data_sizes=[30, 10, 20, 20], rng=0)
        >>> selector.inclusion(0).round(3).tolist()
        [0.75, 0.25, 0.5, 0.5]
    """

    needs_data_sizes = True
    client_arrays = ("data_sizes",)
    array_bounds: ClassVar[Bounds] = {"data_sizes": SIZES}

    def __init__(
        self, num_clients: int, cohort_size: int, *, data_sizes: npt.ArrayLike, rng: RngLike
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.data_sizes = check_data_sizes(data_sizes, self.shape)

    def allocate(self, round: int, size: int, present: Bools | None) -> Allocation:
        """Return probabilities in proportion to the data, capped at 1."""
        return allocate_present(np.log(self.data_sizes), size, present)

    def draw(self, inclusion: Floats, size: int) -> Ints:
        """Draw one client per bin, with the largest clients in the first bins."""
        largest_first = np.argsort(-self.data_sizes, axis=-1, kind="stable")
        places = pivotal(pick(inclusion, largest_first), self.rng, size)
        return np.sort(pick(largest_first, places), axis=-1)
