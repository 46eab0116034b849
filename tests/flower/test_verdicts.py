"""The verdict on each client that was asked, and the evaluations that count."""

from math import inf, nan

import numpy as np
import pytest
from fakes import record
from flwr.app import ConfigRecord, Error, Message, MetricRecord, RecordDict

from fedcohort.flower.evaluation import judge_evaluations
from fedcohort.flower.history import ReplyHistory
from fedcohort.flower.limits import Limits, ReplyRules
from fedcohort.flower.verdicts import judge_training, verdict_of_error

RULES = ReplyRules(Limits())
PLAIN = {"w": np.zeros(2)}


def round_of(*contents, rules=RULES, sent=PLAIN):
    """The verdicts on clients that answer these contents, errors, or nothing."""
    messages, replies = [], {}
    for place, content in enumerate(contents):
        message = Message(RecordDict(), place + 1, "train")
        message.metadata.__dict__["_message_id"] = f"m{place}"
        messages.append(message)
        if content is not None:
            replies[f"m{place}"] = Message(content, reply_to=message)
    return judge_training(messages, replies, sent, rules)


def plain(w=(1.0, 2.0), name="arrays", **metrics):
    return RecordDict(
        {name: record(w=np.array(w)), "metrics": MetricRecord({"num-examples": 4, **metrics})}
    )


def test_every_client_gets_the_fate_it_deserves():
    verdicts = round_of(
        plain(loss=0.5),
        None,
        Error(3, "Message Unavailable"),
        Error(5, "Node Unavailable"),
        Error(4, "Reply Message Unavailable"),
        Error(8, "crashed"),
        Error(1001, "stopped at the deadline of 3 s"),
        Error(2, "Traceback\n  File\nValueError: too small"),
        Error(0, ""),
        plain((nan, 0.0)),
        plain(loss=0.25),
    )
    assert [verdict.status for verdict in verdicts] == [
        "arrived",
        "lost",
        "lost",
        "lost",
        "lost",
        "lost",
        "stopped",
        "failed",
        "failed",
        "rejected",
        "arrived",
    ]
    assert [verdict.reason for verdict in verdicts[6:10]] == [
        "stopped at the deadline of 3 s",
        "ValueError: too small",
        "error 0",
        "array 'w' is not finite",
    ]
    assert [verdict.reply is not None for verdict in verdicts] == [
        verdict.status == "arrived" for verdict in verdicts
    ]
    assert verdicts[0].examples == 4.0


@pytest.mark.parametrize(
    "odd",
    [
        plain(loss=1.0, accuracy=0.5),
        plain(),
        plain(loss=[1.0]),
        plain(loss=1.0, name="weights"),
        RecordDict(
            {
                "arrays": record(w=np.zeros(2)),
                "other": MetricRecord({"num-examples": 4, "loss": 1.0}),
            }
        ),
    ],
)
@pytest.mark.parametrize("place", range(3))
def test_the_odd_one_out_is_rejected_wherever_it_stands(odd, place):
    contents = [plain(loss=1.0), plain(loss=2.0)]
    contents.insert(place, odd)
    verdicts = round_of(*contents)
    assert [verdict.status for verdict in verdicts] == [
        "rejected" if at == place else "arrived" for at in range(3)
    ]
    assert verdicts[place].reason == "its records are not those of the others"


def test_arrays_in_another_order_are_put_in_the_order_of_the_model():
    sent = {"w": np.zeros(2), "b": np.zeros(2), "c": np.zeros(2)}
    arrays = record(c=np.full(2, 3.0), w=np.full(2, 1.0), b=np.full(2, 2.0))
    contents = [
        RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 4})})
        for _ in range(2)
    ]
    for verdict in round_of(*contents, sent=sent):
        assert verdict.status == "arrived"
        (kept,) = verdict.reply.content.array_records.values()
        assert {name: array.numpy().tolist() for name, array in kept.items()} == {
            "w": [1, 1],
            "b": [2, 2],
            "c": [3, 3],
        }
        assert list(kept) == list(verdict.model) == ["w", "b", "c"]


def test_a_config_in_the_reply_does_no_harm():
    with_config = plain(loss=1.0)
    with_config["config"] = ConfigRecord({"x": 1})
    assert [verdict.status for verdict in round_of(with_config, plain(loss=2.0))] == [
        "arrived",
        "arrived",
    ]


@pytest.mark.parametrize("contents", [(plain(a=1), plain(b=1)), (plain(b=1), plain(a=1))])
def test_of_two_layouts_as_common_both_count_without_the_metrics_of_one(contents):
    verdicts = round_of(*contents)
    assert [verdict.status for verdict in verdicts] == ["arrived", "arrived"]
    for verdict in verdicts:
        assert dict(verdict.reply.content["metrics"]) == {"num-examples": 4}


def test_broken_replies_have_no_say_in_what_is_usual():
    verdicts = round_of(plain((nan, 0.0), a=1), plain((nan, 0.0), a=1), plain(b=1))
    assert [verdict.status for verdict in verdicts] == ["rejected", "rejected", "arrived"]


@pytest.mark.parametrize(
    ("loss", "told"), [(None, "got None"), ([1.0, 2.0], "got [1.0, 2.0]"), (nan, "not finite")]
)
def test_a_loss_that_is_needed_must_be_one_finite_number(loss, told):
    content = plain() if loss is None else plain(loss=loss)
    verdict = round_of(content, rules=ReplyRules(Limits(), loss_key="loss"))[0]
    assert verdict.status == "rejected"
    assert "'loss'" in verdict.reason
    assert told in verdict.reason


@pytest.mark.parametrize("loss", [1e15, -1e15, 10**15])
def test_a_loss_at_the_largest_absolute_value_counts_and_one_beyond_does_not(loss):
    rules = ReplyRules(Limits(), loss_key="loss")
    assert round_of(plain(loss=loss), rules=rules)[0].status == "arrived"
    verdict = round_of(plain(loss=1.5 * loss), rules=rules)[0]
    assert verdict.status == "rejected"
    assert verdict.reason.startswith("metric 'loss' must be between -1e+15 and 1e+15, got ")
    assert round_of(plain(loss=1.5 * loss))[0].status == "arrived", "nobody ranks by it"


@pytest.mark.parametrize(
    ("others", "bound"), [((2.0, 4.0, 5.0), 40.0), ((2, -4, 5), 40.0), ((0.0, 0.01, 0.0), 10.0)]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_loss_many_times_the_median_is_rejected_and_a_small_median_counts_as_one(
    others, bound, sign
):
    """The lower median of the absolute values is that of the others' second in order."""
    rules = ReplyRules(Limits(loss_factor=10.0), loss_key="loss")

    def statuses(loss, rules):
        contents = [plain(loss=other) for other in others]
        verdicts = round_of(*contents, plain(loss=sign * loss), rules=rules)
        return [verdict.status for verdict in verdicts]

    assert statuses(bound, rules) == ["arrived"] * 4
    assert statuses(bound + 0.1, rules) == ["arrived"] * 3 + ["rejected"]
    assert statuses(bound + 0.1, RULES) == ["arrived"] * 4, "nobody ranks by it"
    off = ReplyRules(Limits(loss_factor=inf), loss_key="loss")
    assert statuses(1e12, off) == ["arrived"] * 4


def test_the_loss_is_handed_on():
    assert [
        v.loss
        for v in round_of(
            plain(loss=3), plain(loss=0.5), rules=ReplyRules(Limits(), loss_key="loss")
        )
    ] == [3.0, 0.5]
    assert np.isnan(round_of(plain(loss=3))[0].loss)


def test_evaluations_that_cannot_be_averaged_are_left_out_with_the_reason():
    message = Message(RecordDict(), 5, "evaluate")
    contents = [
        RecordDict({"m": MetricRecord({"num-examples": 2, "acc": 0.5})}),
        RecordDict({"m": MetricRecord({"num-examples": 2, "acc": nan})}),
        RecordDict({"m": MetricRecord({"acc": 0.5})}),
        RecordDict(),
        Error(2, "Traceback\nKeyError: 'x'"),
        RecordDict({"m": MetricRecord({"num-examples": 2, "acc": 0.5, "more": 1})}),
        RecordDict({"m": MetricRecord({"num-examples": 3, "acc": 1.0})}),
    ]
    replies = [Message(content, reply_to=message) for content in contents]
    sound, complaints = judge_evaluations(replies, RULES, {message.metadata.message_id: "ann"})
    assert sound == [replies[0], replies[6]]
    assert complaints == [
        "client ann: metric 'acc' is not finite",
        "client ann: 'num-examples' must be between 1 and 1e+09, got None",
        "client ann: expected 1 MetricRecord, got 0",
        "client ann: KeyError: 'x'",
        "client ann: odd records",
    ]


def evaluations(*examples):
    """Replies of clients a, b, … that declare so many examples, and the clients' names."""
    replies, names = [], {}
    for place, number in enumerate(examples):
        message = Message(RecordDict(), place + 1, "evaluate")
        message.metadata.__dict__["_message_id"] = f"m{place}"
        names[f"m{place}"] = "abcdef"[place]
        content = RecordDict({"m": MetricRecord({"num-examples": number, "acc": 0.5})})
        replies.append(Message(content, reply_to=message))
    return replies, names


def test_evaluations_with_many_times_the_median_of_examples_do_not_count():
    rules, history = ReplyRules(Limits(examples_factor=3.0)), ReplyHistory()
    replies, names = evaluations(5, 10, 30, 31)
    valid, complaints = judge_evaluations(replies, rules, names, history)
    assert valid == replies[:3]
    assert complaints == ["client d: 'num-examples' must be at most 3 times the median, 30, got 31"]
    # Now the median is known, so that one client alone is judged by it, too.
    replies, names = evaluations(31)
    assert judge_evaluations(replies, rules, names, history)[0] == []
    assert history.examples.values == {}, "training has a median of its own"


def test_what_a_client_says_of_its_failure_neither_commands_a_terminal_nor_fills_a_disk():
    reason = verdict_of_error(Error(2, "first\n\x1b[31m" + "x" * 10_000)).reason
    assert reason.startswith("?[31mxxx")
    assert len(reason) == 500
