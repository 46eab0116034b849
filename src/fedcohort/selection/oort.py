"""Oort: ask clients whose data are useful and who are quick, and explore the others.

    U_i utility, t_i seconds of client i, T preferred seconds, t round counted from 1,
    L_i last round in which client i was heard, eps share of the cohort that explores

A client that was heard of has the utility of its data, size x loss, cut at the 95 % quantile and
scaled to [0, 1], plus sqrt(0.1 ln t / L_i). A client that takes t_i > T seconds has
(T / t_i)^2 of it. Most of the cohort, 1 - eps, is drawn in proportion to the utilities of those
that reach 95 % of the last one that would fit in; the rest among clients never heard of, in
proportion to their data size and the same penalty, as far as their seconds are known. eps falls
from 0.9 by 2 % per round to 0.3. T is the 30 % quantile of the seconds; the pacer adds 5 points
whenever the utility heard of in 20 rounds is not a tenth above that of the 20 rounds before.

Where we leave the authors' code: utility uses the mean loss that a client reports, because the
server does not see the losses of samples, whose root mean square Oort uses. The draw has exact
inclusion probabilities, where Oort draws one client after the other; so eps holds in the mean.
The pacer also relaxes where the utility falls. Oort asks 1.3 k; `over-selection` shows how.
"""

from math import log
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, pick, place
from fedcohort.checks import LARGEST_FLOAT, check_range
from fedcohort.rng import RngLike
from fedcohort.selection.allocation import Allocation, allocate_among
from fedcohort.selection.data_sizes import SIZES, check_data_sizes
from fedcohort.selection.drawn import DrawnSelector
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.state import AMOUNT, COUNT, Bounds

EXPLORATION, EXPLORATION_DECAY, LEAST_EXPLORATION = 0.9, 0.98, 0.3
CLIP_QUANTILE = 0.95
CUT_OFF = 0.95  # of the utility of the last client that would fit in
PACER_ROUNDS, PACER_STEP = 20, 5.0  # rounds per window, points of the quantile
FLAT = 1.1  # utility of a window over that of the last one, up to which it did not grow
LARGEST_LOSS = 1e100  # a larger one counts as this, so that no product or sum becomes infinite
SMALLEST_UTILITY = 1e-12  # the least useful of all still has a probability


class Oort(DrawnSelector):
    """Ask useful and quick clients, in proportion to their utility, and explore the rest.

    A client that joins has the mean data size and was never heard of.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        data_sizes: Number of samples of each client, shape [K] or [..., K].
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        penalty: Exponent of the time penalty.
        percent: Quantile of the seconds that is the preferred duration at first, in percent.

    Attributes:
        losses: Loss that each client reported last; inf if never heard of. Shape [..., K].
        last_rounds: Round, counted from 1, in which it was heard of last, shape [..., K].
        seconds: How long the server waited for it the last time; 0 if never, shape [..., K].
        pace: Quantile of the seconds that is preferred now, in percent, shape [...].

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = Oort(100, 20, data_sizes=np.full(100, 50), rng=0)
        >>> cohort = selector.select(0)
        >>> selector.update(
        ...     Outcome(cohort, np.ones(20), loss=np.ones(20), seconds=np.ones(20))
        ... )
        >>> float(selector.inclusion(1).sum().round(6))
        20.0
    """

    needs_losses = True
    needs_seconds = True
    needs_data_sizes = True
    client_arrays = ("data_sizes", "losses", "last_rounds", "seconds")
    run_arrays = ("pace", "utility", "utility_before", "rounds_in_window")
    newcomer_values: ClassVar[dict[str, float]] = {
        "losses": np.inf,
        "last_rounds": 1.0,
        "seconds": 0.0,
    }
    array_bounds: ClassVar[Bounds] = {
        "data_sizes": SIZES,
        "losses": (-LARGEST_FLOAT, np.inf),
        "last_rounds": (1.0, COUNT[1]),
        "seconds": AMOUNT,
        "pace": (0.0, 100.0),
        "utility": (-LARGEST_FLOAT, LARGEST_FLOAT),
        "utility_before": (-LARGEST_FLOAT, LARGEST_FLOAT),
        "rounds_in_window": (0.0, float(PACER_ROUNDS)),
    }

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        data_sizes: npt.ArrayLike,
        rng: RngLike,
        penalty: float = 2.0,
        percent: float = 30.0,
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.penalty = check_range("penalty", penalty, 0.0, 100.0)
        self.data_sizes = check_data_sizes(data_sizes, self.shape)
        self.losses: Floats = np.full(self.shape, np.inf)
        self.last_rounds: Floats = np.ones(self.shape)
        self.seconds: Floats = np.zeros(self.shape)

        self.pace: Floats = np.full(self.batch, check_range("percent", percent, 0.0, 100.0))
        self.utility: Floats = np.zeros(self.batch)
        self.utility_before: Floats = np.zeros(self.batch)
        self.rounds_in_window: Floats = np.zeros(self.batch)

    def allocate(self, round: int, size: int, present: Bools | None) -> Allocation:
        """Return the probabilities of those heard of and of those to explore."""
        is_known = np.isfinite(self.losses)
        is_new = ~is_known
        if present is not None:
            is_known &= present
            is_new &= present
        known = is_known.sum(axis=-1)
        new = is_new.sum(axis=-1)

        # 1. How many of the cohort are heard of, as far as there are enough of both.
        exploration = max(EXPLORATION * EXPLORATION_DECAY**round, LEAST_EXPLORATION)
        wanted = int((1 - exploration) * size + 1e-9)  # a tenth of 10 is 1, whatever the rounding
        exploiting = np.minimum(np.maximum(wanted, size - new), known)

        # 2. Those heard of share by utility, if they come close to the last one that fits in.
        utility = np.where(is_known, self.utilities(round), -np.inf)
        best_first = -np.sort(-utility, axis=-1)
        last = pick(best_first, np.maximum(exploiting - 1, 0)[..., None])
        is_admitted = is_known & (utility >= CUT_OFF * last)
        log_utility = np.log(np.maximum(utility, SMALLEST_UTILITY))
        floors = np.zeros(self.batch)
        exploit = allocate_among(is_admitted, log_utility, exploiting, floors)

        # 3. Those never heard of share by data size, less what slow ones lose.
        log_size = np.log(self.data_sizes * self._time_factor())
        explore = allocate_among(is_new, log_size, np.asarray(size - exploiting), floors)
        return Allocation(
            exploit.inclusion + explore.inclusion,
            exploit.capped | explore.capped,
            exploit.log_cap,
        )

    def utilities(self, round: int) -> Floats:
        """Return the utility of every client that was heard of, [..., K]; 0 for the others."""
        is_known = np.isfinite(self.losses)
        raw = _data_utility(self.data_sizes, np.where(is_known, self.losses, 0.0))
        top = _quantile(raw, is_known, CLIP_QUANTILE)
        low = _quantile(raw, is_known, 0.0)
        span = np.maximum(top - low, SMALLEST_UTILITY)

        useful = (np.minimum(raw, top) - low) / span
        neglected = np.sqrt(0.1 * log(round + 1) / self.last_rounds)
        return np.where(is_known, (useful + neglected) * self._time_factor(), 0.0)

    def preferred_seconds(self) -> Floats:
        """Return T, [..., 1]: a quantile of the seconds of clients heard of; 0 without any."""
        return _quantile(self.seconds, np.isfinite(self.losses), self.pace[..., None] / 100)

    def learn(self, outcome: Outcome) -> None:
        """Remember losses and seconds, and set the pace; skip a round with nobody there."""
        clients = outcome.cohort.clients
        if not clients.size:
            return
        is_heard = outcome.success > 0
        loss = np.where(is_heard, np.asarray(outcome.loss), pick(self.losses, clients))
        last = np.where(is_heard, outcome.cohort.round + 1.0, pick(self.last_rounds, clients))
        place(self.losses, clients, loss)
        place(self.last_rounds, clients, last)
        # Of a client that was not waited for, the seconds are a lower bound.
        waited = np.asarray(outcome.seconds)
        at_least = np.maximum(waited, pick(self.seconds, clients))
        place(self.seconds, clients, np.where(outcome.observed, waited, at_least))

        sizes = pick(self.data_sizes, clients)
        gained = np.where(is_heard, _data_utility(sizes, loss), 0.0)
        self._set_pace(gained.sum(axis=-1))

    def _time_factor(self) -> Floats:
        """Return (T / t)^penalty where a client takes longer than T, else 1, [..., K]."""
        preferred = self.preferred_seconds()
        is_slow = (self.seconds > preferred) & (preferred > 0)
        ratio = np.divide(preferred, self.seconds, out=np.ones(self.shape), where=is_slow)
        return np.maximum(ratio**self.penalty, SMALLEST_UTILITY)

    def _set_pace(self, gained: Floats) -> None:
        """Allow slower clients if a window of rounds gained no more utility than the last."""
        self.utility = np.asarray(self.utility + gained)
        self.rounds_in_window = np.asarray(self.rounds_in_window + 1)
        is_full = self.rounds_in_window >= PACER_ROUNDS
        is_flat = is_full & (self.utility <= FLAT * self.utility_before)

        self.pace = np.asarray(
            np.where(is_flat, np.minimum(self.pace + PACER_STEP, 100), self.pace)
        )
        self.utility_before = np.asarray(np.where(is_full, self.utility, self.utility_before))
        self.utility = np.asarray(np.where(is_full, 0.0, self.utility))
        self.rounds_in_window = np.asarray(np.where(is_full, 0.0, self.rounds_in_window))


def _data_utility(sizes: Floats, losses: Floats) -> Floats:
    """Return size x loss, finite whatever loss a client reports."""
    return np.asarray(sizes * np.clip(losses, -LARGEST_LOSS, LARGEST_LOSS))


def _quantile(values: Floats, is_known: Bools, fraction: float | Floats) -> Floats:
    """Return a quantile of the known values of each row, [..., 1]; 0 where none is known."""
    ascending = np.sort(np.where(is_known, values, np.inf), axis=-1)
    count = is_known.sum(axis=-1, keepdims=True)
    rank = np.minimum((np.asarray(fraction) * count).astype(np.int64), count - 1)
    found = pick(ascending, np.maximum(rank, 0))
    return np.where(count > 0, found, 0.0)
