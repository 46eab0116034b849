"""How many clients to ask for the answers needed, and whether to stop waiting early."""

from dataclasses import dataclass
from math import nan

import numpy as np

from fedcohort.advice.durations import Durations
from fedcohort.advice.log import FederationLog
from fedcohort.advice.special_functions import normal_quantile
from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.early_stop import stop_margin

CONFIDENCE = 0.9  # share of the rounds that must have enough answers
SAVING = 0.05  # share of the seconds that closing early must save
SLOW_SHARE = 0.8  # share of their answers that slow clients must keep if rounds close early


@dataclass(frozen=True)
class CohortAdvice:
    """How many clients to ask.

    Attributes:
        needed: Answers per round that are wanted; if nobody said so, about the present mean.
        present: Clients asked per round now.
        enough_now: Share of the recorded rounds that had as many answers.
        ask: Clients to ask, so that nine of ten rounds have enough; None if all do not suffice.
        wasted: Answers per round beyond those needed, on average.
        seconds_now: Seconds of a round that asks so many and waits for all until the deadline.
        seconds_early: Seconds of a round that asks as many and closes with enough answers.
        slow_now: Share of the answers that come from the slower half, waiting for all.
        slow_early: The same if rounds close with enough answers.
        deadline: Deadline in seconds that all but `enough_now` holds for; None if it is unknown.
        is_wanted: Whether somebody said how many answers are wanted. If not, the recommendation is
            to go on as now.
    """

    needed: int
    present: int
    enough_now: float
    ask: int | None
    wasted: float
    seconds_now: float = nan
    seconds_early: float = nan
    slow_now: float = nan
    slow_early: float = nan
    deadline: float | None = None
    is_wanted: bool = False

    @property
    def recommended(self) -> int | None:
        """Clients to ask per round; None for all, which do not suffice."""
        return self.ask if self.is_wanted else self.present

    @property
    def saves_time(self) -> bool:
        """Whether closing with enough answers saves at least 5 % of the seconds."""
        return self.seconds_early < (1 - SAVING) * self.seconds_now

    @property
    def enough(self) -> int | None:
        """Answers at which a round should close; None if it should wait for everyone.

        It should close early if that saves time, and slow clients keep four fifths of their share
        of the answers.
        """
        keeps_slow = self.slow_early >= SLOW_SHARE * self.slow_now
        return self.needed if self.is_wanted and self.saves_time and keeps_slow else None


def advise_cohort(
    log: FederationLog,
    world: Bools,
    durations: Durations | None,
    rng: np.random.Generator,
    needed: int | None = None,
    deadline: float | None = None,
) -> CohortAdvice:
    """Return how many clients to ask.

    Args:
        log: The log.
        world: Who would answer in time in the fitted world, with the given deadline [T, S, K].
        durations: How long answers take; None if it is unknown.
        rng: Source of randomness.
        needed: Answers per round that are wanted; by default as many as now, on average.
        deadline: The deadline from now on in seconds; None if it is unknown.
    """
    wanted = needed or max(1, round(float(log.arrived_in_round.mean())))
    enough_now = float((log.arrived_in_round >= wanted).mean())
    rows = world.reshape(-1, world.shape[-1])
    if len(rows) > 2000:
        rows = rows[rng.choice(len(rows), size=2000, replace=False)]
    order = rng.random(rows.shape).argsort(axis=1)
    in_order = np.take_along_axis(rows, order, axis=1)
    answers = in_order.cumsum(axis=1)
    has_enough = answers >= wanted
    sizes = np.where(has_enough.any(axis=1), has_enough.argmax(axis=1) + 1, log.num_clients + 1)
    ask = int(np.quantile(sizes, CONFIDENCE, method="higher"))
    if ask > log.num_clients:
        return CohortAdvice(
            wanted,
            log.cohort,
            enough_now,
            ask=None,
            wasted=nan,
            deadline=deadline,
            is_wanted=needed is not None,
        )
    wasted = float(np.maximum(answers[:, ask - 1] - wanted, 0).mean())
    if durations is None or deadline is None:
        return CohortAdvice(
            wanted,
            log.cohort,
            enough_now,
            ask,
            wasted,
            deadline=deadline,
            is_wanted=needed is not None,
        )

    asked = order[:, :ask]
    limit = deadline - float(stop_margin(deadline, log.grace))
    times = np.where(in_order[:, :ask], _times_before(durations, asked, limit, rng), np.inf)
    closing = np.minimum(np.sort(times, axis=1)[:, wanted - 1], deadline)
    is_slow = durations.log_median > np.median(durations.log_median)
    early = times <= closing[:, None]
    return CohortAdvice(
        needed=wanted,
        present=log.cohort,
        enough_now=enough_now,
        ask=ask,
        wasted=wasted,
        seconds_now=float(np.minimum(times.max(axis=1), deadline).mean()),
        seconds_early=float(closing.mean()),
        slow_now=_share(np.isfinite(times), is_slow[asked]),
        slow_early=_share(early, is_slow[asked]),
        deadline=deadline,
        is_wanted=needed is not None,
    )


def _times_before(
    durations: Durations, clients: Ints, limit: float, rng: np.random.Generator
) -> Floats:
    """Return times of answers that come before a limit, one for each client that is named."""
    in_time = 1 - durations.tail(limit)
    scores = normal_quantile(rng.random(clients.shape) * in_time[clients])
    times = np.exp(durations.log_median[clients] + durations.spread * scores)
    return np.asarray(np.minimum(times, limit))


def _share(arrived: Bools, is_slow: Bools) -> float:
    return float((arrived & is_slow).sum() / max(1, arrived.sum()))
