"""What schemes share that draw their cohort with exact inclusion probabilities.

Such a scheme says the probabilities of all clients (`allocate`) and, if it learns, `learn`.
"""

import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick
from fedcohort.selection.allocation import Allocation
from fedcohort.selection.availability import present_mask, reachable_size
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.sampling import systematic


class DrawnSelector(BaseSelector):
    """Draw the cohort with the probabilities that a scheme allocates.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
    """

    has_inclusion = True

    def allocate(self, round: int, size: int, present: Bools | None) -> Allocation:
        """Return the inclusion probabilities [..., K]; every such scheme implements this.

        Args:
            round: The round, counted from 0.
            size: Number of clients to choose, which the probabilities sum to; it may be 0.
            present: Who may be asked, shape [..., K]; None for everyone. The others get 0.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement allocate")

    def draw(self, inclusion: Floats, size: int) -> Ints:
        """Return clients in ascending order, each with its probability; always `size`."""
        return systematic(inclusion, self.rng, size)

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Draw with the allocated probabilities."""
        inclusion = self.allocate(round, size, present).inclusion
        clients = self.draw(inclusion, size)
        return clients, pick(inclusion, clients)

    def allocation(self, round: int, available: npt.ArrayLike | None = None) -> Allocation:
        """Return every client's inclusion probability without a draw.

        Args:
            round: The round, counted from 0.
            available: Who may be asked, as for `select`; the others get 0.
        """
        present = present_mask(available, self.num_clients, self.batch)
        return self.allocate(round, reachable_size(self.cohort_size, present), present)
