"""The deadline of each round: a number, a function of recent times, or a quantile of them.

Only answers teach how long clients take: those that arrived, and "stopped", which says that a
client would have taken longer. Clients that were lost, failed or were rejected say nothing. The
quantile is that of Kaplan and Meier, in which a stopped client counts as at work for at least the
time that it was given. The quantile of the arrived alone would shrink from round to round, because
each deadline cuts off the slowest.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fedcohort.checks import check_int, check_positive, check_range

MOST_TIMES = 200  # that are remembered, about the last ten rounds of 20 clients
GROWTH = 1.5  # of the longest time, if too many clients were stopped for the quantile to be known


@dataclass(frozen=True)
class RecentTimes:
    """What is known when a deadline is set; a `deadline` function gets it.

    Attributes:
        round: The round that begins, counted from 1.
        answered: Seconds that clients took to answer in recent rounds, oldest first.
        unanswered: Seconds after which clients were stopped without an answer, oldest first.
        deadline: The deadline of the round before; None before the first round.
    """

    round: int
    answered: tuple[float, ...] = ()
    unanswered: tuple[float, ...] = ()
    deadline: float | None = None


DeadlineFunction = Callable[[RecentTimes], float]


@dataclass(frozen=True)
class AutoDeadline:
    """A deadline that most of the clients keep, by the times that they took before.

    The deadline is the quantile of recent times, times `margin`, between `least` and `most`. If
    more clients were stopped than the quantile leaves out, it is half as long again as the longest
    of them took. While fewer than `fewest` times are known it is `most`.

    Args:
        quantile: Share of the clients that shall be in time, above 0 and below 1.
        least: Shortest deadline, in seconds.
        most: Longest deadline, in seconds.
        fewest: Number of times without which nothing is estimated.
        margin: Factor on the quantile. A client stops up to a fifth of the time before the
            deadline, so that its answer arrives; 1.25 makes up for it.

    Raises:
        ValueError: If an argument is out of its bounds.

    Examples:
        >>> from fedcohort.flower import AutoDeadline
        >>> auto = AutoDeadline(quantile=0.5, least=1.0, margin=1.0, fewest=3)
        >>> auto(RecentTimes(round=4, answered=(5.0, 7.0, 30.0)))
        7.0
    """

    quantile: float = 0.9
    least: float = 10.0
    most: float = 600.0
    fewest: int = 10
    margin: float = 1.25

    def __post_init__(self) -> None:
        check_range("quantile", self.quantile, 0.01, 0.99)
        check_positive("least", self.least)
        check_positive("most", self.most)
        if self.most < self.least:
            raise ValueError(f"most must be at least {self.least:g}, got {self.most!r}")
        check_int("fewest", self.fewest, 1, MOST_TIMES)
        check_range("margin", self.margin, 1.0, 100.0)

    def __call__(self, times: RecentTimes) -> float:
        """Return the deadline of the round that begins, in seconds."""
        if len(times.answered) + len(times.unanswered) < self.fewest:
            return self.most
        usual = survival_quantile(times.answered, times.unanswered, self.quantile)
        if usual is None:
            longest = max([*times.answered, *times.unanswered])
            wanted = GROWTH * longest
        else:
            wanted = self.margin * usual
        return min(max(wanted, self.least), self.most)


def survival_quantile(
    answered: Sequence[float], unanswered: Sequence[float], quantile: float
) -> float | None:
    """Return the time within which a share of the clients answer, by Kaplan and Meier.

    Args:
        answered: Times after which clients answered.
        unanswered: Times for which clients were at work without an answer.
        quantile: The share.

    Returns:
        The time, None if too few answered to know it.

    Examples:
        >>> survival_quantile([1.0, 2.0, 3.0, 4.0], [], 0.5)
        2.0
        >>> survival_quantile([1.0, 3.0], [2.0, 2.0], 0.5)
        3.0
    """
    # An answer in the same moment as a stop comes first.
    times = [(seconds, 0) for seconds in answered] + [(seconds, 1) for seconds in unanswered]
    still_working = 1.0
    at_risk = len(times)
    for seconds, is_stopped in sorted(times):
        if not is_stopped:
            still_working *= (at_risk - 1) / at_risk
            if still_working <= 1 - quantile + 1e-9:
                return seconds
        at_risk -= 1
    return None


def check_deadline_option(deadline: Any) -> float | DeadlineFunction | None:
    """Return a deadline as it was given, with "auto" as the function that it stands for.

    Raises:
        ValueError: If it is neither a positive number, nor a function, "auto" or None.
    """
    if isinstance(deadline, type):
        name = deadline.__name__
        raise ValueError(f"deadline must be an object, not its class, got {name}; use {name}()")
    if deadline is None or callable(deadline):
        return deadline  # type: ignore[no-any-return]
    if deadline == "auto":
        return AutoDeadline()
    if isinstance(deadline, str):
        raise ValueError(f"deadline must be a number, a function or 'auto', got {deadline!r}")
    return check_positive("deadline", deadline)


class DeadlinePolicy:
    """Sets the deadline of each round, and remembers the times by which it does.

    Args:
        deadline: A number, a function of recent times, or None for no deadline.

    Attributes:
        current: The deadline of the round that was begun last, in seconds; None for none.
    """

    def __init__(self, deadline: float | DeadlineFunction | None) -> None:
        self._deadline = deadline
        self.current: float | None = None
        if not callable(deadline):
            self.current = deadline
        self._times: deque[tuple[float, bool]] = deque(maxlen=MOST_TIMES)  # seconds, answered

    @property
    def is_fixed(self) -> bool:
        """Whether all rounds have the same deadline, or none."""
        return not callable(self._deadline)

    def begin_round(self, server_round: int) -> float | None:
        """Return the deadline of a round that begins.

        Raises:
            ValueError: If the function returns no positive number.
        """
        if callable(self._deadline):
            wanted = self._deadline(self.recent_times(server_round))
            self.current = check_positive(f"deadline of round {server_round}", wanted)
        return self.current

    def recent_times(self, server_round: int) -> RecentTimes:
        """Return what is known when a round begins."""
        answered = tuple(seconds for seconds, is_answer in self._times if is_answer)
        unanswered = tuple(seconds for seconds, is_answer in self._times if not is_answer)
        return RecentTimes(server_round, answered, unanswered, self.current)

    def record(self, status: str, seconds: float) -> None:
        """Remember how long a client took; other verdicts than these two say nothing.

        Args:
            status: The verdict on the client: "arrived" or "stopped".
            seconds: How long it was at work.
        """
        if status in ("arrived", "stopped"):
            self._times.append((float(seconds), status == "arrived"))

    def state_dict(self) -> dict[str, Any]:
        """Return all as plain values."""
        return {
            "seconds": [seconds for seconds, _ in self._times],
            "answered": [is_answer for _, is_answer in self._times],
            "deadline": self.current,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore all; a checkpoint of an older version holds nothing."""
        self._times.clear()
        pairs = zip(state.get("seconds", []), state.get("answered", []), strict=True)
        for seconds, is_answer in pairs:
            self._times.append((float(seconds), bool(is_answer)))
        if callable(self._deadline) and state.get("deadline") is not None:
            self.current = float(state["deadline"])
