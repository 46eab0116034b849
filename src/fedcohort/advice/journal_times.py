"""The times of a journal: which are possible, who was late, and when clients stop."""

from collections.abc import Mapping, Sequence
from math import inf, isfinite, isnan, nan
from typing import Any

from fedcohort.advice.log import LATE_ANSWER, Question
from fedcohort.early_stop import GRACE, stop_margin

STOPPED = "stopped"  # the client stopped at the deadline and said so
NEVER = 0.0
IGNORED_ANSWERS = 0.01  # share of the answers that a clock may have delayed
SLACK = 2.0  # seconds that a round may take beyond its deadline
Row = Mapping[str, Any]


def settle_lost(questions: Sequence[Question], limits: Mapping[int, float]) -> None:
    """Set that lost clients were not late where late ones say so, or without a deadline.

    Clients of `client_app` report that they were stopped. Once one did, a client that says nothing
    was not merely late: counted as perhaps late, lateness would count twice.
    """
    reports_stops = any(question.status == STOPPED for question in questions)
    for question in questions:
        is_settled = reports_stops or limits[question.round] == inf
        if not question.arrived and isnan(question.late) and is_settled:
            question.late = NEVER


def stopping_grace(questions: Sequence[Question], limits: Mapping[int, float]) -> float:
    """Return how long before the deadline clients stop: 2 s, or less if answers came later.

    Clients without `client_app`, or with a grace of their own, answer until their own limit.
    """
    spare = []
    for question in questions:
        limit = limits[question.round]
        if question.arrived and isfinite(question.seconds) and limit < inf:
            left = limit - question.seconds
            spare.append(left if left < stop_margin(limit) else GRACE)
    if not spare:
        return GRACE
    spare.sort()
    return max(0.0, spare[int(IGNORED_ANSWERS * len(spare))])


def forget_impossible_times(
    questions: Sequence[Question], rows: Sequence[Row], limits: Mapping[int, float]
) -> list[str]:
    """Forget answer times below 0 or longer than their round, and say how many there were."""
    longest = {row["round"]: float(row["seconds"]) + SLACK for row in rows}
    count = 0
    for question in questions:
        limit = limits[question.round] + SLACK
        if question.status != LATE_ANSWER:
            limit = min(limit, longest[question.round])
        if isfinite(question.seconds) and not 0 <= question.seconds <= limit:
            question.seconds = nan
            count += 1
    if not count:
        return []
    return [
        f"{count} answer times are below 0 or longer than their round, as if a clock had jumped: "
        "the answers count, their times do not."
    ]


def round_lengths(rows: Sequence[Row], limits: Mapping[int, float]) -> tuple[dict[int, float], int]:
    """Return how long rounds took, nan where no deadline allows it, and how many those are."""
    lengths = {}
    odd = 0
    for row in rows:
        seconds = float(row["seconds"])
        if seconds > 2 * limits[row["round"]] + SLACK:
            seconds = nan
            odd += 1
        lengths[row["round"]] = seconds
    return lengths, odd
