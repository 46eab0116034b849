"""A sentence of the advice, and numbers in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedcohort.advice.estimates import Interval
from fedcohort.reports.pages.deployment_answer import REASONS

TOPICS = {  # and the titles of the parts about them
    "seen": "What the log shows",
    "deadline": "Deadline",
    "cohort": "Cohort",
    "selector": "Selector",
    "rule": "Aggregation",
    "training": "Training",
}


@dataclass(frozen=True)
class Sentence:
    """One sentence of the advice.

    Attributes:
        topic: Subject, a key of `TOPICS`.
        text: The sentence.
        is_said: False where something cannot be said from so little data.
        numbers: The numbers that it rests on, by name.
    """

    topic: str
    text: str
    is_said: bool = True
    numbers: dict[str, Any] = field(default_factory=dict)


def printable(text: str) -> str:
    r"""Return a text of a log, such as a name, with "?" for each character that is not printed.

    Control characters could command a terminal.

    Examples:
        >>> printable("phone\x1b[31m")
        'phone?[31m'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def count_reasons(reasons: Mapping[str, int]) -> list[str]:
    """Return how many updates are missing for each reason, in words.

    Args:
        reasons: How often each word of a log occurred.

    Examples:
        >>> count_reasons({"lost": 1_200, "offline": 2})
        ['1,200 never answered', '2 offline']
    """
    return [f"{count:,} {REASONS.get(word, word)}" for word, count in reasons.items() if word]


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


def more_or_fewer(interval: Interval, digits: int) -> str:
    """Return by how much something is more, or fewer if it is below 0, with its interval.

    Examples:
        >>> more_or_fewer(Interval(0.5, 0.4, 0.6), 1), more_or_fewer(Interval(-0.5, -0.7, 0.1), 1)
        ('0.5 (0.4 to 0.6) more', '0.5 (-0.1 to 0.7) fewer')
    """
    if interval.value >= 0:
        return f"{number(interval, digits)} more"
    fewer = Interval(-interval.value, -interval.high, -interval.low)
    return f"{number(fewer, digits)} fewer"


def percent_apart(value: float, bound: float) -> str:
    """Return a share in percent, with decimals if it would else read like the bound beside it.

    Args:
        value: The share.
        bound: What the share is compared with.

    Examples:
        >>> percent_apart(0.24, 0.03), percent_apart(0.033, 0.03), percent_apart(0.9496, 0.95)
        ('24', '3.3', '94.96')
    """
    for digits in range(4):
        text = f"{100 * value:.{digits}f}"
        if float(text) != round(100 * bound, digits) or value == bound:
            break
    return text


def would_tell(rounds: int | None) -> str:
    """Return how many more rounds would tell, as the end of a sentence; empty if unknown.

    Examples:
        >>> would_tell(40), would_tell(None)
        ('; about 40 more rounds would tell', '')
    """
    if not rounds:
        return ""
    return f"; about {rounds} more rounds would tell"
