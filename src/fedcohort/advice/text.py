"""The advice in sentences, each with the numbers that it rests on."""

from math import isnan

import numpy as np

from fedcohort.advice.advisor import Advice
from fedcohort.advice.cohort import CONFIDENCE
from fedcohort.advice.deadline import RISK
from fedcohort.advice.durations import LEAST_ANSWERS
from fedcohort.advice.estimates import plain
from fedcohort.advice.headline import (
    describe_gain,
    describe_stopped,
    describe_too_few,
    describe_unseen,
    present_deadline,
    to_keep,
)
from fedcohort.advice.observations import describe_log
from fedcohort.advice.rules import MEMORY_STUDY, STUDY
from fedcohort.advice.selector_text import describe_selector
from fedcohort.advice.wording import Sentence, percent_apart, would_tell
from fedcohort.reports.words import counted


def sentences(advice: Advice) -> list[Sentence]:
    """Return the whole advice, first what was seen, then what to do.

    Args:
        advice: The advice.
    """
    said = [*describe_log(advice), _deadline(advice), *_cohort(advice), *describe_selector(advice)]
    return [*said, *_rule(advice), *_training(advice)]


def _deadline(advice: Advice) -> Sentence:
    found = advice.deadline
    if found is None:
        return _no_deadline(advice)
    place = found.nearest(found.best)
    numbers = plain({name: value for name, value in vars(found).items() if name != "kept"})
    got = (
        f"{found.arrivals[place]:.1f} answers per round of {found.length[place]:.3g} s, "
        f"{100 * found.kept[place]:.0f} % of all that would ever come"
    )
    unseen = describe_unseen(advice)
    if unseen and not found.is_beyond:  # of a longer deadline the text says so itself
        got += f" if {unseen}"
    if found.stops_before:
        got += f", with clients of Flower that stop {found.stops_before:.2g} s before the deadline"
    rounds = advice.used.num_rounds
    present = present_deadline(advice)
    if found.is_beyond and advice.used.longest_deadline is not None:
        text = (
            f"The best deadline cannot be said from {rounds} rounds: {found.best:.3g} s looks best "
            f"({got}), but answers after {advice.used.longest_deadline:.3g} s were never seen. A "
            f"few rounds with a longer deadline would tell.{describe_too_few(found)}"
        )
        return Sentence("deadline", text, False, numbers)
    risk = percent_apart(found.risk, RISK)
    doubt = f"the chance that it loses more than 5 % against the best is {risk} %"
    if found.is_mixed:
        doubt = "clients changed during these rounds"
    if not found.is_said and found.is_better:
        text = (
            f"{describe_gain(found, present)}: try it. Whether it is the best cannot be "
            f"said from {rounds} rounds ({doubt}{would_tell(found.more_rounds)}). It gets {got}; "
            f"the slowest client keeps {100 * found.least_kept:.0f} % of its answers."
        )
        return Sentence("deadline", text, False, numbers)
    if not found.is_said:
        text = (
            f"The best deadline cannot be said from {rounds} rounds"
            f"{would_tell(found.more_rounds)}. The best guess is {found.best:.3g} s ({got}); "
            f"{doubt}.{describe_too_few(found)}"
        )
        return Sentence("deadline", text, False, numbers)
    if found.present is None:
        return Sentence(
            "deadline", f"Set the deadline to {found.best:.3g} s: {got}.", numbers=numbers
        )
    if not found.is_worth_a_try:
        text = f"Keep {to_keep(advice)}: no other gets more answers per second for certain."
        guess = f"The best guess is {found.best:.3g} s:"
        if found.best == found.present:
            guess = "It gets"
        text += f" {guess} {got}."
        return Sentence("deadline", text, numbers=numbers)
    if not found.is_better:
        text = f"Set the deadline to {found.best:.3g} s instead of {present}: {got}."
        return Sentence("deadline", f"{text}{describe_too_few(found)}", numbers=numbers)
    text = (
        f"Set the deadline to {found.best:.3g} s instead of {present}: {got}. The "
        f"present one costs {100 * (1 - 1 / found.gain.value):.0f} % of the answers per second "
        f"({found.gain.value:.2f} times as many, {found.gain.low:.2f} to {found.gain.high:.2f}); "
        f"the slowest client then is in time for {100 * found.least_kept:.0f} % of its answers."
    )
    return Sentence("deadline", text, numbers=numbers)


def _no_deadline(advice: Advice) -> Sentence:
    """Return why no deadline can be recommended."""
    used = advice.used
    known = int(np.isfinite(used.seconds).sum())
    stopped = describe_stopped(advice)
    if known >= LEAST_ANSWERS:
        text = (
            "A deadline cannot be recommended: clients did not answer, and the log does not say "
            "how long the server waited for them. Give the present deadline with --deadline."
        )
        return Sentence("deadline", text, False, {"answers": known, "needed": LEAST_ANSWERS})
    text = (
        f"A deadline cannot be recommended: {known} answers have a time, and at least "
        f"{LEAST_ANSWERS} must. More rounds with times would tell; a federation that is "
        "described needs --seconds."
    )
    if stopped and used.deadline is not None:
        text += f" But {stopped} of {used.deadline:.3g} s: try a longer one first."
    return Sentence("deadline", text, False, {"answers": known, "needed": LEAST_ANSWERS})


def _cohort(advice: Advice) -> list[Sentence]:
    found = advice.cohort
    numbers = plain(vars(found))
    answers = counted(found.needed, "answer")
    now = f"{100 * found.enough_now:.0f} % of the rounds had at least {answers}"
    if found.ask is None and found.enough_now >= CONFIDENCE:
        text = (
            f"{now}. Whether nine rounds of ten go on having as many cannot be said from "
            f"{advice.used.num_rounds} rounds, even if all clients are asked."
        )
        return [Sentence("cohort", text, False, numbers)]
    if found.ask is None:
        text = f"{now}. Nine rounds of ten cannot have as many, even if all clients are asked."
        return [Sentence("cohort", text, numbers=numbers)]
    with_deadline = ""
    if found.deadline is not None and found.deadline != advice.used.deadline:
        with_deadline = f" with the deadline of {found.deadline:.3g} s"
    on = f"Go on asking {counted(found.present, 'client')}"
    if found.is_wanted and found.ask == found.present:
        text = (
            f"{on}: nine rounds of ten have at least {answers}{with_deadline}, and "
            f"{found.wasted:.1f} more than needed on average. Until now {now}."
        )
    elif found.is_wanted:
        text = (
            f"Ask {counted(found.ask, 'client')} instead of {found.present}: nine rounds of ten "
            f"then have at least {answers}{with_deadline}, and {found.wasted:.1f} more than needed "
            f"on average. Until now {now}."
        )
    elif found.enough_now >= CONFIDENCE:
        text = f"{on}: {now}. --needed says how many you want."
    else:
        text = (
            f"{on}: {now}, which is about the mean. If nine rounds of ten must have "
            f"{found.needed}{with_deadline}, ask {found.ask}; --needed says how many you want."
        )
    said = [Sentence("cohort", text, numbers=numbers)]
    if found.saves_time:
        advised = "Do so" if found.enough is not None else "Do so only if that is acceptable"
        if not found.is_wanted:
            advised = "With --needed the settings do so where slow clients keep their share"
        early = f"{100 * found.slow_early:.0f} %"
        now = f"{100 * found.slow_now:.0f} %"
        share = f"then gives {early} of the answers instead of {now}"
        if early == now:
            share = f"still gives {now} of the answers"
        text = (
            f"If a round that asks {found.ask} closes with answer {found.needed} "
            f"(`enough={found.needed}`), it takes {found.seconds_early:.3g} s instead of "
            f"{found.seconds_now:.3g} s; the slower half of the clients {share}. {advised}."
        )
        said.append(Sentence("cohort", text, numbers=numbers))
    return said


def _rule(advice: Advice) -> list[Sentence]:
    rule = advice.rule
    cost = "one model per client"
    if rule.memory_bytes is not None:
        clients = counted(advice.used.num_clients, "client")
        cost = f"{rule.memory_bytes / 1e6:,.0f} MB for {clients}"
    first = f"Aggregate with `{rule.best}`. {STUDY}"
    second = f"{MEMORY_STUDY} It costs the server {cost}."
    return [
        Sentence("rule", first, numbers=plain(vars(rule))),
        Sentence("rule", second, is_said=False, numbers=plain(vars(rule))),
    ]


def _training(advice: Advice) -> list[Sentence]:
    said = []
    for row in advice.training:
        spread = "" if isnan(row["sd"]) else f" ± {row['sd']:.3f}"
        text = (
            f"Trained on {row['partition']} data, `{row['selector']}` with `{row['aggregation']}` "
            f"ends at {row['final']:.3f}{spread} accuracy."
        )
        said.append(Sentence("training", text, numbers=plain(row)))
    return said
