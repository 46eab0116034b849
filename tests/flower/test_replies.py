"""Which replies count, and why the others do not."""

import io
import pickle
from math import inf, nan

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict

from fedcohort.flower.limits import Limits, ReplyRules
from fedcohort.flower.replies import EVALUATION_CHECKS, TRAINING_CHECKS, Reply

SENT = {
    "w": np.zeros((2, 3), dtype=np.float32),
    "b": np.zeros(3),
    "steps": np.array(5),
    "none": np.zeros((0, 4)),
}


def check_training(content, limits):
    """Apply all checks of a training reply to a reply to the model SENT."""
    reply = Reply(content, ReplyRules(limits), SENT)
    for check in TRAINING_CHECKS:
        check(reply)
    return reply


def check_evaluation(content):
    reply = Reply(content, ReplyRules(Limits()))
    for check in EVALUATION_CHECKS:
        check(reply)
    return reply


def model(**changed):
    return ArrayRecord(
        {name: Array(np.asarray(array)) for name, array in {**SENT, **changed}.items()}
    )


def reply(arrays=None, metrics=None, **more):
    parts = {
        "arrays": model() if arrays is None else arrays,
        "metrics": MetricRecord(metrics or {"num-examples": 10}),
    }
    return RecordDict({**parts, **more})


def raw(data, dtype="float64", shape=(3,), stype="numpy.ndarray"):
    """A record whose array `b` is these bytes, whatever it claims about them."""
    broken = model()
    broken["b"] = Array(dtype, shape, stype, data)
    return broken


def saved(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def pickled():
    buffer = io.BytesIO()
    np.save(buffer, np.array([print, None, {}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def zipped():
    buffer = io.BytesIO()
    np.savez(buffer, b=np.zeros(3))
    return buffer.getvalue()


def without(name):
    kept = model()
    kept.pop(name)
    return kept


def test_a_sound_reply_is_returned_as_it_came():
    changed = {
        "w": np.full((2, 3), 1.5, dtype=np.float32),
        "b": np.array([1.0, -2.0, 3.0]),
        "steps": np.array(6),
    }
    returned = check_training(reply(model(**changed)), Limits()).model
    assert list(returned) == list(SENT)
    for name, array in returned.items():
        assert np.array_equal(array, {**SENT, **changed}[name])
        assert array.dtype == SENT[name].dtype
        assert array.shape == SENT[name].shape


NOT_SOUND = {
    "no ArrayRecord": (
        RecordDict({"metrics": MetricRecord({"num-examples": 1})}),
        "expected 1 ArrayRecord, got 0",
    ),
    "two ArrayRecords": (reply(more=model()), "expected 1 ArrayRecord, got 2"),
    "no arrays": (reply(ArrayRecord()), "difference in 'b'"),
    "an array missing": (reply(without("w")), "difference in 'w'"),
    "an array too many": (reply(model(extra=np.zeros(1))), "difference in 'extra'"),
    "another dtype": (
        reply(model(w=np.zeros((2, 3)))),
        r"'w' must be float32\(2, 3\), got float64\(2, 3\)",
    ),
    "another byte order": (reply(model(w=np.zeros((2, 3), dtype=">f4"))), "'w' must be float32"),
    "another shape": (reply(model(b=np.zeros(4))), r"'b' must be float64\(3,\), got float64\(4,\)"),
    "a shape that would broadcast": (reply(model(b=np.zeros((1, 3)))), "'b' must be"),
    "one axis more": (reply(model(steps=np.array([5]))), "'steps' must be"),
    "another zero size": (reply(model(none=np.zeros((4, 0)))), "'none' must be"),
    "a float for an integer": (reply(model(steps=np.array(5.0))), "'steps' must be int64"),
    "NaN": (reply(model(b=np.array([0.0, nan, 0.0]))), "array 'b' is not finite"),
    "inf": (reply(model(w=np.full((2, 3), -inf, dtype=np.float32))), "array 'w' is not finite"),
    "no bytes": (reply(raw(b"")), "array 'b' cannot be read"),
    "random bytes": (reply(raw(bytes(range(256)))), "array 'b' cannot be read"),
    "cut bytes": (reply(raw(saved(np.zeros(3))[:-1])), "array 'b' cannot be read"),
    "a pickled object array": (
        reply(raw(pickled(), "object")),
        "array 'b' cannot be read: it holds objects",
    ),
    "a bare pickle": (reply(raw(pickle.dumps([0.0, 0.0, 0.0]))), "array 'b' cannot be read"),
    "an archive of arrays": (reply(raw(zipped())), "array 'b' cannot be read: it is not one array"),
    "another way to serialise": (
        reply(raw(saved(np.zeros(3)), stype="torch.Tensor")),
        "'b' cannot be read: it is a torch.Tensor",
    ),
    "metadata that lies about another array": (
        reply(raw(saved(np.zeros(7)))),
        r"'b' must be float64\(3,\), got float64\(7,\)",
    ),
    "a header of a terabyte": (
        reply(raw(saved(np.zeros(3)).replace(b"(3,), }", b"(9" + b"9" * 15 + b",), }"))),
        "array 'b'",
    ),
}


@pytest.mark.parametrize("kind", NOT_SOUND)
def test_a_broken_model_is_rejected_by_what_is_wrong_with_it(kind):
    broken, reason = NOT_SOUND[kind]
    with pytest.raises(ValueError, match=reason):
        check_training(broken, Limits())


def test_metadata_that_lies_about_a_sound_array_changes_nothing():
    returned = check_training(reply(raw(saved(np.ones(3)), "int8", (99, 99))), Limits()).model
    assert np.array_equal(returned["b"], np.ones(3))


@pytest.mark.parametrize(
    ("size", "counts"), [(5.0, True), (np.nextafter(5.0, 0), True), (np.nextafter(5.0, 9), False)]
)
def test_a_model_exactly_as_far_as_allowed_counts(size, counts):
    moved = reply(
        model(b=np.array([0.0, 0.6, 0.8]) * 5.0 if size == 5.0 else np.array([0.0, 0.0, size]))
    )
    if counts:
        check_training(moved, Limits(max_norm=5.0))
    else:
        with pytest.raises(ValueError, match="the model is 5 from the one sent, more than 5"):
            check_training(moved, Limits(max_norm=5.0))


DECLARED = {
    "none": ({"loss": 1.0}, "got None"),
    "nobody's": ({"num-examples": 0}, "got 0"),
    "negative": ({"num-examples": -3}, "got -3"),
    "huge": ({"num-examples": 10**18}, "got 1000000000000000000"),
    "more than a float can say": ({"num-examples": 10**400}, "num-examples"),
    "a list": ({"num-examples": [3]}, r"got \[3\]"),
    "NaN": ({"num-examples": nan}, "got nan"),
    "infinite": ({"num-examples": inf}, "got inf"),
}


@pytest.mark.parametrize("kind", DECLARED)
def test_a_number_of_examples_out_of_bounds_is_rejected(kind):
    metrics, got = DECLARED[kind]
    with pytest.raises(ValueError, match=got) as complaint:
        check_evaluation(reply(metrics=metrics))
    assert "num-examples" in str(complaint.value)


@pytest.mark.parametrize("examples", [1, 1.0, 1e9, 10**9])
def test_the_bounds_of_the_number_of_examples_are_allowed(examples):
    assert (
        check_evaluation(reply(metrics={"num-examples": examples})).metrics["num-examples"]
        == examples
    )


def test_flower_itself_refuses_a_boolean_as_a_metric():
    with pytest.raises(TypeError, match="bool"):
        MetricRecord({"num-examples": True})


@pytest.mark.parametrize("value", [nan, -inf, [1.0, nan], [inf], 10**400, [1, -(10**400)]])
def test_a_metric_that_is_not_finite_is_rejected_by_name(value):
    with pytest.raises(ValueError, match="metric 'loss' is not finite"):
        check_evaluation(reply(metrics={"num-examples": 3, "loss": value}))


@pytest.mark.parametrize("number", [0, 2])
def test_there_must_be_one_record_of_metrics(number):
    content = RecordDict({str(place): MetricRecord({"num-examples": 1}) for place in range(number)})
    with pytest.raises(ValueError, match=f"expected 1 MetricRecord, got {number}"):
        check_evaluation(content)
