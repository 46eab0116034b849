"""What to do in one line, and how sure that is.

Broken clients come first, then deadline, selector and aggregation.
"""

from fedcohort.advice.advisor import Advice
from fedcohort.advice.broken import broken_clients
from fedcohort.advice.deadline import DeadlineAdvice
from fedcohort.advice.rules import FOUND
from fedcohort.advice.selectors import RISK, UNIFORM, SelectorAdvice
from fedcohort.advice.wording import percent_apart, printable
from fedcohort.reports.words import counted, listed, signed

ACCURACY = (
    f"More answers are not more accuracy: in {FOUND['cases']} cases of our study no selector beat "
    "uniform selection for certain."
)
MOST_NAMED = 3  # broken clients in the headline


def headline(advice: Advice) -> str:
    """Return what to do first: about clients, deadline, selector and rule.

    Args:
        advice: The advice.
    """
    parts = _broken(advice)
    stopped = describe_stopped(advice)
    if advice.deadline is not None:
        parts.append(_deadline(advice.deadline, to_keep(advice)))
    elif stopped:
        parts.append(f"try a deadline longer than {present_deadline(advice)} ({stopped})")
    parts.append(_selector(advice.selector))
    parts.append(
        f"aggregate with the {advice.rule.best} rule "
        f"(the paper rule lost {FOUND['paper-points']} points)"
    )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def caveats(advice: Advice) -> list[str]:
    """Return why the headline is not certain, what it costs, and what it does not promise.

    Args:
        advice: The advice.
    """
    said = []
    if advice.deadline is not None:
        present = present_deadline(advice)
        said.append(_deadline_caveat(advice.deadline, present))
        unseen = describe_unseen(advice)
        if unseen and advice.deadline.is_said:
            advised = present
            if advice.deadline.is_worth_a_try:
                advised = f"{advice.deadline.best:.3g} s"
            said.append(
                "The log does not say who was only late: the share of answers kept by "
                f"{advised} is right only if {unseen}."
            )
    if not advice.selector.is_said:
        said.append(
            f"That {_name(advice.selector.best)} is the best selector is not certain: "
            f"{why_unsure(advice)}."
        )
    return [*(text for text in said if text), ACCURACY]


def why_unsure(advice: Advice) -> str:
    """Return why it is not certain that the recommended selector is the best.

    Args:
        advice: The advice.
    """
    if advice.selector.may_have_changed:
        if advice.used is advice.log:
            return f"clients may have changed during the log (p = {advice.change.p_value:.2g})"
        since = f"since round {advice.used.rounds[0]}"
        return f"clients may have changed {since}, too (p = {advice.change.rest_p_value:.2g})"
    found = advice.selector
    if found.risk <= RISK:
        rival = UNIFORM
        if found.present is not None and found.is_fair(found.present):
            rival = found.present
        return f"in the log's own rounds, resampled, it may get no more answers than {_name(rival)}"
    risk = percent_apart(found.risk, RISK)
    return f"the chance that it loses more than 5 % against the best is {risk} %"


def describe_stopped(advice: Advice) -> str:
    """Return that most missing updates were stopped at the deadline; empty if they were not.

    Args:
        advice: The advice.
    """
    used = advice.used
    stopped = int((used.late == 1).sum())
    missing = int((~used.arrived).sum())
    if used.deadline is None or 2 * stopped <= missing:
        return ""
    return f"{stopped:,} of {missing:,} missing updates were not done at the deadline"


def present_deadline(advice: Advice) -> str:
    """Return the present deadline in words; empty if it is unknown.

    Args:
        advice: The advice.
    """
    used = advice.used
    if used.deadline is None:
        return ""
    if used.deadlines is not None:
        return f"the deadlines of the log (median {used.deadline:.3g} s)"
    return f"{used.deadline:.3g} s"


def to_keep(advice: Advice) -> str:
    """Return what is kept if no other deadline is better: one deadline, or those of the log.

    Args:
        advice: The advice.
    """
    present = present_deadline(advice)
    return present if advice.used.deadlines is not None else f"the deadline of {present}"


def describe_gain(found: DeadlineAdvice, present: str) -> str:
    """Return how much more the recommended deadline gets than the present one.

    Args:
        found: What other deadlines get.
        present: The present deadline in words.
    """
    gain = found.gain
    return (
        f"{found.best:.3g} s gets {gain.value:.2f} times ({gain.low:.2f} to {gain.high:.2f}) as "
        f"many answers a minute as {present}"
    )


def describe_unseen(advice: Advice) -> str:
    """Return what the share of answers that a deadline keeps supposes; empty if nothing.

    Where nobody knows which failures were only late, the times before the deadline decide how many
    answers come after it. A second group of much slower answers cannot be seen.

    Args:
        advice: The advice.
    """
    if advice.durations is None or not advice.durations.by_chance:
        return ""
    return f"answers after {advice.used.longest_deadline:.3g} s are as rare as earlier ones suggest"


def describe_too_few(found: DeadlineAdvice) -> str:
    """Return that the present deadline keeps fewer answers than it must; empty if it does not.

    Args:
        found: What other deadlines get.
    """
    if not found.keeps_too_few:
        return ""
    kept = found.present_kept
    return (
        f" The present deadline keeps {percent_apart(kept.value, found.keep)} % "
        f"({100 * kept.low:.0f} to {100 * kept.high:.0f}) of all answers, and --keep asks for "
        f"{100 * found.keep:g} %."
    )


def _deadline(found: DeadlineAdvice, present: str) -> str:
    gain = f"({found.gain.value:.2f} times as many answers a minute)"
    kept = percent_apart(found.present_kept.value, found.keep)
    share = f"(the present one keeps {kept} % of all answers)"
    if found.is_too_short:
        return f"play a few rounds with a longer deadline {share}"
    if not found.is_worth_a_try:
        return f"keep {present}"
    verb = "try a deadline of"
    if found.is_said:
        verb = "set the deadline to" if found.present is None else "change the deadline to"
    if found.present is None:
        return f"{verb} {found.best:.3g} s"
    return f"{verb} {found.best:.3g} s {gain if found.is_better else share}"


def _deadline_caveat(found: DeadlineAdvice, present: str) -> str:
    only = "only " if found.least_kept < found.keep else ""
    least = f"the slowest client keeps {only}{100 * found.least_kept:.0f} % of its answers"
    if found.is_better:
        text = describe_gain(found, present)
        doubt = "" if found.is_said else ", but may not be the best"
        return f"{text}{doubt}; {least}."
    if found.keeps_too_few and not found.is_too_short:
        return f"{describe_gain(found, present)}; {least}."
    if found.is_said or not present:
        return ""
    rounds = "More rounds"
    if found.is_beyond:
        rounds = "A few rounds with a longer deadline"
    return f"{rounds} would tell whether {found.best:.3g} s is better; {least} then."


def _selector(found: SelectorAdvice) -> str:
    arrivals = float(found.fitted[found.best].arrivals.mean())
    answers = f"{arrivals:.2f} answers per round"
    if found.best == found.present:
        if found.best == UNIFORM:
            return f"keep uniform selection ({answers})"
        uniform = float(found.fitted[UNIFORM].arrivals.mean())
        return f"keep {found.best} ({answers}, uniform selection would get {uniform:.2f})"
    verb = "try"
    if found.is_said:
        verb = "use" if found.present is None else "change to"
    if found.present is None and found.best == UNIFORM:
        return f"use uniform selection ({answers})"
    gain = found.present_gain.value
    why = f"{signed(gain, 2)} answers per round over {_name(found.present or UNIFORM)}"
    if gain < 0:
        why = f"{-gain:.2f} fewer answers per round than {_name(found.present or UNIFORM)}"
    if found.present is not None and not found.is_fair(found.present):
        why += ", which neglects clients"
    return f"{verb} {_name(found.best)} ({why})"


def _broken(advice: Advice) -> list[str]:
    """Return which clients to repair, at most one part."""
    names = []
    for place in broken_clients(advice.used):
        names.append(f"client {printable(advice.used.clients[place])}")
    if not names:
        return []
    who = listed(names)
    if len(names) > MOST_NAMED:
        who = counted(len(names), "client")
    whose = "its" if len(names) == 1 else "their"
    return [f"repair {who} (all {whose} updates were rejected)"]


def _name(selector: str) -> str:
    return "uniform selection" if selector == UNIFORM else selector
