"""What came of each client asked: one word, and the reason where there is one."""

from dataclasses import dataclass

from flwr.app import Error, Message

from fedcohort.flower.private import CRASHED, NODE_GONE, UNDELIVERED

STOPPED, FAILED, UNREADABLE, NOT_TAKEN = (
    1001,
    1002,
    1003,
    1004,
)  # error codes of our own, far from Flower's
LONGEST_REASON = 500  # characters


@dataclass(frozen=True)
class Fate:
    """What came of a client that was asked.

    status: arrived; stopped (cut at the deadline); rejected (its model was not valid); failed (it said so);
    lost (nothing was heard of it by the deadline, or its node is gone).
    """

    status: str
    reason: str = ""
    seconds: float | None = None


def fate_of_error(error: Error) -> Fate:
    """Return what an error reply says of the client."""
    reason = (error.reason or "").strip().splitlines()
    last = printable(reason[-1])[:LONGEST_REASON] if reason else f"error {error.code}"
    if error.code == STOPPED:
        return Fate("stopped", last)
    if error.code == UNREADABLE:
        return Fate("rejected", last)
    if error.code == NOT_TAKEN:
        return Fate("lost", last)
    if error.code in UNDELIVERED:
        return Fate(
            "lost", "its node is gone" if error.code == NODE_GONE else "no answer by the deadline"
        )
    return Fate("lost", "its app crashed") if error.code == CRASHED else Fate("failed", last)


def printable(text: str) -> str:
    """Return a client's words without what would command a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def error_reply(to: Message, code: int, reason: str) -> Message:
    """Return an answer without a model: stock strategies count it as a failure too."""
    return Message(Error(code, reason), reply_to=to)
