"""Weights of one run that change for the clients asked, or for everyone alike.

A client's weight is scale * value + shift. The values lie in a tree of sums, so that neither a
draw nor an update passes over all clients. A factor or a summand for everyone changes `scale`
and `shift` alone.

Clients that are drawn for certain would drown the others in sums. They are held outside the tree:
always those, and only those, whose value lies above `limit`. So the state of a run is its values
and three numbers, whatever happened before.
"""

from math import ceil, inf

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.selection.allocation import slots, solve_log_cap
from fedcohort.selection.sampling import certain_slack
from fedcohort.selection.tree import SumTree
from fedcohort.selection.tree_draw import draw_pivotal

SMALLEST_VALUE = 1e-300  # 0 would be a place without a client
PASSES = 30  # in search of the cap; a spread that needs more is sorted
WATCH = 0.8  # of the cap: whoever is above is watched, because a falling cap may reach it
MOST_WATCHED = 4  # clients for each in the cohort


class LazyWeights:
    """Weights scale * value + shift of the clients of one run.

    Args:
        values: One value per client, shape [K]. All weights must be positive.
        scale: Factor of the values, above 0.
        shift: Weight that every client has beside it, at least 0.
        limit: Clients whose value lies above are held outside the tree.

    Attributes:
        tree: The values of all clients that are not held.
        held: Clients that are held, ascending.
        held_values: Their values.

    Examples:
        >>> weights = LazyWeights(np.array([1.0, 1.0, 1.0, 9.0]))
        >>> weights.settle(size=2, sigma=0.0)
        3.0
        >>> weights.held
        array([3])
    """

    def __init__(
        self, values: Floats, scale: float = 1.0, shift: float = 0.0, limit: float = inf
    ) -> None:
        self.num_clients = values.size
        self.scale = scale
        self.shift = shift
        self.limit = limit
        values = _nonzero(values)
        self.held: Ints = np.flatnonzero(values > limit)
        self.held_values = values[self.held]
        if self.held.size:
            values = values.copy()
            values[self.held] = 0.0
        self.tree = SumTree(values)
        self._watched: Ints
        self._watched_above: float
        self._stop_watching()

    def values(self) -> Floats:
        """Return the value of every client, [K]."""
        values = self.tree.values[: self.num_clients].copy()
        values[self.held] = self.held_values
        return values

    def values_at(self, clients: Ints) -> Floats:
        """Return the values of some clients."""
        values = self.tree.values.take(clients)
        is_held = values == 0
        values[is_held] = self.held_values[np.searchsorted(self.held, clients[is_held])]
        return values

    def weights_at(self, clients: Ints) -> Floats:
        """Return the weights of some clients."""
        return self.scale * self.values_at(clients) + self.shift

    def total(self) -> float:
        """Return the sum of all weights."""
        held = self.scale * self.held_values + self.shift
        return self.tree.total(self.scale, self.shift) + float(held.sum())

    def put(self, clients: Ints, values: Floats) -> None:
        """Set the values of some clients.

        Args:
            clients: Distinct client ids in ascending order, [n].
            values: Their new values, [n].
        """
        values = _nonzero(values)
        is_held = values > self.limit
        before = self.tree.values.take(clients)
        rises = (values > self._watched_above) & ~is_held
        rises &= (before <= self._watched_above) | (before == 0)
        self.tree.replace(clients, np.where(is_held, 0.0, values))
        self._watch(clients[rises], values[rises])
        if self.held.size or is_held.any():
            nearest = np.searchsorted(clients, self.held)
            stays = clients.take(nearest, mode="clip") != self.held
            self._set_held(
                np.append(self.held[stays], clients[is_held]),
                np.append(self.held_values[stays], values[is_held]),
            )

    def settle(self, size: int, sigma: float) -> float:
        """Find the weight cap theta, and hold the clients that are drawn for certain.

        Args:
            size: Number of clients to draw, k.
            sigma: Smallest inclusion probability.

        Returns:
            Theta; infinite if nobody can be capped (R = 0).
        """
        self._most_watched = MOST_WATCHED * size
        rho = slots(size, self.num_clients, sigma)
        if not rho:
            self._release(inf)
            return inf

        certain = 1 - certain_slack(size)
        cap = self._cap(rho)
        for _ in range(PASSES):
            found = self._find_above(cap * certain)
            if not found.size:
                break
            self._hold(found)
            cap = self._cap(rho)
        else:
            cap = self._cap_by_sorting(rho)
            self._hold(self._find_above(cap * certain))
        self._release((cap * certain - self.shift) / self.scale)
        return cap

    def draw(
        self, size: int, sigma: float, cap: float, draws: Floats, in_order: bool
    ) -> tuple[Ints, Floats]:
        """Draw a cohort with the probabilities that the cap gives.

        Args:
            size: Number of clients to draw, k.
            sigma: Smallest inclusion probability.
            cap: What `settle` returned.
            draws: Uniform numbers, as many as `draws_needed` says.
            in_order: Whether clients lie in the order of their ids (see `draw_pivotal`).

        Returns:
            Client ids [k] in ascending order and their inclusion probabilities [k].
        """
        if size == self.num_clients:
            return np.arange(size), np.ones(size)

        slope = (1 - sigma) * self.scale / cap
        base = (1 - sigma) * self.shift / cap + sigma
        if cap == inf:
            base = size / self.num_clients
        clients = self.held
        count = size - clients.size
        if count:
            drawn = draw_pivotal(self.tree, slope, base, count, draws, in_order)
            # Both parts are nearly sorted, and the stable sort is fast on those.
            clients = np.sort(np.append(clients, drawn), kind="stable")
        values = self.tree.values.take(clients)
        inclusion = np.where(values == 0, 1.0, slope * values + base)  # 0: held, and certain
        return clients, inclusion

    def _cap(self, rho: float) -> float:
        """Return the cap if nobody in the tree is capped: it is too high if somebody is.

        With m of the held clients capped, theta_m is the weight of all others over rho - m, and
        theta is the smallest of them (see `allocation`).
        """
        ascending = np.sort(self.scale * self.held_values + self.shift)
        sums = np.append(0.0, np.cumsum(ascending)) + self.tree.total(self.scale, self.shift)
        num_capped = np.arange(ascending.size, -1, -1)
        possible = num_capped < ceil(rho)
        return float((sums[possible] / (rho - num_capped[possible])).min())

    def _cap_by_sorting(self, rho: float) -> float:
        logs = np.log(self.scale * self.values() + self.shift)
        return float(np.exp(solve_log_cap(logs, rho)))

    def _find_above(self, weight: float) -> Ints:
        """Return the clients in the tree whose weight lies above this one.

        The limit falls to it. The tree is searched only where those watched may not be all.
        """
        limit = (weight - self.shift) / self.scale
        if limit >= self.limit:
            return np.empty(0, dtype=np.int64)
        self.limit = limit
        if limit < self._watched_above:
            self._watched = self.tree.above(WATCH * weight, self.scale, self.shift)
            self._watched_above = (WATCH * weight - self.shift) / self.scale
        values = self.tree.values.take(self._watched)
        is_above = (values > limit) & (values != 0)  # 0: held already
        return np.unique(self._watched[is_above])

    def _hold(self, clients: Ints) -> None:
        values = self.tree.values.take(clients)
        self.tree.replace(clients, np.zeros(clients.size))
        self._set_held(np.append(self.held, clients), np.append(self.held_values, values))

    def _release(self, limit: float) -> None:
        """Raise the limit, and put back into the tree who is not above it."""
        self.limit = limit
        returns = self.held_values <= limit
        if returns.any():
            clients = self.held[returns]
            values = self.held_values[returns]
            self.tree.replace(clients, values)
            self._watch(clients, values)
            self._set_held(self.held[~returns], self.held_values[~returns])

    def _set_held(self, clients: Ints, values: Floats) -> None:
        ascending = np.argsort(clients)
        self.held = clients[ascending]
        self.held_values = values[ascending]

    def _watch(self, clients: Ints, values: Floats) -> None:
        """Watch those among these clients who came near the cap."""
        risen = clients[values > self._watched_above]
        self._watched = np.append(self._watched, risen)
        if self._watched.size > self._most_watched:
            self._watched = np.unique(self._watched)
        if self._watched.size > self._most_watched:
            self._stop_watching()

    def _stop_watching(self) -> None:
        self._watched = np.empty(0, dtype=np.int64)
        self._watched_above = inf
        self._most_watched = 0


def _nonzero(values: Floats) -> Floats:
    return np.where(values == 0, SMALLEST_VALUE, values)
