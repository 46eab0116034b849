"""A cohort on its way through a round: asked, then answered, then told to the selector."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from flwr.app import Message

from fedcohort.arrays import Floats, Ints
from fedcohort.checks import LARGEST_FLOAT
from fedcohort.flower.models import Model
from fedcohort.flower.times import answer_seconds
from fedcohort.flower.verdicts import Verdict
from fedcohort.selection.protocol import Cohort, Outcome

ANSWERED = ("arrived", "stopped", "rejected", "failed")  # verdicts on a client's own reply


@dataclass
class AskedCohort:
    """A round that waits for its replies.

    Attributes:
        cohort: The clients that the selector chose.
        messages: The messages to them, in the same order.
        model: The model that the messages carry.
        probabilities: Each client's probability of being asked, by name; None if not known.
        started_at: When the round began.
        paused: Seconds that the run paused before the round.
        resting: Names of clients that are not asked because they were rejected too often.
        absent: Names of known clients that cannot be asked, those that rest among them.
        available: Indices of the clients that can be asked; None if all can.
        judged: Verdicts on the replies that came so far, by message id.
        is_closed: Whether enough clients have answered, so that the others are not waited for.
    """

    cohort: Cohort
    messages: list[Message]
    model: Model
    probabilities: dict[str, float] | None
    started_at: float
    paused: float
    resting: list[str]
    absent: list[str]
    available: Ints | None
    judged: dict[str, Verdict] = field(default_factory=dict)
    is_closed: bool = False


@dataclass(frozen=True, eq=False)
class AnsweredCohort:
    """A round whose replies are judged.

    Attributes:
        cohort: The clients that were asked.
        verdicts: The verdicts on them, in the same order.
        model: The model that was sent.
        declared_examples: The number of examples of every client, None where it is unknown or
            implausible.
        available: Indices of the clients that could be asked; None if all could.
    """

    cohort: Cohort
    verdicts: Sequence[Verdict]
    model: Model
    declared_examples: Sequence[float | None]
    available: Ints | None = None

    @property
    def arrived(self) -> list[int]:
        """Positions in the cohort of the clients whose reply counts."""
        positions = []
        for position, verdict in enumerate(self.verdicts):
            if verdict.status == "arrived":
                positions.append(position)
        return positions


def describe_outcome(
    cohort: Cohort, verdicts: Sequence[Verdict], waited: Floats, has_losses: bool
) -> Outcome:
    """Return what the selector is told of a round.

    Args:
        cohort: The clients that were asked.
        verdicts: The verdicts on them.
        waited: Seconds that the server waited for each of them.
        has_losses: Whether clients report a loss.
    """
    success = np.array([verdict.status == "arrived" for verdict in verdicts], dtype=np.bool_)
    loss = None
    if has_losses:
        loss = np.array([verdict.loss for verdict in verdicts])
    censored = np.array([verdict.status == "unneeded" for verdict in verdicts], dtype=np.bool_)
    return Outcome(
        cohort,
        success,
        loss,
        seconds=waited,
        norm=update_norms(verdicts),
        censored=censored if censored.any() else None,
    )


def update_norms(verdicts: Sequence[Verdict]) -> Floats:
    """Return the length of each update, nan where none arrived.

    A length beyond the range of a float counts as the largest float.
    """
    norms = np.array([verdict.norm for verdict in verdicts], dtype=np.float64)
    return np.minimum(norms, LARGEST_FLOAT)


def seconds_waited(
    messages: Sequence[Message],
    replies: Mapping[str, Message],
    verdicts: Sequence[Verdict],
    round_seconds: float,
) -> Floats:
    """Return how long the server waited for each client, at most until the round ended.

    Args:
        messages: The messages that were sent.
        replies: The replies by message id.
        verdicts: The verdicts on the clients; of those that did not answer the round's end counts.
        round_seconds: How long the round took.
    """
    round_seconds = max(0.0, round_seconds)
    waited = []
    for message, verdict in zip(messages, verdicts, strict=True):
        reply = replies.get(message.metadata.message_id)
        if reply is None or verdict.status not in ANSWERED:
            waited.append(round_seconds)
        else:
            sent_at = message.metadata.created_at
            waited.append(answer_seconds(sent_at, reply.metadata.created_at, round_seconds))
    return np.array(waited, dtype=np.float64)


def add_seconds(verdicts: Sequence[Verdict], waited: Floats) -> list[Verdict]:
    """Return the verdicts, with the time that the server waited for each reply that counts."""
    timed = []
    for verdict, seconds in zip(verdicts, waited.tolist(), strict=True):
        if verdict.status == "arrived":
            verdict = replace(verdict, seconds=round(seconds, 3))
        timed.append(verdict)
    return timed
