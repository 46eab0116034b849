"""Selectors, compared in a world fitted to the log and in the log's own rounds.

Two things count: how many answers arrive, and whom it neglects. A selector that always asks the
reliable gets the most answers and never hears of the others, so the recommendation is the selector
with the most answers among those that ask every fifth of the clients a given share of its fair
share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.advice.estimates import Interval, more_rounds
from fedcohort.advice.gains import gain_between, mean_and_doubt, played_difference
from fedcohort.advice.selector_play import Played, asks_as_many, can_play, play_selectors
from fedcohort.advice.special_functions import normal_tail
from fedcohort.arrays import Bools, Floats

CANDIDATES = (
    "random",
    "e3cs-0.5",
    "e3cs-0.8",
    "e3cs-0.5-robust",
    "e3cs-0.8-robust",
    "e3cs-0",
    "e3cs-robust",
)
UNIFORM = "random"
FAIR = 0.4  # share of its fair share that every fifth of the clients must be asked
TOLERANCE = 0.05
WORTH = 0.01  # share of the answers that a change of the selector must gain at least
Z95 = 1.6449  # 95 % quantile of the normal distribution
RISK = 0.05  # the largest chance of losing more than 5 % with which something is said


@dataclass(frozen=True, eq=False)
class SelectorAdvice:
    """Selectors and what they get.

    Attributes:
        rounds: Rounds that were played.
        fitted: What came of each in the fitted world, by name.
        resampled: What came of each in the log's own rounds, by name.
        best: The recommended selector.
        present: The selector of the log; None if it is unknown or cannot be played.
        gain: Answers per round that the best gets beyond uniform selection, in the fitted world.
        present_gain: Answers per round that it gets beyond the present selector.
        resampled_gain: The gain beyond uniform selection in the log's own rounds.
        agrees: Whether both worlds recommend the same, or their gains overlap.
        loss: How much it may lose against the best, at 95 % confidence.
        risk: Chance that it loses more than 5 %, in the world where that is larger.
        may_have_changed: Whether clients may have changed during the log.
        is_said: Whether the risk is at most 5 %, clients have not changed, and the best is that of
            the log or gets more answers in both worlds for certain.
        more_rounds: Rounds that would tell; None if it is said or cannot be known.
        fair: Share of its fair share that every fifth of the clients must be asked.
        left_out: Selectors that ask another number of clients, so that their answers cannot be
            compared.
    """

    rounds: int
    fitted: Mapping[str, Played]
    resampled: Mapping[str, Played]
    best: str
    present: str | None
    gain: Interval
    present_gain: Interval
    resampled_gain: Interval
    agrees: bool
    loss: float
    risk: float
    may_have_changed: bool
    is_said: bool
    more_rounds: int | None
    fair: float
    left_out: tuple[str, ...] = ()

    @property
    def compared(self) -> tuple[str, ...]:
        """All selectors that were compared, uniform selection first."""
        return tuple(self.fitted)

    @property
    def runner_up(self) -> str | None:
        """The fair selector with the most answers after the recommended one; None if none is."""
        others = [name for name in self.fitted if name != self.best and self.is_fair(name)]
        if not others:
            return None
        return max(others, key=lambda name: float(self.fitted[name].arrivals.mean()))

    def is_fair(self, name: str) -> bool:
        """Return whether a selector asks every fifth of the clients often enough."""
        return name == UNIFORM or self.fitted[name].least_asked >= self.fair

    def remark(self, name: str) -> str:
        """Return what a table says of a selector: whether it runs now, or is too unfair."""
        words = []
        if name == self.present:
            words.append("now")
        if not self.is_fair(name):
            words.append("too unfair")
        return ", ".join(words)


def advise_selector(
    fitted: Bools,
    resampled: Bools,
    cohort: int,
    log_rounds: int,
    names: Sequence[str] = CANDIDATES,
    fair: float = FAIR,
    rates: Floats | None = None,
    may_have_changed: bool = False,
    present: str | None = None,
    available: Bools | None = None,
) -> SelectorAdvice:
    """Return which selector to use.

    A selector is recommended instead of the present one, or of uniform selection if that is
    unknown or unfair, only if it gets at least 1 % more answers, and more for certain as far as
    the clients' rates are known.
    Selectors that ask another number of clients are left out.

    Args:
        fitted: Who would answer in the fitted world [T, S, K].
        resampled: Who would answer in the log's own rounds [T, S, K].
        cohort: Clients asked per round.
        log_rounds: Rounds of the log.
        names: Selectors to compare; uniform selection is always among them.
        fair: Share of its fair share that every fifth of the clients must be asked.
        rates: Rates [K], for selectors that know them.
        may_have_changed: Whether clients may have changed during the log: then neither world is
            that of tomorrow.
        present: The selector that chose so far, which is played too; None if it is unknown.
        available: Who can be asked, in both worlds [T, S, K]; None for everyone.
    """
    clients = fitted.shape[-1]
    if present is not None and not can_play(present, clients, cohort, rates):
        present = None
    left_out = [name for name in names if not asks_as_many(name, clients, cohort, rates)]
    compared = [UNIFORM, *(name for name in names if name not in left_out)]
    if present is not None:
        compared.append(present)
    names = tuple(dict.fromkeys(compared))
    if available is not None:
        available = np.concatenate([available, available], axis=1)
    worlds = np.concatenate([fitted, resampled], axis=1)
    in_both = play_selectors(worlds, cohort, names, rates, available)
    runs = fitted.shape[1]
    in_fitted = {name: played.part(slice(None, runs)) for name, played in in_both.items()}
    in_resampled = {name: played.part(slice(runs, None)) for name, played in in_both.items()}
    best = _best(in_fitted, fair)
    other = _best(in_resampled, fair)
    rival = UNIFORM
    if present is not None and in_fitted[present].least_asked >= fair:
        rival = present
    if best != rival and not _is_worth_it(in_fitted, best, rival):
        best = rival
    is_certain = best == rival or gain_between(in_resampled, best, rival).is_above(0.0)

    risks = []
    losses = []
    for played in (in_fitted, in_resampled):
        risk, loss = _judge(played, best, fair)
        risks.append(risk)
        losses.append(loss)
    one = played_difference(in_fitted, best, UNIFORM)
    two = played_difference(in_resampled, best, UNIFORM)
    overlaps = one.low <= two.high and two.low <= one.high
    loss = max(losses)
    is_said = max(risks) <= RISK and is_certain and not may_have_changed
    return SelectorAdvice(
        rounds=len(fitted),
        fitted=in_fitted,
        resampled=in_resampled,
        best=best,
        present=present,
        gain=gain_between(in_fitted, best, UNIFORM),
        present_gain=gain_between(in_fitted, best, present or UNIFORM),
        resampled_gain=gain_between(in_resampled, best, UNIFORM),
        agrees=best == other or overlaps,
        loss=loss,
        risk=max(risks),
        may_have_changed=may_have_changed,
        is_said=is_said,
        more_rounds=None if is_said else _missing_rounds(log_rounds, loss, may_have_changed),
        fair=fair,
        left_out=tuple(left_out),
    )


def _is_worth_it(played: Mapping[str, Played], one: str, other: str) -> bool:
    """Return whether one selector gets more than another for certain, and at least 1 % more."""
    gain = gain_between(played, one, other)
    return gain.is_above(0.0) and gain.value >= WORTH * float(played[other].arrivals.mean())


def _missing_rounds(rounds: int, loss: float, may_have_changed: bool) -> int | None:
    """Return how many more rounds would tell; after a change as many as there are again."""
    missing = more_rounds(rounds, max(loss, TOLERANCE), TOLERANCE)
    return max(missing or 0, rounds) if may_have_changed else missing


def _judge(played: Mapping[str, Played], best: str, fair: float) -> tuple[float, float]:
    """Return the chance that a selector loses more than 5 %, and what it may lose at 95 %.

    It loses if another that is fair enough gets more answers, or if it is not fair enough itself.
    """
    own = played[best]
    risk = 0.0
    loss = 0.0
    if best != UNIFORM:
        least, doubt = mean_and_doubt(own.neglected)
        risk = _chance_above(fair - TOLERANCE - least, doubt)
        loss = fair - least + Z95 * doubt
    for name, other in played.items():
        if name == best:
            continue
        is_fair = 1.0
        if name != UNIFORM:
            least, doubt = mean_and_doubt(other.neglected)
            is_fair = _chance_above(least - fair, doubt)
        scale = max(float(own.arrivals.mean()), 1e-9)
        lead, doubt = mean_and_doubt((other.arrivals - own.arrivals) / scale)
        risk = max(risk, is_fair * _chance_above(lead - TOLERANCE, doubt))
        if is_fair > RISK:
            loss = max(loss, lead + Z95 * doubt)
    return risk, loss


def _chance_above(mean: float, deviation: float) -> float:
    """Return the chance that a normal number is above 0."""
    return float(normal_tail(-mean / max(deviation, 1e-9)))


def _best(played: Mapping[str, Played], fair: float) -> str:
    """Return the selector with the most answers among those that are fair enough."""
    allowed = [name for name in played if name == UNIFORM or played[name].least_asked >= fair]
    return max(allowed, key=lambda name: float(played[name].arrivals.mean()))
