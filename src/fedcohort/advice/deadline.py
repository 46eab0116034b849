"""The deadline: what a longer or shorter one gets, and what it costs.

The recorded rounds are played again with other deadlines. A round ends with its last answer, or at
the deadline if one is missing. Answers that came too late in the log are drawn from what may be
true of them. The best deadline gets the most answers per second among those that keep a given share
of the answers; a shorter one would only leave out the slow clients. Where clients stop shortly
before the deadline, answers must come until then.

How sure that is comes from worlds of two kinds: resamples of the recorded rounds, and rounds whose
times are all drawn from the fitted model. Every world has a best deadline of its own. Among the
deadlines that keep the given share by our estimate, the recommended one loses least against these
on average.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.deadline_play import (
    POINTS,
    complete_times,
    deadline_grid,
    play_deadlines,
    play_fitted,
    play_now,
    round_overhead,
    stops_at,
)
from fedcohort.advice.durations import Durations, fit_durations
from fedcohort.advice.estimates import (
    UNKNOWN,
    Interval,
    bootstrap_weights,
    from_draws,
    more_rounds,
)
from fedcohort.advice.log import FederationLog
from fedcohort.advice.unseen import draw_durations
from fedcohort.arrays import Floats
from fedcohort.early_stop import stop_margin

DRAWS = 120
KEEP = 0.9
TOLERANCE = 0.05  # what a recommendation may lose against the best
TINY = 1e-9
RISK = 0.03  # the largest chance of losing more with which something is said


@dataclass(frozen=True, eq=False)
class DeadlineAdvice:
    """Deadlines and what they get, for the recorded cohorts.

    Attributes:
        seconds: The deadlines [G].
        arrivals: Expected answers per round [G].
        length: Expected seconds of a round [G].
        kept: Share of all answers, however late, that arrive [G].
        speed: Answers per second [G].
        present: The deadline in the log; None if it is unknown.
        best: The recommended deadline; nan if nothing can be said.
        gain: Answers per second at the recommended deadline over those at the present one.
        loss: How much the recommendation may lose against the best, at 97 % confidence.
        risk: Chance that it loses more than 5 %, in the kind of world where that is larger.
        is_said: Whether that is at most 3 %, the deadline not beyond what was seen, and the log
            not mixed.
        is_beyond: Whether the recommendation is longer than the present deadline although nobody
            knows which of the failures were only late.
        more_rounds: Rounds that would tell; None if it is said or cannot be known.
        least_kept: Share of its answers that the slowest client keeps.
        keep: Share of the answers that the deadline must keep.
        is_mixed: Whether clients changed during the rounds that this rests on.
        present_kept: Share of all answers, however late, that the deadlines of the log keep.
        stops_before: Seconds before the recommended deadline at which clients stop.
        typical_seconds: Median seconds until an answer of the median client.
        slowest_seconds: The same of the client that takes longest.
    """

    seconds: Floats
    arrivals: Floats
    length: Floats
    kept: Floats
    speed: Floats
    present: float | None
    best: float
    gain: Interval
    loss: float
    risk: float
    is_said: bool
    is_beyond: bool
    more_rounds: int | None
    least_kept: float
    keep: float
    is_mixed: bool
    present_kept: Interval
    stops_before: float
    typical_seconds: Interval = UNKNOWN
    slowest_seconds: Interval = UNKNOWN

    @property
    def is_better(self) -> bool:
        """Whether the recommended deadline gets more answers per second for certain.

        That it is the best of all is another question: see `is_said`.
        """
        return self.gain.is_above(1.0) and self.gain.value >= 1.01 and not self.is_beyond

    @property
    def keeps_too_few(self) -> bool:
        """Whether the present deadline keeps fewer answers than it must."""
        return self.present_kept.value < self.keep - TINY  # False if it is unknown: nan

    @property
    def is_worth_a_try(self) -> bool:
        """Whether the recommended deadline is better than the present one, or keeps enough.

        It also is if nobody knows the present one.
        """
        keeps_enough = self.keeps_too_few and not self.is_beyond
        return self.present is None or self.is_better or keeps_enough

    @property
    def is_too_short(self) -> bool:
        """Whether the present deadline keeps too few, and how long it must be was never seen."""
        return self.keeps_too_few and self.is_beyond

    @property
    def is_to_set(self) -> bool:
        """Whether the recommended deadline is to replace the present one."""
        return self.is_said and self.is_worth_a_try

    def nearest(self, seconds: float) -> int:
        """Return the position of the deadline on the curve that is nearest to a number."""
        return int(np.abs(self.seconds - seconds).argmin())

    @property
    def shortest_allowed(self) -> float:
        """The shortest deadline that keeps the given share of the answers."""
        return float(np.interp(self.keep, self.kept, self.seconds))


def advise_deadline(
    log: FederationLog,
    block: int,
    rng: np.random.Generator,
    keep: float = KEEP,
    *,
    is_mixed: bool = False,
) -> DeadlineAdvice | None:
    """Return what other deadlines would get; None if the log does not say.

    It says nothing with too few answer times, or if some failures may have been late and nobody
    knows the deadline that they missed.

    Args:
        log: The log.
        block: Rounds per block of the resamples.
        rng: Source of randomness.
        keep: Share of the answers that the deadline must keep.
        is_mixed: Whether clients changed during the log, so that it may say nothing of tomorrow.
    """
    durations = fit_durations(log)
    if durations is None or lacks_deadline(log):
        return None
    grid = deadline_grid(log, durations, rng)
    overhead = round_overhead(log)
    weights = bootstrap_weights(log.num_rounds, DRAWS, block, rng)
    drawn = draw_durations(log, durations, rng, DRAWS)

    has_deadlines = bool(np.isfinite(log.deadline_in_round).all())
    arrivals = np.zeros((2, DRAWS, POINTS))
    length = np.zeros((2, DRAWS, POINTS))
    speed_now = np.full(DRAWS, np.nan)
    arrivals_now = np.full(DRAWS, np.nan)
    mean_arrivals = np.zeros(POINTS)
    mean_length = np.zeros(POINTS)
    mean_arrivals_now = 0.0
    for draw, weight in enumerate(weights):
        times = complete_times(log, drawn[draw], rng)
        counts, seconds = play_deadlines(log, times, grid, overhead)
        mean_arrivals += counts.mean(axis=0) / DRAWS
        mean_length += seconds.mean(axis=0) / DRAWS
        arrivals[0, draw] = weight @ counts / log.num_rounds
        length[0, draw] = weight @ seconds / log.num_rounds
        if has_deadlines:
            counts, seconds = play_now(log, times, overhead)
            speed_now[draw] = max(weight @ counts, TINY) / max(weight @ seconds, TINY)
            arrivals_now[draw] = weight @ counts / log.num_rounds
            mean_arrivals_now += counts.mean() / DRAWS
        arrivals[1, draw], length[1, draw] = play_fitted(
            log, drawn[draw], times, grid, overhead, rng
        )

    speeds = arrivals / np.maximum(length, TINY)
    shares = arrivals / np.maximum(arrivals[..., -1:], 1e-12)
    losses = _losses(speeds, shares, keep)
    ever = max(mean_arrivals[-1], 1e-12)
    kept = mean_arrivals / ever
    best = int(np.where(kept >= keep, losses.mean(axis=(0, 1)), np.inf).argmin())
    loss = float(np.quantile(losses[..., best], 1 - RISK, axis=1).max())
    risk = float((losses[..., best] > TOLERANCE).mean(axis=1).max())
    # Answers that were never seen are a guess where the log does not say who was only late.
    longest = log.longest_deadline or np.inf
    is_beyond = durations.by_chance and float(grid[best]) > 1.02 * longest
    is_said = risk <= RISK and not is_beyond and not is_mixed
    missing = None
    if not is_said and not is_beyond and not is_mixed:
        missing = more_rounds(log.num_rounds, loss, TOLERANCE)
    return DeadlineAdvice(
        seconds=grid,
        arrivals=mean_arrivals,
        length=mean_length,
        kept=kept,
        speed=mean_arrivals / np.maximum(mean_length, TINY),
        present=log.deadline,
        best=float(grid[best]),
        gain=from_draws(speeds[0, :, best] / speed_now) if has_deadlines else UNKNOWN,
        loss=loss,
        risk=risk,
        is_said=is_said,
        is_beyond=is_beyond,
        more_rounds=missing,
        least_kept=_least_kept(drawn, float(stops_at(log, grid)[best])),
        keep=keep,
        is_mixed=is_mixed,
        present_kept=from_draws(
            arrivals_now / np.maximum(arrivals[0, :, -1], 1e-12), mean_arrivals_now / ever
        ),
        stops_before=float(stop_margin(grid[best], log.grace)),
        typical_seconds=from_draws(np.median(_client_medians(drawn), axis=1)),
        slowest_seconds=from_draws(_client_medians(drawn)[:, durations.log_median.argmax()]),
    )


def _client_medians(drawn: list[Durations]) -> Floats:
    """Return the median seconds of each draw and client, [D, K]."""
    return np.exp([one.log_median for one in drawn])


def lacks_deadline(log: FederationLog) -> bool:
    """Return whether failures may have been late by a deadline that nobody knows.

    Args:
        log: The log.
    """
    may_be_late = ~log.arrived & np.isnan(log.late)
    return bool(np.isinf(log.deadline_in_round[log.round[may_be_late]]).any())


def _losses(speeds: Floats, shares: Floats, keep: float) -> Floats:
    """Return what each deadline loses against the best of each world, [..., G].

    That is the share of the speed, or of the answers that it should keep if that is more.

    Args:
        speeds: Answers per second [..., G].
        shares: Share of all answers that arrive [..., G].
        keep: Share that should.
    """
    allowed = np.where(shares >= keep, speeds, 0.0).max(axis=-1, keepdims=True)
    slower = 1 - speeds / np.maximum(allowed, 1e-12)
    return np.asarray(np.maximum(np.maximum(slower, keep - shares), 0.0))


def _least_kept(drawn: list[Durations], seconds: float) -> float:
    """Return the share of its answers that the slowest client keeps at a deadline."""
    tails = np.mean([durations.tail(seconds) for durations in drawn], axis=0)
    return float(1 - tails.max())
