"""No command reads a result file twice."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def traces():
    spec = importlib.util.spec_from_file_location("walk", ROOT / "benchmarks/walk.py")
    walk = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(walk)
    return walk.walk(ROOT / "src")


@pytest.mark.slow
def test_every_command_reads_a_result_file_once(traces):
    for command, trace in traces.items():
        assert trace["code"] == 0, command
        often = {path: times for path, times in trace["opened"].items() if times > 1}
        assert often == {}, command


@pytest.mark.slow
def test_the_walk_sees_what_a_command_reads(traces):
    opened = traces["report compare"]["opened"]
    assert {"compare/settings.toml", "compare/records/0000000.npz"} <= set(opened)
