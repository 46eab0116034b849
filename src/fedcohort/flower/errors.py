"""Error replies of our own: the codes that mods and the grid answer with."""

from flwr.app import Error, Message

# Far from Flower's own codes, which are small numbers.
STOPPED = 1001  # the client was stopped at the deadline
FAILED = 1002  # the volatility mod decided that the client fails
UNREADABLE = 1003  # the reply could not be read
NOT_TAKEN = 1004  # Flower did not accept the message to the client
TROUBLE = 1005  # the SuperLink had trouble, so nobody knows what came of the message


def error_reply(message: Message, code: int, reason: str) -> Message:
    """Return a reply without a model. Flower's own strategies count it as a failure."""
    return Message(Error(code, reason), reply_to=message)
