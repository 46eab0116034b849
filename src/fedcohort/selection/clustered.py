"""Clustered sampling by data size: one client out of each of k bins of equal data.

The clients, largest first, are laid end to end by their data and cut into k bins of equal length;
each bin gives one client, in proportion to its length in the bin. So a client is asked with
probability k times its share of the data, and never two that lie in one bin alone: the cohort's
data vary less than with independent draws.

This is the authors' first algorithm but for one thing: there, a client across the border of two
bins can be drawn in both, and the cohort shrinks. Here it is drawn in one of them at most, by the
sequential pivotal method, which keeps all probabilities. A client that would fill more than a bin
is asked for certain, and the others share the other bins.

The data never change. So the bins are laid out once, with a pass over all clients, and a round in
which everyone is available takes O(k log K).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick
from fedcohort.rng import RngLike
from fedcohort.selection.allocation import Allocation, allocate_present
from fedcohort.selection.data_sizes import SIZES, check_data_sizes
from fedcohort.selection.drawn import DrawnSelector
from fedcohort.selection.pivotal_lines import PivotalLines
from fedcohort.selection.sampling import lay_lines
from fedcohort.selection.state import Bounds


class ClusteredSampling(DrawnSelector):
    """Ask one client out of each of k bins of equal data; learn nothing.

    A client that joins gets the mean data size of the others.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        data_sizes: Number of samples of each client, shape [K] or [..., K].
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.

    Attributes:
        data_sizes: Number of samples of each client, shape [..., K]. Assign a new array to change
            them, because the bins are kept.

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
        self._bins: _Bins | None = None

    def allocate(self, round: int, size: int, present: Bools | None) -> Allocation:
        """Return probabilities in proportion to the data, capped at 1."""
        return allocate_present(np.log(self.data_sizes), size, present)

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Draw one client per bin, from the bins of an earlier round if they are the same."""
        if present is not None:
            bins = self._make_bins(round, size, present)
        elif self._bins is None or self._bins.data_sizes is not self.data_sizes:
            self._bins = bins = self._make_bins(round, size, None)
        else:
            bins = self._bins
        clients = np.sort(pick(bins.largest_first, bins.lines.draw(self.rng)), axis=-1)
        return clients, pick(bins.inclusion, clients)

    def _make_bins(self, round: int, size: int, present: Bools | None) -> "_Bins":
        """Lay out the clients, the largest in the first bins."""
        inclusion = self.allocate(round, size, present).inclusion
        largest_first = np.argsort(-self.data_sizes, axis=-1, kind="stable")
        lines = lay_lines(pick(inclusion, largest_first), size)
        return _Bins(self.data_sizes, inclusion, largest_first, lines)


@dataclass(frozen=True, eq=False)
class _Bins:
    """The clients of all runs in bins."""

    data_sizes: Floats  # [..., K], to notice others
    inclusion: Floats  # [..., K]
    largest_first: Ints  # [..., K] ids
    lines: PivotalLines  # of positions in largest_first
