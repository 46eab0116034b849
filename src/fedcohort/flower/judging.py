"""What came of a round: every client asked gets a fate, and the models that count are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flwr.app import Message

from fedcohort.flower.outcomes import Fate, fate_of_error
from fedcohort.flower.validity import (
    Limits,
    Model,
    declared_metrics,
    in_order,
    schema,
    trained_model,
    usual_schema,
)


@dataclass(frozen=True)
class Rules:
    """What a reply is judged by: its limits, and the names of the metrics that hold its examples and, if wanted, its loss."""

    limits: Limits
    examples_key: str = "num-examples"
    loss_key: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.limits, Limits):
            raise ValueError(f"limits must be Limits, got {self.limits!r}")


@dataclass(frozen=True, eq=False)
class Verdict:
    """A client's fate, and what it returned if that counts."""

    fate: Fate
    reply: Message | None = None
    model: Model | None = None
    examples: float = 0.0
    loss: float = float("nan")


LOST = Verdict(Fate("lost", "no answer by the deadline"))


def judge(
    sent: list[Message], replies: Mapping[str, Message], model: Model, rules: Rules
) -> list[Verdict]:
    """Return a verdict for every message sent; replies by the message they answer."""
    verdicts = [
        _judge(message, replies.get(message.metadata.message_id), model, rules) for message in sent
    ]
    returned = [verdict.reply.content for verdict in verdicts if verdict.reply]
    if not returned:
        return verdicts
    # strategies refuse to average records of different schemas: one odd client would end the run
    usual = usual_schema(returned)
    odd = Verdict(Fate("rejected", "its records are not those of the others"))
    return [
        odd if verdict.reply and schema(verdict.reply.content) != usual else verdict
        for verdict in verdicts
    ]


def _judge(message: Message, reply: Message | None, model: Model, rules: Rules) -> Verdict:
    if reply is None:
        return LOST
    if reply.has_error():
        return Verdict(fate_of_error(reply.error))
    try:
        trained = trained_model(reply.content, model, rules.limits)
        metrics = declared_metrics(reply.content, rules.examples_key, rules.limits)
        loss = metrics.get(rules.loss_key, float("nan")) if rules.loss_key else float("nan")
        if rules.loss_key and (rules.loss_key not in metrics or isinstance(loss, list)):
            raise ValueError(
                f"metric {rules.loss_key!r} must be one number, got {metrics.get(rules.loss_key)!r}"
            )
    except ValueError as error:
        return Verdict(Fate("rejected", str(error)))
    in_order(reply.content, model)
    seconds = round(reply.metadata.created_at - message.metadata.created_at, 3)
    return Verdict(
        Fate("arrived", seconds=seconds),
        reply,
        trained,
        float(metrics[rules.examples_key]),
        float(loss),
    )


def sound_evaluations(
    replies: list[Message], rules: Rules, sent: Sequence[tuple[Message, str]]
) -> tuple[list[Message], list[str]]:
    """Return the evaluations that can be averaged, and why the others cannot; sent: the messages, and to which client."""
    sound, complaints = [], []
    names = {
        message.metadata.message_id: name for message, name in sent
    }  # Flower answers for the silent in its own name

    def who(reply: Message) -> str:
        return f"client {names.get(reply.metadata.reply_to_message_id, '?')}"

    for reply in replies:
        try:
            if reply.has_error():
                raise ValueError(fate_of_error(reply.error).reason)
            declared_metrics(reply.content, rules.examples_key, rules.limits)
            sound.append(reply)
        except ValueError as error:
            complaints.append(f"{who(reply)}: {error}")
    if sound:
        usual = usual_schema([reply.content for reply in sound])
        complaints += [
            f"{who(reply)}: odd records" for reply in sound if schema(reply.content) != usual
        ]
        sound = [reply for reply in sound if schema(reply.content) == usual]
    return sound, complaints
