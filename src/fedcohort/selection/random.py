"""Random: every available client with the same probability, as in FedAvg and FedProx.

In small federations every client draws a number, and the k smallest are asked. In large ones the
cohort is the beginning of a shuffle that goes no further than k clients: a round costs O(k).
"""

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.rng import Rng
from fedcohort.selection.availability import count_present, smallest
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.large import LARGE

FEWEST_PER_DRAWN = 10  # clients per client drawn, from which the shuffle is partial


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
    num_clients = shape[-1]
    if present is None and num_clients >= max(LARGE, FEWEST_PER_DRAWN * size):
        draws = rng.random((*shape[:-1], size))
        return np.apply_along_axis(partial_shuffle, -1, draws, num_clients)
    keys = rng.random(shape)
    return smallest(keys, size, present)


def partial_shuffle(draws: Floats, num_clients: int) -> Ints:
    """Return the first n places of a shuffle of all clients, in O(n).

    It is the shuffle of Fisher and Yates, stopped after n exchanges: place i gets what stands at a
    random place from i on. Only the places that were exchanged are kept in memory.

    Args:
        draws: One uniform number for each place, shape [n].
        num_clients: Number of clients, K.

    Returns:
        Distinct client ids, shape [n].

    Examples:
        >>> partial_shuffle(np.array([0.5, 0.0, 0.99]), 4).tolist()  # of 2103, 2103, 2130
        [2, 1, 3]
    """
    first = np.arange(draws.size)
    partners = first + (draws * (num_clients - first)).astype(np.int64)
    exchanged: dict[int, int] = {}
    clients = np.empty(draws.size, dtype=np.int64)
    for place, partner in enumerate(partners.tolist()):
        clients[place] = exchanged.get(partner, partner)
        exchanged[partner] = exchanged.get(place, place)
    return clients
