"""What came of each client asked: one word, and the reason where there is one."""

from dataclasses import dataclass

from flwr.app import Error, Message

from fedcohort.flower.private import CRASHED, NODE_GONE, UNDELIVERED

STOPPED, FAILED = 1001, 1002  # error codes of our own, far from Flower's


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
    last = reason[-1] if reason else f"error {error.code}"
    if error.code == STOPPED:
        return Fate("stopped", last)
    if error.code in UNDELIVERED:
        return Fate("lost", "its node is gone" if error.code == NODE_GONE else "no answer by the deadline")
    return Fate("lost", "its app crashed") if error.code == CRASHED else Fate("failed", last)


def error_reply(to: Message, code: int, reason: str) -> Message:
    """Return an answer without a model: stock strategies count it as a failure too."""
    return Message(Error(code, reason), reply_to=to)
