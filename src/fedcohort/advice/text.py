"""The advice in sentences, each with the numbers that it rests on."""

from dataclasses import dataclass, field
from math import isfinite, isnan
from typing import Any

import numpy as np

from fedcohort.advice.advisor import Advice
from fedcohort.advice.durations import Durations
from fedcohort.advice.estimates import Interval, plain
from fedcohort.advice.rules import MEMORY_STUDY, STUDY
from fedcohort.advice.selectors import UNIFORM

SELECTION_STUDY = (
    "What that does to the accuracy cannot be said from a log: in our study no selector was ahead "
    "of uniform selection for certain in any of 23 cases, and FedCS and Oort, which ask the "
    "reliable, were behind in 13 and 12."
)


@dataclass(frozen=True)
class Sentence:
    """One sentence of the advice.

    Attributes:
        topic: What it is about: seen, deadline, cohort, selector, rule or training.
        text: The sentence.
        is_said: False where something cannot be said from so little data.
        numbers: The numbers that it rests on, by name.
    """

    topic: str
    text: str
    is_said: bool = True
    numbers: dict[str, Any] = field(default_factory=dict)


def sentences(advice: Advice) -> list[Sentence]:
    """Return the whole advice, first what was seen, then what to do.

    Args:
        advice: The advice.
    """
    said = [*_seen(advice), _deadline(advice), *_cohort(advice), *_selector(advice)]
    return [*said, *_rule(advice), *_training(advice)]


def _seen(advice: Advice) -> list[Sentence]:
    log = advice.log
    success = advice.success
    said = [
        Sentence(
            "seen",
            f"In {log.num_rounds} rounds {len(log.round)} questions went to {log.num_clients} "
            f"clients, {log.cohort} per round; {percent(success)} were answered in time.",
            numbers=plain({"success": success}),
        )
    ]
    low = advice.rates.mean.min()
    high = advice.rates.mean.max()
    spread = advice.rates.spread
    said.append(
        Sentence(
            "seen",
            f"Clients answer between {100 * low:.0f} % and {100 * high:.0f} % of the time "
            f"(standard deviation {number(spread, 2)}).",
            numbers=plain({"lowest": low, "highest": high, "spread": spread}),
        )
    )
    said += [_lasting(advice), _shared(advice), _changing(advice)]
    waste = advice.waste
    reasons = ", ".join(f"{count} {word}" for word, count in waste.reasons.items())
    text = f"{percent(waste.share)} of the work is thrown away"
    if reasons:
        text += f" ({reasons})"
    if not isnan(waste.waiting):
        text += f"; {100 * waste.waiting:.0f} % of the time passes after the last answer"
    said.append(Sentence("seen", text + ".", numbers=plain(vars(waste))))
    if advice.durations is not None:
        said.append(_times(advice.durations))
    return said


def _times(durations: Durations) -> Sentence:
    medians = np.exp(durations.log_median)
    slowest = float(medians.max())
    text = (
        f"The median client takes {np.median(medians):.3g} s for an answer, "
        f"the slowest {slowest:.3g} s."
    )
    numbers = {"median": float(np.median(medians)), "slowest": slowest, "spread": durations.spread}
    return Sentence("seen", text, numbers=plain(numbers))


def _lasting(advice: Advice) -> Sentence:
    persistence = advice.persistence
    numbers = plain(vars(persistence))
    correlation = number(persistence.next_round, 2)
    if persistence.is_certain:
        return Sentence(
            "seen",
            f"Failures last: a client that fails stays away for about {persistence.off_rounds:.0f} "
            f"rounds (correlation of successive rounds {correlation}).",
            numbers=numbers,
        )
    text = f"It cannot be said that failures last (correlation of successive rounds {correlation})."
    return Sentence("seen", text, persistence.next_round.high < 0.2, numbers)


def _shared(advice: Advice) -> Sentence:
    together = advice.together
    numbers = plain(vars(together))
    correlation = number(together.correlation, 3)
    if together.is_certain:
        text = f"Clients fail together (correlation within a round {correlation})."
        return Sentence("seen", text, numbers=numbers)
    text = (
        f"It cannot be said that clients fail together (correlation within a round {correlation})."
    )
    return Sentence("seen", text, together.correlation.high < 0.1, numbers)


def _changing(advice: Advice) -> Sentence:
    change = advice.change
    numbers = plain(vars(change))
    if change.position is None or change.first is None or change.last is None:
        text = f"No change over time is certain (p = {change.p_value:.2f})."
        return Sentence("seen", text, numbers=numbers)
    rounds = advice.log.rounds
    when = f"round {rounds[change.position]} ({rounds[change.first]} to {rounds[change.last]})"
    text = f"Clients changed at {when}"
    if advice.used is not advice.log:
        text += f"; only the last {advice.used.num_rounds} rounds are used"
    return Sentence("seen", text + ".", numbers=numbers)


def _deadline(advice: Advice) -> Sentence:
    found = advice.deadline
    if found is None:
        text = "A deadline cannot be recommended: fewer than 20 answers in the log have a time."
        return Sentence("deadline", text, is_said=False)
    place = int(abs(found.seconds - found.best).argmin())
    numbers = plain({name: value for name, value in vars(found).items() if name != "kept"})
    got = (
        f"{found.arrivals[place]:.1f} answers per round of {found.length[place]:.3g} s, "
        f"{100 * found.kept[place]:.0f} % of all that would ever come"
    )
    if found.is_beyond and found.present is not None:
        text = (
            f"The best deadline cannot be said: {found.best:.3g} s looks best ({got}), but answers "
            f"after {found.present:.3g} s were never seen. A few rounds with a longer deadline "
            "would tell."
        )
        return Sentence("deadline", text, False, numbers)
    if not found.is_said:
        text = (
            f"The best deadline cannot be said yet: {found.best:.3g} s looks best ({got}), but may "
            f"lose {100 * found.loss:.0f} %{_more(found.more_rounds)}."
        )
        return Sentence("deadline", text, False, numbers)
    if found.present is None:
        return Sentence(
            "deadline", f"Set the deadline to {found.best:.3g} s: {got}.", numbers=numbers
        )
    if not found.gain.is_above(1.0) or found.gain.value < 1.01:
        text = f"Keep the deadline of {found.present:.3g} s: {got}."
        return Sentence("deadline", text, numbers=numbers)
    text = (
        f"Set the deadline to {found.best:.3g} s instead of {found.present:.3g} s: {got}. The "
        f"present one costs {100 * (1 - 1 / found.gain.value):.0f} % of the answers per second "
        f"({found.gain.value:.2f} times as many, {found.gain.low:.2f} to {found.gain.high:.2f}); "
        f"the slowest client then is in time for {100 * found.least_kept:.0f} % of its answers."
    )
    return Sentence("deadline", text, numbers=numbers)


def _cohort(advice: Advice) -> list[Sentence]:
    found = advice.cohort
    numbers = plain(vars(found))
    now = f"{100 * found.enough_now:.0f} % of the rounds had at least {found.needed} answers"
    if found.ask is None:
        text = f"{now}. Nine rounds of ten cannot have as many, even if all clients are asked."
        return [Sentence("cohort", text, numbers=numbers)]
    text = (
        f"{now}. Ask {found.ask} clients for that in nine rounds of ten; "
        f"{found.wasted:.1f} answers per round are then more than needed."
    )
    said = [Sentence("cohort", text, numbers=numbers)]
    if isfinite(found.seconds_early) and found.seconds_early < 0.95 * found.seconds_now:
        text = (
            f"If a round that asks {found.ask} closes with answer {found.needed}, it takes "
            f"{found.seconds_early:.3g} s instead of {found.seconds_now:.3g} s; the slower half of "
            f"the clients then gives {100 * found.slow_early:.0f} % of the answers instead of "
            f"{100 * found.slow_now:.0f} %."
        )
        said.append(Sentence("cohort", text, numbers=numbers))
    return said


def _selector(advice: Advice) -> list[Sentence]:
    found = advice.selector
    uniform = found.fitted[UNIFORM]
    best = found.fitted[found.best]
    numbers = plain(
        {"gain": found.gain, "resampled_gain": found.resampled_gain, "loss": found.loss}
    )
    base = f"{uniform.arrivals.mean():.2f} answers per round"
    if not found.is_said:
        text = (
            f"The best selector cannot be said yet: `{found.best}` looks best, but may lose "
            f"{100 * found.loss:.0f} % of the answers{_more(found.more_rounds)}."
        )
    elif found.best == UNIFORM:
        text = (
            f"Select uniformly (`{UNIFORM}`, {base}): no selector that asks every fifth of the "
            f"clients {found.fair:g} of its fair share gets more for certain."
        )
    else:
        text = (
            f"`{found.best}` gets {number(found.gain, 2)} answers per round more than uniform "
            f"selection ({base}) in a world fitted to the log, and "
            f"{number(found.resampled_gain, 2)} more in its own rounds, resampled. The fifth "
            f"of the clients that it asks least is asked {best.least_asked:.2f} of its fair share."
        )
    said = [Sentence("selector", text, found.is_said, numbers)]
    if not found.agrees:
        text = (
            "The two ways disagree: trust the gain no further than the smaller of them, and try "
            "it before you rely on it."
        )
        said.append(Sentence("selector", text, False, numbers))
    greedy = max(found.fitted, key=lambda name: float(found.fitted[name].arrivals.mean()))
    if found.fitted[greedy].least_asked < found.fair:
        other = found.fitted[greedy]
        text = (
            f"`{greedy}` gets the most answers ({other.arrivals.mean():.2f}), but asks a fifth of "
            f"the clients only {other.least_asked:.2f} of its fair share."
        )
        said.append(Sentence("selector", text, numbers=plain({"arrivals": other.arrivals.mean()})))
    said.append(Sentence("selector", SELECTION_STUDY, is_said=False))
    return said


def _rule(advice: Advice) -> list[Sentence]:
    rule = advice.rule
    cost = "one model per client"
    if rule.memory_bytes is not None:
        cost = f"{rule.memory_bytes / 1e6:,.0f} MB for {advice.used.num_clients} clients"
    first = f"Aggregate with `{rule.best}`. {STUDY}"
    second = f"{MEMORY_STUDY} It costs the server {cost}."
    return [
        Sentence("rule", first, numbers=plain(vars(rule))),
        Sentence("rule", second, is_said=False, numbers=plain(vars(rule))),
    ]


def _training(advice: Advice) -> list[Sentence]:
    said = []
    for row in advice.training:
        text = (
            f"Trained on {row['partition']} data, `{row['selector']}` with `{row['aggregation']}` "
            f"ends at {row['final']:.3f} ± {row['sd']:.3f} accuracy."
        )
        said.append(Sentence("training", text, numbers=plain(row)))
    return said


def percent(interval: Interval) -> str:
    """Return a share in percent with its interval.

    Examples:
        >>> percent(Interval(0.5, 0.456, 0.55))
        '50 % (46 to 55)'
    """
    ends = f"({100 * interval.low:.0f} to {100 * interval.high:.0f})"
    return f"{100 * interval.value:.0f} % {ends}"


def number(interval: Interval, digits: int) -> str:
    """Return a number with its interval.

    Examples:
        >>> number(Interval(0.5, 0.456, 0.55), 1)
        '0.5 (0.5 to 0.6)'
    """
    ends = f"({interval.low:.{digits}f} to {interval.high:.{digits}f})"
    return f"{interval.value:.{digits}f} {ends}"


def _more(rounds: int | None) -> str:
    if rounds is None:
        return ""
    return f"; about {rounds} more rounds would tell"
