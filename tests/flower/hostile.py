"""Replies of clients that want to end the run: each makes a reply to a training message."""

import struct

import numpy as np
from fakes import Answer, FakeGrid, learner, model_of, record
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict

METRICS = {"num-examples": 3, "train_loss": 0.5}


def npy(shape: str, descr: str = "'<f8'", body: bytes = bytes(8), version: int = 1) -> bytes:
    """Return the bytes of an array whose header says what it likes."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + body


def reply_with(data: bytes) -> RecordDict:
    """Return a reply whose array `b`, one number in the model, is these bytes."""
    arrays = record(w=np.ones((2, 2)), b=np.ones(1))
    arrays["b"] = Array("float64", (1,), "numpy.ndarray", data)
    return RecordDict({"arrays": arrays, "metrics": MetricRecord(METRICS)})


def reply_of(arrays: ArrayRecord | None = None, metrics=None, **more) -> RecordDict:
    sound = record(w=np.ones((2, 2)), b=np.ones(1))
    return RecordDict(
        {
            "arrays": sound if arrays is None else arrays,
            "metrics": MetricRecord(METRICS if metrics is None else metrics),
            **more,
        }
    )


def many_arrays(number: int) -> ArrayRecord:
    arrays = record(w=np.ones((2, 2)), b=np.ones(1))
    for place in range(number):
        arrays[f"extra-{place}"] = Array("float64", (1,), "numpy.ndarray", b"")
    return arrays


def renamed(name: str) -> ArrayRecord:
    arrays = record(w=np.ones((2, 2)))
    arrays[name] = Array(np.ones(1))
    return arrays


LONG = "a" * 3_000_000
NAN_BODY = np.array([np.nan]).tobytes()

# What a client returns, by what is wrong with it.
HOSTILE = {
    "a dimension of -1": lambda: reply_with(npy("(-1,)")),
    "a dimension of -1 of many": lambda: reply_with(npy("(-1, 1)")),
    "two negative dimensions": lambda: reply_with(npy("(-1, -1)")),
    "a dimension beyond 64 bits": lambda: reply_with(npy(f"({2**70},)")),
    "a product beyond 64 bits": lambda: reply_with(npy(f"({2**40}, {2**40}, 0)")),
    "a boolean dimension of NaN": lambda: reply_with(npy("(True,)", body=NAN_BODY)),
    "a hundred dimensions": lambda: reply_with(npy(f"({'1, ' * 100})")),
    "deeply nested dimensions": lambda: reply_with(npy("(" * 4000 + ")" * 4000)),
    "objects": lambda: reply_with(npy("(1,)", "'|O'")),
    "a structure": lambda: reply_with(npy("(1,)", "[('a', '<f8')]")),
    "arrays in an array": lambda: reply_with(npy("(1,)", "'(1,)<f8'")),
    "raw bytes": lambda: reply_with(npy("(1,)", "'|V8'")),
    "texts": lambda: reply_with(npy("(1,)", "'<U2'")),
    "texts of two gigabytes": lambda: reply_with(npy("(1,)", "'<U536870911'")),
    "dates": lambda: reply_with(npy("(1,)", "'<M8[s]'")),
    "a header of version 2": lambda: reply_with(npy("(1,)", version=2)),
    "a thousand times the bytes": lambda: reply_with(npy("(1,)", body=bytes(48_000))),
    "bytes behind the array": lambda: reply_with(npy("(1,)", body=bytes(16))),
    "too few bytes": lambda: reply_with(npy("(1,)", body=bytes(7))),
    "many arrays": lambda: reply_of(many_arrays(20_000)),
    "a long name of an array": lambda: reply_of(renamed(LONG)),
    "a long name of a record": lambda: RecordDict(
        {LONG: record(w=np.ones((2, 2)), b=np.ones(1)), "metrics": MetricRecord(METRICS)}
    ),
    "a long name of a metric": lambda: reply_of(metrics={**METRICS, LONG: 1.0}),
    "many metrics": lambda: reply_of(
        metrics=METRICS | {f"metric-{place}": 1.0 for place in range(100_000)}
    ),
    "a metric of many numbers": lambda: reply_of(metrics={**METRICS, "all": [1.0] * 300_000}),
    "a large config": lambda: reply_of(config=ConfigRecord({"x": bytes(3_000_000)})),
    "many configs": lambda: reply_of(
        **{f"config-{place}": ConfigRecord({"a": 1}) for place in range(5_000)}
    ),
    "a number of examples that silences all others": lambda: reply_of(
        metrics={**METRICS, "num-examples": 10**9}
    ),
    "a model that drowns all others": lambda: reply_of(
        record(w=np.full((2, 2), 1e200), b=np.ones(1))
    ),
    "numbers whose squares overflow": lambda: reply_of(
        record(w=np.full((2, 2), 1.5e308), b=np.ones(1))
    ),
}


def hostile_evaluations() -> dict[str, RecordDict]:
    """Return what clients answer to an evaluation."""
    answers = {}
    for name in ("a long name of a metric", "many metrics", "a metric of many numbers"):
        content = HOSTILE[name]()
        answers[name] = RecordDict({"metrics": next(iter(content.metric_records.values()))})
    return answers


def attacked_federation(clock, answer, honest: int = 4) -> FakeGrid:
    """Honest clients 0, 1, … and a last one that answers every training with `answer()`."""
    grid = FakeGrid(clock)
    for number in range(honest):
        grid.join(100 + number, learner(number))
    attacker = learner(honest)
    attacker.train = lambda message: answer()
    grid.join(100 + honest, attacker)
    return grid


def failing() -> Answer:
    return Error(2, "Traceback\nRuntimeError: out of memory")


def returned_to(message: Message) -> dict[str, np.ndarray]:
    return model_of(message.content.array_records["arrays"])
