"""The Flower benchmark stands beside the package, so its script is loaded from its file."""

import importlib.util
import json
from pathlib import Path

import pytest

pytest.importorskip("flwr")

SCRIPT = Path(__file__).parents[2] / "benchmarks/flower/bench.py"


@pytest.fixture
def bench():
    spec = importlib.util.spec_from_file_location("flower_bench", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FakeFederation:
    """A federation whose run writes the given seconds, or fails."""

    def __init__(self, folder, seconds=None):
        self.folder = folder
        self.seconds = seconds
        self.config = None

    def submit(self, app, config, *more):
        assert (app / "alternate/server.py").exists()
        assert (app / "pyproject.toml").exists()
        self.config = config
        if self.seconds is not None:
            Path(config["out"]).write_text(json.dumps(self.seconds))
        return 7

    def wait(self, run, seconds):
        return "finished:failed" if self.seconds is None else "finished:completed"

    def log(self, name):
        return "no such app"


def test_the_first_round_of_each_turn_is_dropped_and_ratios_are_taken_turn_by_turn(bench, tmp_path):
    seconds = {
        "stock": [[9.0, 1.0, 3.0], [9.0, 2.0, 2.0]],
        "cohort": [[9.0, 1.0, 1.0], [9.0, 4.0, 4.0]],
    }
    federation = FakeFederation(tmp_path, seconds)
    stock, cohort, ratio = bench.compare(federation, "test", {"clients": 5})
    assert federation.config["clients"] == 5
    assert (stock["median"], stock["n"]) == (2.0, 4)
    assert (cohort["median"], cohort["n"]) == (2.5, 4)
    # turns: (1 + 1) / (1 + 3) = 0.5 and (4 + 4) / (2 + 2) = 2
    assert (ratio["median"], ratio["n"], ratio["unit"]) == (1.25, 2, "×")


def test_a_run_that_fails_is_reported_with_the_log(bench, tmp_path):
    with pytest.raises(RuntimeError, match=r"must complete, got finished:failed; .*no such app"):
        bench.compare(FakeFederation(tmp_path), "test", {})
