import logging
import sys
from pathlib import Path

import pytest
from fakes import Clock
from flwr.app.message import message as flwr_message
from flwr.serverapp.strategy import strategy_utils
from flwr.supercore.task_identity import TaskIdentity

from fedcohort.flower import (
    availability,
    clients,
    grid,
    identity,
    late,
    puller,
    superlink,
    training,
    workers,
)

SERVER_MODULES = (availability, clients, grid, identity, late, puller, superlink, training, workers)

QUICKSTART = Path(__file__).parents[2] / "examples" / "flower-quickstart"
sys.path.append(str(QUICKSTART))  # for `local_federation`


@pytest.fixture(autouse=True)
def _a_task_of_flower(monkeypatch):
    """Messages can only be written inside a task."""
    for name, value in {"_task_id": 7, "_run_id": 8, "_node_id": 1}.items():
        monkeypatch.setattr(TaskIdentity, name, value)


@pytest.fixture
def clock(monkeypatch):
    """A clock that everything on the server's side reads."""
    clock = Clock()
    for module in SERVER_MODULES:
        for name in ("time", "monotonic", "sleep"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, getattr(clock, name))
    monkeypatch.setattr(flwr_message, "now", clock.datetime)
    monkeypatch.setattr(strategy_utils, "sleep", clock.sleep)
    return clock


@pytest.fixture
def logged():
    """The lines that the package logs: Flower's logger does not pass them on to pytest's."""
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record):
            lines.append(f"{record.levelname}: {record.getMessage()}")

    listener, logger = Listener(), logging.getLogger("flwr.fedcohort")
    logger.addHandler(listener)
    level = logger.level
    logger.setLevel(logging.DEBUG)  # an assignment would not clear the cache of enabled levels
    yield lines
    logger.setLevel(level)
    logger.removeHandler(listener)


@pytest.fixture(scope="module")
def quick():
    """Let Flower look for work more often than once a second, so that the tests wait less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLWR_SUPEREXEC_TASK_POLL_INTERVAL", "0.2")
        yield
