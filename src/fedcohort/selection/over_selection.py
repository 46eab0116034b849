"""Over-selection: ask more clients than needed and close the round when enough answered."""

from math import ceil

from fedcohort.checks import check_int, check_range
from fedcohort.rng import RngLike
from fedcohort.selection.random import Random

LARGEST_FACTOR = 1e6


class OverSelection(Random):
    """Ask c k clients drawn uniformly; the round closes with the k-th answer.

    Where a world only says who answers, all answers come in the same second, and all count.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of answers that are needed, k.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        factor: How many clients are asked per answer needed, c, at least 1.

    Attributes:
        cohort_size: Number of clients *asked* in each round: c k, rounded up, at most all.
        enough: Number of answers at which the round closes, k.

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = OverSelection(100, 20, rng=0)
        >>> selector.select(0).clients.shape, selector.enough
        ((26,), 20)
    """

    def __init__(
        self, num_clients: int, cohort_size: int, *, rng: RngLike, factor: float = 1.3
    ) -> None:
        check_int("num_clients", num_clients, 1)
        needed = check_int("cohort_size", cohort_size, 1, num_clients)
        factor = check_range("factor", factor, 1.0, LARGEST_FACTOR)
        asked = ceil(round(factor * needed, 9))  # 1.1 x 10 are 11, whatever the rounding
        super().__init__(num_clients, min(asked, num_clients), rng=rng)
        self.enough = needed
