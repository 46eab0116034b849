import sys
from collections import Counter
from pathlib import Path

import pytest
from made import TINY

from fedcohort.paper import reproduce
from fedcohort.paper.export import export
from fedcohort.paper.results import exact_fields

pytestmark = pytest.mark.usefixtures("scratch")


class OpenCounter:
    """Counts how often files under a folder are opened to read, while it is active."""

    def __init__(self):
        self.folder = None
        self.counts = Counter()

    def __call__(self, event, args):
        if event == "open" and self.folder is not None and isinstance(args[0], str | Path):
            path = Path(args[0])
            mode = args[1] or "r"
            if self.folder in path.parents and "r" in mode and "+" not in mode:
                self.counts[path.relative_to(self.folder).as_posix()] += 1


COUNTER = OpenCounter()
sys.addaudithook(COUNTER)  # it cannot be removed, but it can be idle


@pytest.fixture
def count_opens():
    """Return a function that counts the opened files of a folder from now on."""

    def start(folder):
        COUNTER.folder = folder
        COUNTER.counts.clear()
        return COUNTER.counts

    yield start
    COUNTER.folder = None


def test_each_file_of_results_is_opened_once(call, count_opens):
    names = ("figure3", "figure4", "regret", "table3")
    done = reproduce.run(names, Path("run"), **TINY, seeds=1)
    export(done.results, Path("small"))
    counts = count_opens(Path("small"))
    small = ("--dataset", "digits", "--rounds", 7, "--from", "small", "--out", "shown")
    assert call("all", *small, "--export", "copy")[0] == 0
    assert counts == {
        "participation/results.npz": 1,
        "participation/settings.json": 1,
        "regret/exported.json": 1,
        "runs-digits.parquet": 1,
    }


def test_a_field_must_be_as_asked_if_it_was_given_or_the_data_are_the_papers():
    assert exact_fields({}) == {"model", "samples_per_client"}
    assert exact_fields({"dataset": "digits"}) == set()
    assert exact_fields({"dataset": "digits", "precision": "bf16"}) == {"precision"}
