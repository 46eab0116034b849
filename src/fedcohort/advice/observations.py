"""What a log shows, in sentences."""

from math import isfinite, isnan

import numpy as np

from fedcohort.advice.advisor import Advice
from fedcohort.advice.broken import LEAST_ASKED, MOST_NAMED, broken_clients, describe_broken
from fedcohort.advice.change import LEAST_ROUNDS as LEAST_FOR_CHANGE
from fedcohort.advice.change import LEVEL, TIMES, Change
from fedcohort.advice.deadline import DeadlineAdvice
from fedcohort.advice.durations import Durations
from fedcohort.advice.estimates import UNKNOWN, Interval, plain
from fedcohort.advice.own_rates import group_rounds
from fedcohort.advice.wording import Sentence, count_reasons, number, percent, printable
from fedcohort.arrays import Ints
from fedcohort.reports.words import counted

DEADLINES_DIFFER = "too few rounds have the same deadline, and a longer one gets more answers"


def describe_log(advice: Advice) -> list[Sentence]:
    """Return what the log shows; all numbers rest on the rounds that are used.

    Args:
        advice: The advice.
    """
    used = advice.used
    success = advice.success
    said = []
    if used is not advice.log:
        said.append(_changing(advice))  # it says on which rounds all other numbers rest
    said.append(
        Sentence(
            "seen",
            f"In {used.num_rounds} rounds {len(used.round)} requests went to "
            f"{counted(used.num_clients, 'client')}, {used.cohort} per round; {percent(success)} "
            "were answered in time.",
            numbers=plain({"success": success}),
        )
    )
    broken = broken_clients(used)
    others = np.delete(advice.rates.mean, broken)
    if not others.size:
        others = advice.rates.mean
    low = others.min()
    high = others.max()
    spread = advice.rates.spread
    who = "The other clients" if broken else "Clients"
    for text in describe_broken(used):
        said.append(Sentence("seen", text, numbers={"clients": len(broken)}))
    said.append(
        Sentence(
            "seen",
            f"{who} answer between {100 * low:.0f} % and {100 * high:.0f} % of the time "
            f"(standard deviation {number(spread, 2)}).",
            numbers=plain({"lowest": low, "highest": high, "spread": spread}),
        )
    )
    silent = _silent(advice)
    if silent is not None:
        said.append(silent)
    said += [_lasting(advice), _shared(advice)]
    if used is advice.log:
        said.append(_changing(advice))
    said.append(_wasted(advice))
    if advice.durations is not None:
        said.append(_times(advice.durations, advice.deadline))
    return said


def _silent(advice: Advice) -> Sentence | None:
    """Name the clients that were asked several times and never answered in time, and why."""
    used = advice.used
    is_silent = (used.arrived_of_client == 0) & (used.asked_of_client >= LEAST_ASKED)
    is_silent[broken_clients(used)] = False
    silent = np.flatnonzero(is_silent)
    if not silent.size:
        return None
    names = []
    for place in silent[:MOST_NAMED]:
        words, counts = np.unique(used.status[used.client == place], return_counts=True)
        reasons = "; ".join(count_reasons(dict(zip(words.tolist(), counts.tolist(), strict=True))))
        asked = f"asked {int(used.asked_of_client[place])} times"
        if reasons:
            asked += f": {reasons}"
        names.append(f"{printable(used.clients[place])} ({asked})")
    more = ""
    if silent.size > MOST_NAMED:
        more = f" and {silent.size - MOST_NAMED} more"
    text = f"Clients without one counted answer: {', '.join(names)}{more}."
    return Sentence("seen", text, numbers={"clients": silent.size})


def _wasted(advice: Advice) -> Sentence:
    waste = advice.waste
    reasons = "; ".join(count_reasons(waste.reasons))
    text = (
        f"{percent(waste.share)} of the work is thrown away: clients were asked for an update, and "
        "none came in time and counted"
    )
    if reasons:
        text += f" ({reasons})"
    if not isnan(waste.waiting):
        text += (
            f". The server spends {100 * waste.waiting:.0f} % of its time waiting for clients that "
            "do not answer in time"
        )
    return Sentence("seen", text + ".", numbers=plain(vars(waste)))


def _times(durations: Durations, deadline: DeadlineAdvice | None) -> Sentence:
    """Say how long answers take, with intervals where deadlines were played."""
    medians = np.exp(durations.log_median)
    typical = float(np.median(medians))
    slowest = float(medians.max())
    intervals = (UNKNOWN, UNKNOWN)
    if deadline is not None:
        intervals = (deadline.typical_seconds, deadline.slowest_seconds)
    text = (
        f"The median client takes {_seconds(typical, intervals[0])} for a typical answer, "
        f"the slowest {_seconds(slowest, intervals[1])}."
    )
    numbers = {
        "median": typical,
        "slowest": slowest,
        "spread": durations.spread,
        "median_interval": intervals[0],
        "slowest_interval": intervals[1],
    }
    return Sentence("seen", text, numbers=plain(numbers))


def _seconds(value: float, interval: Interval) -> str:
    """Return seconds with their interval, if it is known."""
    if not isfinite(interval.low):
        return f"{value:.3g} s"
    return f"{value:.3g} s ({interval.low:.3g} to {interval.high:.3g})"


def _lasting(advice: Advice) -> Sentence:
    persistence = advice.persistence
    lengths = {"off_rounds": persistence.off_interval, "on_rounds": persistence.on_interval}
    numbers = plain({**vars(persistence), **lengths})
    correlation = number(persistence.next_round, 2)
    if persistence.is_certain:
        return Sentence(
            "seen",
            "Failures last: a client that fails stays away for "
            f"{number(persistence.off_interval, 0)} rounds, and one that answers goes on for "
            f"{number(persistence.on_interval, 0)} (correlation of successive rounds "
            f"{correlation}).",
            numbers=numbers,
        )
    if not isfinite(persistence.next_round.low):
        why = (
            "the log has too few rounds, or too few clients that answer at times and fail at others"
        )
        if group_rounds(advice.used) is None:
            why = DEADLINES_DIFFER
        text = f"It cannot be said whether failures last: {why}."
        return Sentence("seen", text, is_said=False, numbers=numbers)
    is_said = persistence.next_round.high < 0.2
    begin = "No sign that" if is_said else "It cannot be said whether"
    text = f"{begin} failures last (correlation of successive rounds {correlation})."
    return Sentence("seen", text, is_said, numbers)


def _shared(advice: Advice) -> Sentence:
    together = advice.together
    numbers = plain(vars(together))
    if not isfinite(together.correlation.low):
        why = "too few answers differ"
        if group_rounds(advice.used) is None:
            why = DEADLINES_DIFFER
        text = f"It cannot be said whether clients fail together: {why}."
        return Sentence("seen", text, is_said=False, numbers=numbers)
    correlation = number(together.correlation, 3)
    if together.is_certain:
        text = f"Clients fail together (correlation within a round {correlation})."
        return Sentence("seen", text, numbers=numbers)
    is_said = together.correlation.high < 0.1
    begin = "No sign that" if is_said else "It cannot be said whether"
    text = f"{begin} clients fail together (correlation within a round {correlation})."
    return Sentence("seen", text, is_said, numbers)


def _changing(advice: Advice) -> Sentence:
    change = advice.change
    numbers = plain(vars(change))
    if advice.log.num_rounds < LEAST_FOR_CHANGE:
        text = (
            f"It cannot be said whether clients change over time: {LEAST_FOR_CHANGE} rounds would "
            f"tell, got {advice.log.num_rounds}."
        )
        return Sentence("seen", text, is_said=False, numbers=numbers)
    if group_rounds(advice.log) is None:
        text = f"It cannot be said whether clients change over time: {DEADLINES_DIFFER}."
        return Sentence("seen", text, is_said=False, numbers=numbers)
    if change.is_possible and not change.is_certain:
        text = f"Clients may have changed (p = {change.p_value:.2g}; certain at {LEVEL:g} or less)."
        return Sentence("seen", text, is_said=False, numbers=numbers)
    if not change.is_certain:
        text = f"No change over time is certain (p = {change.p_value:.2f})."
        if advice.log.deadlines is not None:
            text += " Only answers were tested, not their times, because deadlines differ."
        return Sentence("seen", text, numbers=numbers)
    what = "how long their answers take" if change.kind == TIMES else "how often they answer"
    text = f"Clients changed at {_when(change, advice.log.rounds)}: {what}"
    if change.count > 1:
        text += f". It is change {change.count}, so they may change gradually"
    if advice.used is not advice.log:
        text += (
            f"; everything below rests on the {advice.used.num_rounds} rounds since "
            f"{advice.used.rounds[0]}, of {advice.log.num_rounds} in the log"
        )
        if change.may_go_on:
            text += f", and clients may have changed in these, too (p = {change.rest_p_value:.2g})"
    else:
        text += (
            "; the rounds since are too few to rest on, so everything below mixes clients of "
            "before and after"
        )
    return Sentence("seen", text + ".", numbers=numbers)


def _when(change: Change, rounds: Ints) -> str:
    """Return the round of a change with its interval, which may have an open end."""
    at = f"round {rounds[change.position]}"
    if change.first is None and change.last is None:
        return f"about {at}, perhaps much earlier or later"
    if change.last is None and change.first == change.position:
        return f"{at} or later"
    if change.last is None:
        return f"{at} or later ({rounds[change.first]} at the earliest)"
    if change.first is None and change.last == change.position:
        return f"{at} or earlier"
    if change.first is None:
        return f"{at} or earlier ({rounds[change.last]} at the latest)"
    return f"{at} ({rounds[change.first]} to {rounds[change.last]})"
