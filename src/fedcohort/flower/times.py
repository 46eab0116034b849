"""How long a client took, by clocks that may be wrong."""

from math import isnan


def answer_seconds(sent_at: float, answered_at: float, longest: float) -> float:
    """Return the seconds from a message to its answer, between 0 and the longest possible.

    The time of an answer is what the client says. It may be any number, also none: NaN counts as
    the longest time, so that nobody looks quick by it.

    Args:
        sent_at: When the message was created, by the server's wall clock.
        answered_at: When the answer was created, by the client's wall clock.
        longest: Seconds after which the server had the answer.
    """
    seconds = answered_at - sent_at
    longest = max(0.0, longest)
    if isnan(seconds):
        return longest
    return min(max(0.0, seconds), longest)
