"""F3AST: ask those whose rate of being asked lags most behind their share of the data.

    omega_i share of the data, r_i rate at which client i is asked, beta memory

Of the available clients, the k with the largest omega_i / r_i are asked. Then every rate moves,
r <- (1 - beta) r + beta 1{asked}, and an update counts omega_i / r_i, so that each client counts
by its share in the long run, however rarely it is available.

The rates start where the scheme wants them in the long run: in proportion to the shares, capped
at 1, with the sum k. The authors' code starts at r = omega, which gives the same order of clients
but makes the first steps k times too long.

A round passes over all clients: the rate of everyone changes, and everyone draws a number that
breaks ties, which decides the cohorts that a seed gives.
"""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick, place
from fedcohort.checks import check_range
from fedcohort.rng import RngLike
from fedcohort.selection.allocation import allocate
from fedcohort.selection.availability import highest
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.data_sizes import SIZES, check_data_sizes
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.state import Bounds

SMALLEST_RATE = 1e-300  # of a client that is away for thousands of rounds


class F3AST(BaseSelector):
    """Ask the clients whose rate of being asked lags most behind their data.

    Chance only breaks ties, so inclusion is 1; the cohort's weights are the inverse rates.
    A client that joins gets the mean data size and the mean rate of the others.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        data_sizes: Number of samples of each client, shape [K] or [..., K].
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        memory: Weight of the latest round in the rates, beta, in (0, 1].

    Attributes:
        rates: Rate at which each client is asked, shape [..., K].

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = F3AST(4, 2, data_sizes=[10, 10, 30, 30], rng=0)
        >>> selector.rates.round(6).tolist()
        [0.25, 0.25, 0.75, 0.75]
        >>> cohort = selector.select(0, available=[0, 1])
        >>> cohort.weights.round(2).tolist()
        [3.88, 3.88]
    """

    needs_data_sizes = True
    client_arrays = ("data_sizes", "rates")
    array_bounds: ClassVar[Bounds] = {"data_sizes": SIZES, "rates": (SMALLEST_RATE, 1.0)}

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        data_sizes: npt.ArrayLike,
        rng: RngLike,
        memory: float = 0.01,
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.memory = check_range("memory", memory, np.nextafter(0.0, 1.0), 1.0)
        self.data_sizes = check_data_sizes(data_sizes, self.shape)
        self.rates: Floats = allocate(np.log(self.data_sizes), cohort_size).inclusion

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Take the largest omega / r; the sum of the sizes changes no order."""
        lag = np.log(self.data_sizes) - np.log(self.rates)
        lag = np.round(lag, 9)  # clients that tie but for rounding tie
        clients = highest(lag, size, present, self.rng)
        return clients, np.ones(clients.shape)

    def weigh(self, clients: Ints) -> Floats:
        """Return 1 / r with the rates after this round, which are at least beta."""
        before = pick(self.rates, clients)
        return 1 / ((1 - self.memory) * before + self.memory)

    def learn(self, outcome: Outcome) -> None:
        """Move the rates, whether an update arrived or not; skip a round with nobody there."""
        clients = outcome.cohort.clients
        if not clients.size:
            return
        rates = np.maximum((1 - self.memory) * self.rates, SMALLEST_RATE)
        place(rates, clients, (1 - self.memory) * pick(self.rates, clients) + self.memory)
        self.rates = rates
