"""Random candidates, of which pow-d, rpow-d and FedCS by time take the best."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints, pick
from fedcohort.checks import check_int
from fedcohort.rng import Rng
from fedcohort.selection.availability import count_present
from fedcohort.selection.random import draw_uniformly


class _Ranking(Protocol):
    """A selector that ranks random candidates; `candidates` is None for 2.5 k."""

    num_clients: int
    cohort_size: int
    candidates: int | None
    rng: Rng

    @property
    def shape(self) -> tuple[int, ...]: ...


def check_candidates(candidates: int | None, cohort_size: int, num_clients: int) -> int | None:
    """Refuse a number of candidates that is not between k and K; None stands for 2.5 k."""
    if candidates is None:
        return None
    return check_int("candidates", candidates, cohort_size, num_clients)


def choose_lowest(
    selector: _Ranking,
    size: int,
    present: Bools | None,
    cost_of: Callable[[Ints], Floats],
) -> tuple[Ints, Floats]:
    """Return the k of d random candidates with the lowest cost; the first drawn wins a tie.

    The paper does not state d. By default it is 2.5 k, which is 50 in the paper's setting, and
    fewer where fewer are present, the same number in all runs. It is worked out in every round,
    because clients may join.

    Args:
        selector: The scheme, with its sizes and its source of randomness.
        size: Number of clients to choose.
        present: Who may be asked, shape [..., K]; None for everyone.
        cost_of: Function that returns the costs of candidates [..., d]; inf is allowed.

    Returns:
        Client ids in ascending order and their chances of being a candidate, [..., size] each.
    """
    count = count_present(present, selector.num_clients)
    wanted = selector.candidates or -(-5 * selector.cohort_size // 2)
    num_candidates = min(wanted, int(count.min()))
    candidates = draw_uniformly(num_candidates, selector.shape, present, selector.rng)
    if not size:
        return candidates, np.empty(candidates.shape)

    lowest_first = np.argsort(cost_of(candidates), axis=-1, kind="stable")
    clients = np.sort(pick(candidates, lowest_first[..., :size]), axis=-1)
    inclusion = np.broadcast_to((num_candidates / count)[..., None], clients.shape)
    return clients, inclusion
