"""One verdict for each client that was asked: status, reason, and the model if it counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flwr.app import Error, Message, RecordDict

from fedcohort.flower.errors import NOT_TAKEN, STOPPED, TROUBLE, UNREADABLE
from fedcohort.flower.flwr_internals import CRASHED, NODE_GONE, UNDELIVERED
from fedcohort.flower.limits import ReplyRules
from fedcohort.flower.models import Model
from fedcohort.flower.replies import EVALUATION_CHECKS, TRAINING_CHECKS, Reply

LONGEST_REASON = 500  # characters
NO_ANSWER = "no answer by the deadline"


@dataclass(frozen=True, eq=False)
class Verdict:
    """The server's decision about one client that was asked to train.

    Attributes:
        status: "arrived", "stopped" (at the deadline), "rejected" (the reply failed a check),
            "failed" (the client reported an error), "lost" (no answer by the deadline, or the
            node is gone), or "unknown" (the SuperLink had trouble; the client is not to blame).
        reason: Why the reply does not count; empty if it does.
        seconds: Time between the message and the reply; None unless the reply counts.
        reply: The reply; None unless it counts.
        model: The trained model; None unless the reply counts.
        examples: The number of examples that the client declared.
        loss: The loss that the client reported, NaN if none was asked for.
    """

    status: str
    reason: str = ""
    seconds: float | None = None
    reply: Message | None = None
    model: Model | None = None
    examples: float = 0.0
    loss: float = float("nan")


def judge_training(
    messages: Sequence[Message],
    replies: Mapping[str, Message],
    model: Model,
    rules: ReplyRules,
) -> list[Verdict]:
    """Return a verdict for each message, given the replies by message id."""
    verdicts = []
    for message in messages:
        reply = replies.get(message.metadata.message_id)
        verdicts.append(_judge_reply(message, reply, model, rules))
    return _reject_odd_schemas(verdicts)


def _judge_reply(
    message: Message, reply: Message | None, model: Model, rules: ReplyRules
) -> Verdict:
    if reply is None:
        return Verdict("lost", NO_ANSWER)
    if reply.has_error():
        return verdict_of_error(reply.error)

    checked = Reply(reply.content, rules, model)
    try:
        for check in TRAINING_CHECKS:
            check(checked)
    except ValueError as error:
        return Verdict("rejected", str(error))

    checked.sort_arrays()
    seconds = reply.metadata.created_at - message.metadata.created_at
    return Verdict(
        "arrived",
        seconds=round(seconds, 3),
        reply=reply,
        model=checked.model,
        examples=checked.examples,
        loss=checked.loss,
    )


def _reject_odd_schemas(verdicts: list[Verdict]) -> list[Verdict]:
    """Reject replies whose records differ from most others.

    Strategies refuse to average records of different schemas, so one odd client would end the run.
    """
    contents = [verdict.reply.content for verdict in verdicts if verdict.reply]
    if not contents:
        return verdicts

    usual = usual_schema(contents)
    judged = []
    for verdict in verdicts:
        if verdict.reply and schema(verdict.reply.content) != usual:
            judged.append(Verdict("rejected", "its records are not those of the others"))
        else:
            judged.append(verdict)
    return judged


def verdict_of_error(error: Error) -> Verdict:
    """Return the verdict on a client whose reply is an error."""
    reason = error_reason(error)
    if error.code == STOPPED:
        return Verdict("stopped", reason)
    if error.code == UNREADABLE:
        return Verdict("rejected", reason)
    if error.code == TROUBLE:
        return Verdict("unknown", reason)
    if error.code == NOT_TAKEN:
        return Verdict("lost", reason)
    if error.code == NODE_GONE:
        return Verdict("lost", "its node is gone")
    if error.code in UNDELIVERED:
        return Verdict("lost", NO_ANSWER)
    if error.code == CRASHED:
        return Verdict("lost", "its app crashed")
    return Verdict("failed", reason)


def error_reason(error: Error) -> str:
    """Return the last line of an error's text, safe to print and not too long."""
    lines = (error.reason or "").strip().splitlines()
    if not lines:
        return f"error {error.code}"
    return printable(lines[-1])[:LONGEST_REASON]


def printable(text: str) -> str:
    """Return a text in which control characters cannot command a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def judge_evaluations(
    replies: Sequence[Message], rules: ReplyRules, client_names: Mapping[str, str]
) -> tuple[list[Message], list[str]]:
    """Return the evaluations that can be averaged, and a complaint for each of the others.

    Args:
        replies: Replies to the evaluation messages.
        rules: Limits and metric names.
        client_names: Name of the client by message id. It is needed because Flower answers for
            silent nodes in its own name.
    """
    valid = []
    complaints = []
    for reply in replies:
        try:
            if reply.has_error():
                raise ValueError(verdict_of_error(reply.error).reason)
            checked = Reply(reply.content, rules)
            for check in EVALUATION_CHECKS:
                check(checked)
        except ValueError as error:
            complaints.append(f"client {_sender(reply, client_names)}: {error}")
        else:
            valid.append(reply)
    if not valid:
        return [], complaints

    usual = usual_schema([reply.content for reply in valid])
    alike = []
    for reply in valid:
        if schema(reply.content) == usual:
            alike.append(reply)
        else:
            complaints.append(f"client {_sender(reply, client_names)}: odd records")
    return alike, complaints


def _sender(reply: Message, client_names: Mapping[str, str]) -> str:
    return client_names.get(reply.metadata.reply_to_message_id, "?")


def schema(content: RecordDict) -> tuple[Any, ...]:
    """Return the names of records and metrics, and the lengths of lists.

    Strategies can average only replies with the same schema.
    """
    parts: list[Any] = []
    for record_name, record in sorted(content.metric_records.items()):
        metrics = []
        for name, value in record.items():
            length = len(value) if isinstance(value, list) else -1
            metrics.append((name, length))
        parts.append((record_name, tuple(sorted(metrics))))
    return (*parts, *sorted(content.array_records))


def usual_schema(contents: Sequence[RecordDict]) -> tuple[Any, ...]:
    """Return the schema of most replies, the first one if several are as common."""
    return Counter(map(schema, contents)).most_common(1)[0][0]
