"""No command reads a result file twice."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    """Return the result files that each command opened, and how often."""
    spec = importlib.util.spec_from_file_location("walk", ROOT / "benchmarks/walk.py")
    walk = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(walk)
    folder = tmp_path_factory.mktemp("walk")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, command in walk.COMMANDS.items():
            with walk.counted_reads(folder) as opened:
                assert walk.run(command.split()) == 0, command
            found[name] = dict(opened)
    return found


@pytest.mark.slow
def test_every_command_reads_a_result_file_once(reads):
    for command, opened in reads.items():
        often = {path: times for path, times in opened.items() if times > 1}
        assert often == {}, command


@pytest.mark.slow
def test_the_walk_sees_what_a_command_reads(reads):
    opened = reads["report compare"]
    assert {"compare/settings.toml", "compare/records/0000000.npz"} <= set(opened)
    assert "compare/checkpoint.safetensors" in reads["compare (finished)"]
