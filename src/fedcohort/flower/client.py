"""The client's side: an app that says which client it is and stops at the deadline.

A message carries its deadline: the server sets when it was created (`created_at`) and how many
seconds it lives (`ttl`). The clocks of server and clients must agree (NTP), as Flower's own
expiry of messages requires, too.
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
from fedcohort.early_stop import GRACE, stop_margin
from fedcohort.flower.errors import STOPPED, error_reply

IDENTITY = "fedcohort_identity"  # the query action with which the server asks who a client is
NAME_KEYS = ("client-id", "partition-id")  # of the node's configuration, the first one counts

# Both in seconds.
REPEAT_ALARM = 1.0  # for code that swallows the first alarm
LONGEST_TIMER = 1e8  # the system refuses longer timers

# When the work of the current message is stopped. One variable for the whole process, because
# Flower gives a process one message at a time, and threads that the training starts must see it.
_deadline = inf


class Stopped(BaseException):
    """Raised in the training function at the deadline.

    It is not an `Exception`, so that `except Exception` does not swallow it.
    """


def time_left() -> float:
    """Return the seconds until the work on the current message is stopped.

    Returns:
        The seconds; infinity outside of a message with a deadline.

    Examples:
        >>> from fedcohort.flower import time_left
        >>> time_left()
        inf
    """
    return _deadline - time()


def check_deadline() -> None:
    """Stop if the deadline has passed.

    Call it once per batch if the training loop runs on a thread or on Windows, where no timer can
    interrupt it.

    Raises:
        Stopped: If no time is left.
    """
    if time_left() <= 0:
        raise Stopped


def force_stop(
    message: Message, context: Context, call_next: ClientAppCallable, *, grace: float = GRACE
) -> Message:
    """Stop the work shortly before the deadline and answer that it was stopped.

    The answer tells the server that the client is alive. A message that is late on arrival is
    answered at once. Queries are passed on, because a late answer to them is as good.

    Args:
        message: The message of the server.
        context: The context of the client.
        call_next: The next mod, or the app.
        grace: Seconds before the deadline that are kept for the answer to travel; at most a fifth
            of the whole time. Work that is not done by then could not have arrived either.

    Returns:
        The reply of the app, or an error reply if the work was stopped.
    """
    if message.metadata.message_type.split(".")[0] == MessageType.QUERY:
        return call_next(message, context)

    ttl = message.metadata.ttl
    stop_at = message.metadata.created_at + ttl - float(stop_margin(ttl, grace))
    deadline_before = _set_deadline(stop_at)
    try:
        check_deadline()
        with _timer(stop_at - time()):
            return call_next(message, context)
    except Stopped:
        return error_reply(message, STOPPED, f"stopped at the deadline of {ttl:g} s")
    finally:
        _set_deadline(deadline_before)


def client_app(
    mods: Sequence[Mod] = (), grace: float = GRACE, properties: Sequence[str] = ()
) -> ClientApp:
    """Return a ClientApp that stops at the deadline and tells the server which client it is.

    Args:
        mods: Mods of your own; they run inside the deadline.
        grace: Seconds before the deadline at which the work is stopped, see `force_stop`.
        properties: Keys of the node's configuration (`--node-config`) whose values the server may
            know, for `CohortStrategy(eligible=...)`. Others are not sent.

    Returns:
        An app to register training and evaluation functions on, as on Flower's `ClientApp`.

    Raises:
        ValueError: If `grace` is not between 0 and 3600.

    Examples:
        >>> from fedcohort.flower import client_app
        >>> app = client_app()
        >>> @app.train()
        ... def train(message, context): ...
    """
    stop = partial(force_stop, grace=check_range("grace", grace, 0.0, 3600.0))
    app = ClientApp(mods=[stop, *mods])
    app.query(IDENTITY)(partial(answer_identity, properties=tuple(properties)))
    return app


def answer_identity(message: Message, context: Context, properties: Sequence[str] = ()) -> Message:
    """Answer which client this is, and the properties of its node that the server may know.

    The name is `client-id` or `partition-id` of the node's configuration, as in
    `--node-config "client-id=..."`; it is empty if there is neither.
    """
    name = ""
    for key in NAME_KEYS:
        if key in context.node_config:
            name = str(context.node_config[key])
            break
    shared: dict[str, Any] = {}
    for key in properties:
        if key in context.node_config:
            shared[key] = context.node_config[key]
    content = RecordDict(
        {"identity": ConfigRecord({"name": name}), "properties": ConfigRecord(shared)}
    )
    return Message(content, reply_to=message)


def _set_deadline(deadline: float) -> float:
    """Set the deadline and return the one before."""
    global _deadline
    before = _deadline
    _deadline = deadline
    return before


@contextmanager
def _timer(seconds: float) -> Iterator[None]:
    """Raise `Stopped` in the main thread after some seconds.

    On other threads and on Windows there is no timer. There the work calls `check_deadline`.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    start = time()
    outer_left, outer_repeat = signal.getitimer(signal.ITIMER_REAL)
    outer_handler: Any = signal.signal(signal.SIGALRM, stop)
    try:
        first_alarm = min(max(seconds, 1e-6), LONGEST_TIMER)
        signal.setitimer(signal.ITIMER_REAL, first_alarm, REPEAT_ALARM)
        yield
    finally:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        finally:  # the alarm may ring just here, and would ring again in a second
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, outer_handler)
            if outer_left:
                left = max(outer_left - (time() - start), 1e-6)
                signal.setitimer(signal.ITIMER_REAL, left, outer_repeat)
