"""Which replies count, what came of those that do not, and the paper's aggregation."""

import io
import pickle
from fractions import Fraction
from functools import partial
from math import inf, nan

import numpy as np
import pytest
from fakes import record
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.flower.aggregation import apply_rule, as_record, like, shares_of
from fedcohort.flower.judging import Rules, judge, sound_evaluations
from fedcohort.flower.validity import (
    Limits,
    as_model,
    declared_metrics,
    distance,
    schema,
    trained_model,
    usual_schema,
)

paper = partial(apply_rule, AGGREGATIONS["paper"])

QUICK = settings(max_examples=150, deadline=None)
SENT = {
    "w": np.zeros((2, 3), dtype=np.float32),
    "b": np.zeros(3),
    "steps": np.array(5),
    "none": np.zeros((0, 4)),
}


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
    returned = trained_model(reply(model(**changed)), SENT, Limits())
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
        trained_model(broken, SENT, Limits())


def test_metadata_that_lies_about_a_sound_array_changes_nothing():
    returned = trained_model(reply(raw(saved(np.ones(3)), "int8", (99, 99))), SENT, Limits())
    assert np.array_equal(returned["b"], np.ones(3))


@pytest.mark.parametrize(
    ("size", "counts"), [(5.0, True), (np.nextafter(5.0, 0), True), (np.nextafter(5.0, 9), False)]
)
def test_a_model_exactly_as_far_as_allowed_counts(size, counts):
    moved = reply(
        model(b=np.array([0.0, 0.6, 0.8]) * 5.0 if size == 5.0 else np.array([0.0, 0.0, size]))
    )
    if counts:
        trained_model(moved, SENT, Limits(max_norm=5.0))
    else:
        with pytest.raises(ValueError, match="the model is 5 from the one sent, more than 5"):
            trained_model(moved, SENT, Limits(max_norm=5.0))


def test_the_norm_is_over_all_arrays_together():
    moved = {
        "w": np.array([[3.0, 0, 0], [0, 0, 0]], dtype=np.float32),
        "b": np.array([0.0, 4.0, 0.0]),
        "steps": np.array(17),
    }
    assert distance({**SENT, **moved}, SENT) == 13.0  # 9 + 16 + 12 * 12 = 169


def test_the_norm_of_float32_is_taken_in_double_precision():
    huge = {"w": np.full(4, 1e30, dtype=np.float32)}
    assert distance(huge, {"w": np.zeros(4, dtype=np.float32)}) == pytest.approx(2e30, rel=1e-6)


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
        declared_metrics(reply(metrics=metrics), "num-examples", Limits())
    assert "num-examples" in str(complaint.value)


@pytest.mark.parametrize("examples", [1, 1.0, 1e9, 10**9])
def test_the_bounds_of_the_number_of_examples_are_allowed(examples):
    assert (
        declared_metrics(reply(metrics={"num-examples": examples}), "num-examples", Limits())[
            "num-examples"
        ]
        == examples
    )


def test_flower_itself_refuses_a_boolean_as_a_metric():
    with pytest.raises(TypeError, match="bool"):
        MetricRecord({"num-examples": True})


@pytest.mark.parametrize("value", [nan, -inf, [1.0, nan], [inf], 10**400, [1, -(10**400)]])
def test_a_metric_that_is_not_finite_is_rejected_by_name(value):
    with pytest.raises(ValueError, match="metric 'loss' is not finite"):
        declared_metrics(
            reply(metrics={"num-examples": 3, "loss": value}), "num-examples", Limits()
        )


@pytest.mark.parametrize("number", [0, 2])
def test_there_must_be_one_record_of_metrics(number):
    content = RecordDict({str(place): MetricRecord({"num-examples": 1}) for place in range(number)})
    with pytest.raises(ValueError, match=f"expected 1 MetricRecord, got {number}"):
        declared_metrics(content, "num-examples", Limits())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"least_examples": 0}, "least_examples must be a finite number above 0, got 0"),
        ({"most_examples": inf}, "most_examples must be a finite number above 0, got inf"),
        ({"least_examples": 5, "most_examples": 4}, "most_examples must be at least 5, got 4"),
        ({"max_norm": 0.0}, "max_norm must be a number above 0, got 0.0"),
        ({"max_norm": nan}, "max_norm must be a number above 0, got nan"),
    ],
)
def test_limits_refuse_what_no_reply_could_keep(arguments, message):
    with pytest.raises(ValueError, match=message):
        Limits(**arguments)


# judging


RULES = Rules(Limits())
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
    return judge(messages, replies, sent, rules)


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
    assert [verdict.fate.status for verdict in verdicts] == [
        "arrived", "lost", "lost", "lost", "lost", "lost", "stopped", "failed", "failed", "rejected", "arrived",
    ]  # fmt: skip
    assert [verdict.fate.reason for verdict in verdicts[6:10]] == [
        "stopped at the deadline of 3 s", "ValueError: too small", "error 0", "array 'w' is not finite",
    ]  # fmt: skip
    assert [verdict.reply is not None for verdict in verdicts] == [
        verdict.fate.status == "arrived" for verdict in verdicts
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
    assert [verdict.fate.status for verdict in verdicts] == [
        "rejected" if at == place else "arrived" for at in range(3)
    ]
    assert verdicts[place].fate.reason == "its records are not those of the others"


def test_arrays_in_another_order_are_put_in_the_order_of_the_model():
    sent = {"w": np.zeros(2), "b": np.zeros(2), "c": np.zeros(2)}
    arrays = record(c=np.full(2, 3.0), w=np.full(2, 1.0), b=np.full(2, 2.0))
    contents = [
        RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 4})})
        for _ in range(2)
    ]
    for verdict in round_of(*contents, sent=sent):
        assert verdict.fate.status == "arrived"
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
    assert [verdict.fate.status for verdict in round_of(with_config, plain(loss=2.0))] == [
        "arrived",
        "arrived",
    ]


def test_of_two_schemas_as_common_the_first_counts():
    assert [verdict.fate.status for verdict in round_of(plain(a=1), plain(b=1))] == [
        "arrived",
        "rejected",
    ]
    assert usual_schema([plain(b=1), plain(a=1), plain(a=2)]) == schema(plain(a=9))


def test_broken_replies_have_no_say_in_what_is_usual():
    verdicts = round_of(plain((nan, 0.0), a=1), plain((nan, 0.0), a=1), plain(b=1))
    assert [verdict.fate.status for verdict in verdicts] == ["rejected", "rejected", "arrived"]


@pytest.mark.parametrize(
    ("loss", "told"), [(None, "got None"), ([1.0, 2.0], "got [1.0, 2.0]"), (nan, "not finite")]
)
def test_a_loss_that_is_needed_must_be_one_finite_number(loss, told):
    content = plain() if loss is None else plain(loss=loss)
    verdict = round_of(content, rules=Rules(Limits(), loss_key="loss"))[0]
    assert verdict.fate.status == "rejected"
    assert "'loss'" in verdict.fate.reason
    assert told in verdict.fate.reason


def test_the_loss_is_handed_on():
    assert [
        v.loss
        for v in round_of(plain(loss=3), plain(loss=0.5), rules=Rules(Limits(), loss_key="loss"))
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
    sound, complaints = sound_evaluations(replies, RULES, [(message, "ann")])
    assert sound == [replies[0], replies[6]]
    assert complaints == [
        "client ann: metric 'acc' is not finite",
        "client ann: 'num-examples' must be between 1 and 1e+09, got None",
        "client ann: expected 1 MetricRecord, got 0",
        "client ann: KeyError: 'x'",
        "client ann: odd records",
    ]


# the paper's aggregation


WHOLE = st.integers(-1000, 1000)


@QUICK
@given(
    mine=st.lists(WHOLE, min_size=1, max_size=4),
    clients=st.lists(
        st.tuples(st.lists(WHOLE, min_size=4, max_size=4), st.integers(1, 50)), max_size=5
    ),
    absent=st.integers(0, 100),
)
def test_the_paper_aggregation_is_that_of_exact_arithmetic(mine, clients, absent):
    size, total = len(mine), sum(examples for _, examples in clients) + absent
    exact = [
        Fraction(own)
        + sum((Fraction(n, total) * (theirs[at] - own) for theirs, n in clients), Fraction(0))
        for at, own in enumerate(mine)
    ]
    shares = (
        shares_of([n for _, n in clients], [*(n for _, n in clients), absent])
        if clients
        else np.zeros(0)
    )
    got = paper(
        {"w": np.array(mine, float)},
        [{"w": np.array(theirs[:size], float)} for theirs, _ in clients],
        shares,
    )["w"]
    assert got == pytest.approx([float(value) for value in exact], rel=1e-12, abs=1e-9)


@given(
    array=hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.float16, np.bool_]),
        hnp.array_shapes(min_dims=0),
    )
)
@QUICK
def test_if_none_arrived_the_model_stays_to_the_bit(array):
    array = np.where(np.isfinite(array), array, 0).astype(array.dtype)
    kept = paper({"w": array}, [], np.zeros(0))["w"]
    assert kept.dtype == array.dtype
    assert kept.shape == array.shape
    assert np.array_equal(kept, array)


def test_integers_stay_integers_and_are_rounded():
    model = {"steps": np.array([10, 10, 10]), "small": np.array(3, dtype=np.uint8)}
    trained = [{"steps": np.array([20, 12, 7]), "small": np.array(7, dtype=np.uint8)}]
    new = paper(model, trained, np.array([0.3]))
    assert new["steps"].dtype == np.int64
    assert new["steps"].tolist() == [13, 11, 9]  # 10 + 3, 10 + 0.6, 10 - 0.9
    assert new["small"].dtype == np.uint8
    assert new["small"] == 4  # 3 + 1.2


def test_whole_numbers_beyond_the_precision_of_floats_stay_exact():
    big = np.array([2**53 + 1, 2**62 + 1])
    assert paper({"steps": big}, [{"steps": big}, {"steps": big + 2}], np.array([0.5, 0.5]))[
        "steps"
    ].tolist() == [
        2**53 + 2,
        2**62 + 2,
    ]


SMALL = st.lists(st.integers(0, 255), min_size=3, max_size=3)


@QUICK
@given(mine=SMALL, theirs=SMALL, signed=st.booleans())
def test_whole_numbers_of_a_short_type_do_not_wrap_around(mine, theirs, signed):
    offset, dtype = (128, np.int8) if signed else (0, np.uint8)
    mine, theirs = (np.array(values) - offset for values in (mine, theirs))
    new = paper({"w": mine.astype(dtype)}, [{"w": theirs.astype(dtype)}], np.array([0.5]))["w"]
    assert new.dtype == dtype
    assert np.abs(new.astype(float) - (mine + theirs) / 2).max() <= 0.5


def test_flags_are_averaged_and_rounded():
    model = {"on": np.array([True, True, False, False])}
    trained = [{"on": np.array([True, False, True, False])}]
    assert paper(model, trained, np.array([0.75]))["on"].tolist() == [True, False, True, False]
    assert paper(model, trained, np.array([0.25]))["on"].tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("dtype", "one", "other", "mean"), [(np.uint64, 7, 3, 5), (np.complex64, 2j, 4 + 0j, 2 + 1j)]
)
def test_numbers_of_rare_types_are_averaged_too(dtype, one, other, mean):
    new = paper({"w": np.array([one], dtype)}, [{"w": np.array([other], dtype)}], np.array([0.5]))[
        "w"
    ]
    assert new.dtype == dtype
    assert new.tolist() == [mean]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_an_array_without_axes_stays_one(dtype):
    """As BatchNorm's num_batches_tracked is."""
    one, two, half = np.array(1, dtype), np.array(2, dtype), np.array(1.6)
    averaged = paper({"steps": one}, [{"steps": two}], np.array([1.0]))
    for new, value in (
        (averaged, 2),
        (like({"steps": half}, {"steps": one}), 1.6 if dtype != np.int64 else 2),
    ):
        assert isinstance(new["steps"], np.ndarray)
        assert new["steps"].dtype == dtype
        assert new["steps"] == pytest.approx(value)
        as_record(new)


def test_an_aggregate_gets_the_types_of_the_model_sent():
    sent = {
        "w": np.zeros(2, np.float32),
        "h": np.zeros(1, np.float16),
        "steps": np.zeros(2, int),
        "on": np.zeros(2, bool),
    }
    averaged = {
        "w": np.array([0.1, 2.0]),
        "h": np.array([0.5]),
        "steps": np.array([1.6, -0.6]),
        "on": np.array([0.7, 0.2]),
    }
    new = like(averaged, sent)
    assert {name: array.dtype for name, array in new.items()} == {
        name: array.dtype for name, array in sent.items()
    }
    assert new["w"].tolist() == [np.float32(0.1), 2.0]
    assert new["h"].tolist() == [0.5]
    assert new["steps"].tolist() == [2, -1]
    assert new["on"].tolist() == [True, False]


def test_an_aggregate_of_the_right_type_is_not_copied():
    given = {"w": np.ones(2)}
    assert like(given, {"w": np.zeros(2)})["w"] is given["w"]


def test_float32_stays_float32():
    new = paper(
        {"w": np.ones(2, dtype=np.float32)}, [{"w": np.zeros(2, dtype=np.float32)}], np.array([0.5])
    )
    assert new["w"].dtype == np.float32
    assert new["w"].tolist() == [0.5, 0.5]


def test_those_who_never_declared_examples_count_as_the_mean_of_the_others():
    # known 10 + 30, two unknown at the mean of 20: 80 in all
    assert shares_of([10, 30], [10, 30, None, None]).tolist() == [10 / 80, 30 / 80]
    assert shares_of([10], [10]).tolist() == [1.0]
    assert shares_of([10], [10, None]).tolist() == [0.5]


def test_a_model_comes_back_from_a_record_to_the_bit():
    back = as_model(as_record(SENT))
    assert list(back) == list(SENT)
    assert all(
        back[name].dtype == SENT[name].dtype and np.array_equal(back[name], SENT[name])
        for name in SENT
    )
    assert back["steps"].shape == ()
