"""The client's side: an app that says who it is and stops at the deadline.

A message carries its deadline: it was created at `created_at` and lives for `ttl` seconds, both set by the server. Server and
clients must agree on the time (NTP), as Flower's own expiry of messages asks for too.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from time import time
from types import FrameType
from typing import Any

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable, Mod

from fedcohort.checks import check_range
from fedcohort.flower.errors import STOPPED, error_reply

IDENTITY = "fedcohort_identity"  # the action of the query that asks a client who it is
NAME_KEYS = ("client-id", "partition-id")  # of the node's configuration, in this order
RING_AGAIN = 1.0  # seconds: for code that swallows the first alarm
LONGEST = 1e8  # seconds that a timer of the system takes
_deadline = inf  # of the message this process works on: Flower gives it one at a time, and its threads may ask


class Stopped(BaseException):
    """Raised in the training function at the deadline; no Exception, so that `except Exception` does not swallow it."""


def time_left() -> float:
    """Return the seconds until this message's work is stopped; infinity outside of a message with a deadline."""
    return _deadline - time()


def check_deadline() -> None:
    """Stop if the deadline has passed: for training loops on threads or on Windows, where no timer can interrupt them."""
    if time_left() <= 0:
        raise Stopped


def force_stop(
    message: Message, context: Context, call_next: ClientAppCallable, *, grace: float = 2.0
) -> Message:
    """Stop the work before the deadline and say so; a message that is late on arrival is answered at once.

    `grace` seconds, or a fifth of the time if that is less, are for the answer to travel: it tells the server that the client
    is alive. What is not finished by then could not have arrived either.
    """
    if message.metadata.message_type.split(".")[0] == MessageType.QUERY:
        return call_next(message, context)  # a question is no work: a late answer is as good
    ttl = message.metadata.ttl
    moment = message.metadata.created_at + ttl - min(grace, 0.2 * ttl)
    before = _set_deadline(moment)
    try:
        check_deadline()
        with _timer(moment - time()):
            return call_next(message, context)
    except Stopped:
        return error_reply(message, STOPPED, f"stopped at the deadline of {ttl:g} s")
    finally:
        _set_deadline(before)


def _set_deadline(moment: float) -> float:
    """Set the deadline and return the one before."""
    global _deadline
    before, _deadline = _deadline, moment
    return before


@contextmanager
def _timer(seconds: float) -> Iterator[None]:
    """Raise Stopped in the main thread after so many seconds; elsewhere do nothing, the work checks by itself."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    start, (left, again) = time(), signal.getitimer(signal.ITIMER_REAL)
    before: Any = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 1e-6), LONGEST), RING_AGAIN)
        yield
    finally:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        finally:  # the alarm may ring just here, and would again in a second
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
            if left:
                signal.setitimer(signal.ITIMER_REAL, max(left - (time() - start), 1e-6), again)


def client_app(mods: Sequence[Mod] = (), grace: float = 2.0) -> ClientApp:
    """Return a ClientApp that stops at the deadline and answers the server's question who it is; mods are yours."""
    app = ClientApp(
        mods=[partial(force_stop, grace=check_range("grace", grace, 0.0, 3600.0)), *mods]
    )
    app.query(IDENTITY)(identity)
    return app


def identity(message: Message, context: Context) -> Message:
    """Say who this client is, as its node was told: `--node-config "client-id=…"`, or the simulation's partition."""
    named = [str(context.node_config[key]) for key in NAME_KEYS if key in context.node_config]
    return Message(
        RecordDict({"identity": ConfigRecord({"name": named[0] if named else ""})}),
        reply_to=message,
    )
