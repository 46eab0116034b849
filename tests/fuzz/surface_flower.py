"""Flower: hostile replies, damaged checkpoints and journals, on a grid without processes."""

import contextlib
import io
import logging
import pkgutil
import random
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import Clock, federation, model_of, record
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.app.message import message as flwr_message
from flwr.serverapp.strategy import FedAdam, FedAvg, FedMedian, FedTrimmedAvg, strategy_utils
from flwr.supercore.task_identity import TaskIdentity
from folder_readers import plain, read_folder
from fuzz_cases import Play, SilentAcceptance, Surface, require_name
from helpers import INITIAL
from mutations import NUMPY_TYPES, change_array, change_bytes, change_file

import fedcohort.flower
from fedcohort.flower import CohortStrategy

SIZE = 5
STRATEGIES = (FedAvg, FedAvg, FedAdam, FedMedian, FedTrimmedAvg)
NAMES = (
    "",
    "w",
    "b",
    "arrays",
    "metrics",
    "num-examples",
    "train_loss",
    "\x00",
    "\ud800",
    "x" * 999,
)
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 3, 2**31, 2**63 - 1, -(2**63), 0.5, -0.0, 1e308, float("nan"), float("inf"), [],
    [1, 2], [0.5] * 99,
)  # fmt: skip


def control_time() -> Clock:
    """Give all of the server's side a clock that moves only in `sleep`, for good."""
    clock = Clock()
    patch = pytest.MonkeyPatch()
    for name, value in {"_task_id": 7, "_run_id": 8, "_node_id": 1}.items():
        patch.setattr(TaskIdentity, name, value)
    for found in pkgutil.iter_modules(fedcohort.flower.__path__):
        module = import_module(f"fedcohort.flower.{found.name}")
        for name in ("time", "monotonic", "sleep"):
            if callable(getattr(module, name, None)):
                patch.setattr(module, name, getattr(clock, name))
    patch.setattr(flwr_message, "now", clock.datetime)
    patch.setattr(strategy_utils, "sleep", clock.sleep)
    logging.getLogger("flwr").setLevel(logging.CRITICAL)
    return clock


def play_rounds(
    clock: Clock, folder: Path | None, rounds: int, make: Any = FedAvg, **options: Any
) -> tuple[ArrayRecord, Any]:
    """Play a run on a new grid; return the model and the selector's state."""
    clock.plan.clear()
    grid = federation(clock, SIZE)
    hostile = options.pop("hostile", None)
    if hostile is not None:
        grid.clients[100].train = hostile
        grid.clients[100].evaluate = hostile
    options = {"deadline": 5.0, "wait": 10.0, "seed": 3, **options}
    strategy = CohortStrategy(make(), "e3cs-0.5", SIZE - 1, folder=folder, **options)
    with contextlib.redirect_stdout(io.StringIO()):
        result = strategy.start(grid, record(**INITIAL), num_rounds=rounds)
    return result.arrays, strategy.selector.state_dict()


# --- Replies -------------------------------------------------------------------------------


def prepare_replies(scratch: Path) -> Play:
    clock = control_time()

    def play(rng: random.Random) -> None:
        def answer(message: Message) -> Any:
            return strange_reply(rng, message)

        try:
            arrays, _ = play_rounds(clock, None, 2, rng.choice(STRATEGIES), hostile=answer)
        except ValueError as error:
            raise AssertionError(f"a client ended the run: {error}") from error
        check_model(arrays)

    return play


def check_model(arrays: ArrayRecord) -> None:
    """Refuse a model that only a bad update can have made."""
    model = model_of(arrays)
    for name, first in INITIAL.items():
        values = model.get(name)
        if values is None or values.shape != first.shape or values.dtype != first.dtype:
            raise SilentAcceptance(f"{name} of the model became {values!r}")
        if not np.isfinite(values).all():
            raise SilentAcceptance(f"{name} of the model is not finite: {values}")


def strange_reply(rng: random.Random, message: Message) -> Any:
    """Return an honest reply with one or two parts replaced by something strange."""
    if rng.random() < 0.05:
        return Error(rng.choice((0, 1, 2, 3, 5, 99)), rng.choice(("", "x" * 9999, "\x00\n")))
    model = dict(INITIAL)
    if "arrays" in message.content.array_records:
        model = model_of(message.content.array_records["arrays"])
    arrays = {name: Array(np.array(values)) for name, values in model.items()}
    metrics: dict[str, Any] = {"num-examples": 3, "train_loss": 1.0}
    parts: dict[str, Any] = {}
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice((strange_array, strange_array, strange_metric, strange_parts))(
            rng, arrays, metrics, parts
        )
    reply = {"arrays": ArrayRecord(arrays), "metrics": MetricRecord(metrics), **parts}
    return RecordDict({name: part for name, part in reply.items() if part is not None})


def strange_array(rng: random.Random, arrays: Any, metrics: Any, parts: Any) -> None:
    name = rng.choice(list(arrays) or ["w"])
    array = arrays.pop(name, Array(np.zeros(3)))
    how = rng.randrange(7)
    if how == 0:
        arrays[rng.choice(NAMES)] = array
    elif how == 1:
        arrays[name] = Array(change_array(rng, INITIAL.get(name, np.zeros(3))))
    elif how == 2:
        data = change_bytes(rng, array.data[:128]) + array.data[128:]
        arrays[name] = Array(array.dtype, array.shape, array.stype, data)
    elif how == 3:
        stype = rng.choice(("", "torch", "numpy.ndarray"))
        shape = rng.choice(((-1,), (0,), (2, 2), (10**12,), (1,) * 70))
        arrays[name] = Array(rng.choice((*NUMPY_TYPES, "object", "")), shape, stype, array.data)
    elif how in (4, 5):
        values = INITIAL.get(name, np.zeros(3))
        data = strange_header(rng, values)
        arrays[name] = Array(str(values.dtype), values.shape, "numpy.ndarray", data)


def strange_header(rng: random.Random, values: np.ndarray) -> bytes:
    """Return an array as a .npy file whose header says one or two strange things."""
    parts = {
        "dtype": f"'{values.dtype.str}'",
        "shape": str(values.shape),
        "order": "False",
        "version": b"\x01\x00",
        "data": values.tobytes(),
    }
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(("shape", *parts))
        parts[name] = rng.choice(STRANGE_PARTS[name])
    header = (
        f"{{'descr': {parts['dtype']}, 'fortran_order': {parts['order']}, "
        f"'shape': {parts['shape']}, }}"
    )
    size = len(header).to_bytes(2 if parts["version"][0] == 1 else 4, "little")
    return b"\x93NUMPY" + parts["version"] + size + header.encode() + parts["data"]


STRANGE_PARTS: dict[str, tuple[Any, ...]] = {
    "dtype": ("'|O'", "[('a', '<f8')]", "'<M8[s]'", "'<U4'", "'nonsense'", "'>f8'", "'<c16'"),
    "shape": (
        "(-1,)",
        "(2, -1)",
        "(-2, 2)",
        "(-1, -1)",
        "(10000000000000,)",
        "()",
        "'x'",
        "(1.5,)",
    ),
    "order": ("True", "3", "None"),
    "version": (b"\x02\x00", b"\x03\x00", b"\x09\x00"),
    "data": (b"", bytes(8), bytes(33), bytes(999)),
}


def strange_metric(rng: random.Random, arrays: Any, metrics: Any, parts: Any) -> None:
    name = rng.choice(("num-examples", "train_loss", rng.choice(NAMES)))
    if rng.random() < 0.2:
        metrics.pop(name, None)
    else:
        metrics[name] = rng.choice(NUMBERS)


def strange_parts(rng: random.Random, arrays: Any, metrics: Any, parts: Any) -> None:
    name = rng.choice(("arrays", "metrics", "arrays2", "metrics2", "config", rng.choice(NAMES)))
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: ArrayRecord({"w": Array(np.zeros((2, 2)))}),
        lambda: ArrayRecord({}),
        lambda: MetricRecord({"num-examples": rng.choice(NUMBERS)}),
        lambda: ConfigRecord({"a": rng.choice((b"", "x", 1, True, [b"x"]))}),
    )
    parts[name] = rng.choice(kinds)()


# --- Folders -------------------------------------------------------------------------------


def prepare_journals(scratch: Path) -> Play:
    """The journal of a run, and what it says of itself: read by a page, by `watch`, by a resume."""
    clock = control_time()
    source = scratch / "source"
    folder = scratch / "changed"
    play_rounds(clock, source, 3)
    expected = read_quietly(source)
    files = ("rounds.jsonl", "rounds.jsonl", "run.json", "environment.json")

    def play(rng: random.Random) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        path = folder / rng.choice(files)
        path.write_bytes(change_file(rng, path.name, path.read_bytes()))
        try:
            if rng.random() < 0.2:
                play_rounds(clock, folder, 4, resume=True)
                return
            found = read_quietly(folder)
        except ValueError as error:
            require_name(error, path, folder)
            raise
        if not is_part(found, expected):
            raise SilentAcceptance(f"{path} was changed and accepted")

    return play


def is_part(found: Any, expected: Any) -> bool:
    """Return whether a folder is as expected, but for whole rounds that its journal lacks.

    A run that was killed has fewer rounds, and a journal that was repaired has gaps. Every line
    has its own checksum and says its round, so a missing one shows.
    """
    later = iter(expected["rounds"])
    is_ascending = all(row in later for row in found["rounds"])
    return is_ascending and {**found, "rounds": None} == {**expected, "rounds": None}


def prepare_checkpoints(scratch: Path) -> Play:
    clock = control_time()
    source = scratch / "source"
    folder = scratch / "changed"
    play_rounds(clock, source, 2)
    path = folder / "checkpoint.safetensors"
    expected = resume(clock, source, folder)

    def play(rng: random.Random) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        path.write_bytes(change_bytes(rng, path.read_bytes()))
        try:
            found = resume(clock, None, folder)
        except ValueError as error:
            require_name(error, path, folder)
            raise
        if found != expected:
            raise SilentAcceptance(f"{path} was changed and accepted")

    return play


def resume(clock: Clock, source: Path | None, folder: Path) -> Any:
    """Return what a run ends with that goes on with a folder, or with a copy of a source."""
    if source is not None:
        shutil.copytree(source, folder)
    arrays, selector = play_rounds(clock, folder, 3, resume=True)
    return plain([model_of(arrays), selector])


def read_quietly(folder: Path) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return read_folder(folder)


SURFACES = (
    Surface("replies", prepare_replies, 10),
    Surface("journals", prepare_journals, 14),
    Surface("server", prepare_checkpoints, 8),
)
