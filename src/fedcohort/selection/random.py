"""Random: every available client with the same probability, as in FedAvg and FedProx.

Every client draws a number, and the k smallest are asked. So a round passes over everyone, where
O(k) would do: these numbers decide which cohorts a seed gives, and seeds keep their cohorts.
"""

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.rng import Rng
from fedcohort.selection.availability import count_present, smallest
from fedcohort.selection.base import BaseSelector


class Random(BaseSelector):
    """Ask k clients drawn uniformly; learn nothing.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.

    Raises:
        ValueError: If a size is out of bounds.

    Examples:
        >>> selector = Random(100, 20, rng=0)
        >>> cohort = selector.select(0)
        >>> cohort.clients.shape
        (20,)
        >>> float(cohort.inclusion[0])
        0.2
    """

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Draw the cohort. Everyone has the same chance, k divided by those present."""
        drawn = draw_uniformly(size, self.shape, present, self.rng)
        clients = np.sort(drawn, axis=-1)

        count = np.maximum(count_present(present, self.num_clients), 1)
        inclusion = np.broadcast_to((size / count)[..., None], clients.shape)
        return clients, inclusion


def draw_uniformly(size: int, shape: tuple[int, ...], present: Bools | None, rng: Rng) -> Ints:
    """Return distinct clients among those present, all equally likely, in random order.

    Args:
        size: Number of clients to draw, at most as many as are present.
        shape: Shape [..., K] of an array with one value per client.
        present: Who may be drawn, shape [..., K]; None for everyone.
        rng: Source of randomness.

    Returns:
        Client ids, shape [..., size].
    """
    keys = rng.random(shape)
    return smallest(keys, size, present)
