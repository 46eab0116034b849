"""REFL's priority: of the clients that are available, ask first those that seldom are.

Whoever is seldom there is asked when it is, and those that are often there can wait. The
authors' clients predict whether they are available in the next rounds; here the server counts.
A round whose available clients are known counts for everyone: available or not. Where nobody
knows who is available, a round counts for the clients asked, and an update that arrived counts
as available. REFL's weights of stale updates are no part of the selection.
"""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick, place
from fedcohort.rng import RngLike
from fedcohort.selection.availability import highest
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.protocol import Cohort, Outcome
from fedcohort.selection.state import COUNT, Bounds, check_present


class REFL(BaseSelector):
    """Ask the available clients with the lowest estimated availability.

    Chance only breaks ties, so inclusion is 1.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.

    Attributes:
        trials: Number of rounds that tell of each client, shape [..., K].
        times_there: In how many of them it was available, shape [..., K].

    Raises:
        ValueError: If a size is out of bounds.

    Examples:
        >>> selector = REFL(3, 1, rng=0)
        >>> cohort = selector.select(0, available=[0, 1])
        >>> selector.update(Outcome(cohort, success=[1]))
        >>> selector.availability().round(2).tolist()
        [0.67, 0.67, 0.33]
        >>> selector.select(1).clients
        array([2])
    """

    client_arrays = ("trials", "times_there")
    array_bounds: ClassVar[Bounds] = {"trials": COUNT, "times_there": COUNT}
    newcomer_values: ClassVar[dict[str, float]] = {"trials": 0.0, "times_there": 0.0}
    in_flight = ("present",)
    present: Bools | None

    def __init__(self, num_clients: int, cohort_size: int, *, rng: RngLike) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.trials: Floats = np.zeros(self.shape)
        self.times_there: Floats = np.zeros(self.shape)

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Take the lowest estimates."""
        self.present = present
        clients = highest(-self.availability(), size, present, self.rng)
        return clients, np.ones(clients.shape)

    def availability(self) -> Floats:
        """Return the estimate of every client [..., K]; 1/2 while nothing is known of it."""
        return (self.times_there + 1) / (self.trials + 2)

    def learn(self, outcome: Outcome) -> None:
        """Count who was there, if that is known; otherwise count who answered."""
        if self.present is not None:
            self.trials = self.trials + 1
            self.times_there = self.times_there + self.present
            return
        clients = outcome.cohort.clients
        place(self.trials, clients, pick(self.trials, clients) + outcome.observed)
        place(self.times_there, clients, pick(self.times_there, clients) + outcome.success)

    def check_in_flight(
        self, cohort: Cohort, in_flight: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
    ) -> None:
        """Refuse a mask that does not fit the clients asked."""
        check_present(self, in_flight["present"], cohort)
