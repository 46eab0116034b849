"""FedCS as the paper plays it: it knows every success rate and always asks the k best."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.checks import check_array, check_choice, check_int
from fedcohort.rng import RngLike
from fedcohort.selection.base import BaseSelector

TIES = ("random", "order")


class FedCS(BaseSelector):
    """Ask the k available clients with the highest success rates.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        success_rates: True probability that each client answers, shape [K]; [S, K] for runs in
            lock-step that differ in it.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        ties: Who goes first among equal rates: "random", by lots drawn once, or "order",
            the lower id.

    Raises:
        ValueError: If a size or a rate is out of bounds.

    Examples:
        >>> selector = FedCS(4, 2, success_rates=[0.1, 0.9, 0.3, 0.6], rng=0)
        >>> selector.select(0).clients
        array([1, 3])
    """

    client_arrays = ("lots",)

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        success_rates: npt.ArrayLike,
        rng: RngLike,
        ties: str = "random",
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        shape = self.shape if np.ndim(success_rates) > 1 else (num_clients,)
        self.success_rates = check_array("success_rates", success_rates, shape, 0.0, 1.0)
        self.ties = check_choice("ties", ties, TIES)
        self.lots = self._draw_lots(num_clients)

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Take the best rates. Chance has no part, so inclusion is 1."""
        rates = np.broadcast_to(self.success_rates, self.shape)
        if present is not None:
            rates = np.where(present, rates, -1.0)

        best_first = np.lexsort((self.lots, -rates), axis=-1)
        clients = np.sort(best_first[..., :size], axis=-1)
        return clients, np.ones(clients.shape)

    def join(self, count: int = 1, success_rates: npt.ArrayLike | None = None) -> None:
        """Add clients at the end; their success rates must be given too.

        Args:
            count: Number of clients that join.
            success_rates: Their success rates, shape [count].

        Raises:
            ValueError: If the rates are missing or out of bounds.
        """
        count = check_int("count", count, 1)
        if success_rates is None:
            raise ValueError(
                f"success_rates must be given for the {count} clients that join FedCS, got None"
            )
        new_rates = check_array("success_rates", success_rates, (count,), 0.0, 1.0)
        super().join(count)
        new_rates = np.broadcast_to(new_rates, (*self.success_rates.shape[:-1], count))
        self.success_rates = np.concatenate([self.success_rates, new_rates], axis=-1)

    def newcomers(self, name: str, count: int) -> Floats:
        """Draw lots for the clients that join."""
        return self._draw_lots(count)

    def _draw_lots(self, count: int) -> Floats:
        """Return who goes first among equals [..., count]: the lower lot, then the lower id."""
        shape = (*self.batch, count)
        if self.ties == "random":
            return self.rng.random(shape).copy()
        return np.zeros(shape)
