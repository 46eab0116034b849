"""The files of the page "Use your own parts": killed in the middle, a run with them goes on."""

from pathlib import Path

import numpy as np
import pytest
from pages import ROOT, blocks, run_fedcohort

from fedcohort.lab import folder as rundir
from fedcohort.reports import figures
from killed_command import kill_after_the_next_checkpoint

PAGE = ROOT / "docs/how-to/your-own.md"


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Write the files of the page into an empty folder; return the words of its comparison."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)
    commands = []
    for block in blocks(PAGE):
        if block.title.endswith(".py"):
            Path(block.title).write_text(block.text)
        if block.kind == "bash":
            commands += block.commands
    (words,) = [words for words in commands if words[:2] == ["fedcohort", "compare"]]
    # A later flag replaces an earlier one.
    return [*words[1:], "--rounds", "30", "--checkpoint-every", "3", "--mode", "one-by-one"]


@pytest.mark.slow
def test_a_run_with_parts_of_ones_own_that_was_killed_goes_on_to_the_same_result(command):
    state = kill_after_the_next_checkpoint([*command, "--out", "killed"], Path("killed"))
    assert 0 < state["round"] < 30
    run_fedcohort([*command, "--out", "killed", "--resume"])
    run_fedcohort([*command, "--out", "whole"])

    killed, whole = (rundir.load_records(Path(name)) for name in ("killed", "whole"))
    assert len(whole["accuracy"]) == 30
    assert killed.keys() == whole.keys()
    for name, values in whole.items():
        np.testing.assert_array_equal(killed[name], values, err_msg=name)
    states = [rundir.load_checkpoint(Path(name)) for name in ("killed", "whole")]
    heard = [state["engine"]["rules"]["seldom.py:Seldom"]["heard"] for state in states]
    assert heard[0].sum() > 0
    np.testing.assert_array_equal(*heard)
    assert Path("killed/summary.csv").read_bytes() == Path("whole/summary.csv").read_bytes()
    assert rundir.read_sources(Path("killed")) == rundir.read_sources(Path("whole"))
    assert len(rundir.read_sources(Path("whole"))) == 6
