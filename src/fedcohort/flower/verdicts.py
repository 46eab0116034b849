"""One verdict for each client that was asked: status, reason, and the model if it counts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flwr.app import Error, Message

from fedcohort.flower.errors import NOT_TAKEN, STOPPED, TROUBLE, UNREADABLE
from fedcohort.flower.flwr_internals import CRASHED, NODE_GONE, UNDELIVERED
from fedcohort.flower.history import RecentMedian, ReplyHistory
from fedcohort.flower.layouts import UsualLayout, arrange_replies
from fedcohort.flower.limits import ReplyRules
from fedcohort.flower.models import Model, distance
from fedcohort.flower.replies import TRAINING_CHECKS, Reply
from fedcohort.flower.text import describe_error, printable

LEAST_LOSS = 1.0  # a smaller median says nothing: where most have learnt, others have not
LONGEST_TAIL = 100_000  # characters of an error's text, in which its last line is looked for
NO_ANSWER = "no answer by the deadline"
ODD_LAYOUT = "its records are not those of the others"


@dataclass(frozen=True, eq=False)
class Verdict:
    """The server's decision about one client that was asked to train.

    Attributes:
        status: "arrived", "stopped" (at the deadline), "rejected" (the reply failed a check),
            "failed" (the client reported an error), "lost" (no answer by the deadline, or the
            node is gone), "unneeded" (the round closed before it answered, because enough others
            had), or "unknown" (the SuperLink had trouble). The last two are not to blame.
        reason: Why the reply does not count; empty if it does.
        seconds: Time that the server waited for the reply, known when the round is over; None
            unless the reply counts.
        reply: The reply; None unless it counts.
        model: The trained model; None unless the reply counts.
        examples: The number of examples that the client declared.
        loss: The loss that the client reported, NaN if none was asked for.
        norm: Length of the update without arrays of whole numbers; NaN unless the reply counts.
    """

    status: str
    reason: str = ""
    seconds: float | None = None
    reply: Message | None = None
    model: Model | None = None
    examples: float = 0.0
    loss: float = float("nan")
    norm: float = float("nan")


UNNEEDED = Verdict("unneeded", "enough others had answered")


def rejected(reason: str) -> Verdict:
    """Return the verdict on a reply that does not count, with a reason that is short."""
    return Verdict("rejected", printable(reason))


def judge_training(
    messages: Sequence[Message],
    replies: Mapping[str, Message],
    model: Model,
    rules: ReplyRules,
    history: ReplyHistory | None = None,
    clients: Sequence[str] | None = None,
    *,
    judged: Mapping[str, Verdict] | None = None,
    is_closed: bool = False,
) -> list[Verdict]:
    """Return a verdict for each message.

    Args:
        messages: The messages that were sent.
        replies: The replies by message id.
        model: The model that was sent.
        rules: Limits and metric names.
        history: What earlier rounds taught; this round is added to it.
        clients: Name of the client of each message; None names them by their position.
        judged: Verdicts on single replies by message id, of those that are judged already.
        is_closed: Whether the round closed early, so that silence is no failure.
    """
    history = history or ReplyHistory()
    judged = {} if judged is None else judged
    if clients is None:
        clients = [str(position) for position in range(len(messages))]

    verdicts = {}
    for client, message in zip(clients, messages, strict=True):
        reply = replies.get(message.metadata.message_id)
        if reply is None:
            verdicts[client] = UNNEEDED if is_closed else Verdict("lost", NO_ANSWER)
            continue
        verdict = judged.get(message.metadata.message_id)
        verdicts[client] = verdict or judge_reply(reply, model, rules)
    _reject_far_models(verdicts, rules.limits.norm_factor, history.norms)
    _reject_many_examples(verdicts, rules, history.examples)
    if rules.loss_key is not None:
        _reject_large_losses(verdicts, rules, history.losses)
    _reject_odd_layouts(verdicts, history.training)
    return list(verdicts.values())


def judge_reply(reply: Message, model: Model, rules: ReplyRules) -> Verdict:
    """Return the verdict on one reply, without a look at the others."""
    if reply.has_error():
        return verdict_of_error(reply.error)

    checked = Reply(reply.content, rules, model)
    try:
        for check in TRAINING_CHECKS:
            check(checked)
        checked.rewrite()
    except ValueError as error:
        return rejected(str(error))
    except Exception as error:  # a client may send anything, and must not end the run
        return rejected(f"its answer cannot be read: {describe_error(error)}")

    reply.content = checked.content
    return Verdict(
        "arrived",
        reply=reply,
        model=checked.model,
        examples=checked.examples,
        loss=checked.loss,
        norm=distance(checked.model, model, counts_integers=False),
    )


def _reject_far_models(verdicts: dict[str, Verdict], factor: float, norms: RecentMedian) -> None:
    """Reject models that moved many times as far as the median client."""

    def measure(verdict: Verdict) -> float:
        return verdict.norm

    def explain(norm: float, bound: float) -> str:
        return (
            f"the model is {norm:.4g} from the one sent, "
            f"more than {factor:g} times the median, {bound:.4g}"
        )

    _reject_large(verdicts, measure, factor, norms, explain)


def _reject_many_examples(
    verdicts: dict[str, Verdict], rules: ReplyRules, examples: RecentMedian
) -> None:
    """Reject clients that declare many times as many examples as the median client."""

    def measure(verdict: Verdict) -> float:
        return verdict.examples

    def explain(number: float, bound: float) -> str:
        return explain_examples(rules, number, bound)

    _reject_large(verdicts, measure, rules.limits.examples_factor, examples, explain)


def explain_examples(rules: ReplyRules, number: float, bound: float) -> str:
    """Return why so many examples do not count."""
    return (
        f"{rules.examples_key!r} must be at most {rules.limits.examples_factor:g} times the "
        f"median, {bound:g}, got {number:g}"
    )


def _reject_large_losses(
    verdicts: dict[str, Verdict], rules: ReplyRules, losses: RecentMedian
) -> None:
    """Reject clients whose loss is many times as large as that of the median client."""
    factor = rules.limits.loss_factor

    def measure(verdict: Verdict) -> float:
        return abs(verdict.loss)

    def explain(loss: float, bound: float) -> str:
        return (
            f"{rules.loss_key!r} must be at most {factor:g} times the median, {bound:g}, "
            f"got {loss:g}"
        )

    _reject_large(verdicts, measure, factor, losses, explain, least=LEAST_LOSS)


def _reject_large(
    verdicts: dict[str, Verdict],
    measure: Callable[[Verdict], float],
    factor: float,
    recent: RecentMedian,
    explain: Callable[[float, float], str],
    least: float = 0.0,
) -> None:
    """Reject replies beyond a multiple of the median; a value at the bound is accepted."""
    values = {}
    for client, verdict in verdicts.items():
        if verdict.status == "arrived":
            values[client] = measure(verdict)

    bound = recent.bound(factor, values, least)
    recent.add(values, bound)
    for client, value in values.items():
        if value > bound:
            verdicts[client] = rejected(explain(value, bound))


def _reject_odd_layouts(verdicts: dict[str, Verdict], usual: UsualLayout) -> None:
    """Reject replies without the usual layout, if there is one.

    Strategies refuse to average replies of different layouts, so one odd client would end the run.
    """
    replies = {}
    for client, verdict in verdicts.items():
        if verdict.reply:
            replies[client] = verdict.reply
    for client in arrange_replies(replies, usual):
        verdicts[client] = rejected(ODD_LAYOUT)


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
    lines = (error.reason or "").strip()[-LONGEST_TAIL:].splitlines()
    if not lines:
        return f"error {error.code}"
    return printable(lines[-1])
