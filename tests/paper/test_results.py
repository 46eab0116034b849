import sys
from collections import Counter
from pathlib import Path

import pytest
from made import TINY, result

from fedcohort.lab.archive import save
from fedcohort.paper import reproduce
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.export import export
from fedcohort.paper.results import exact_fields
from fedcohort.paper.setting import OVERRIDABLE, TASKS, full_config, task_config

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


def test_naming_the_papers_data_changes_nothing():
    for dataset in ("cifar10", "emnist-letters"):
        assert exact_fields({"dataset": dataset}) == exact_fields({})


def test_settings_that_reports_cannot_take_are_refused():
    save(Path("runs-cifar10.npz"), [result()])
    words = r"^setting must be one of batch_size, .*, world_options, got '{}'"
    for name, values in (("aggregations", ("normalised",)), ("aggregation", "paper")):
        with pytest.raises(ValueError, match=words.format(name)):
            reproduce.show(["claims"], Path(), **{name: values})
        with pytest.raises(ValueError, match=words.format(name)):
            reproduce.run(["table3"], Path("run"), **{name: values})
    assert "aggregations" not in OVERRIDABLE


def test_every_other_setting_is_taken():
    save(Path("runs-cifar10.npz"), [result()])
    config = full_config("cifar10", {})
    settings = {name: getattr(config, name) for name in OVERRIDABLE}
    assert reproduce.show(["all"], Path(), **settings).reports.keys() == ARTEFACTS.keys()


def test_the_papers_network_is_shown_though_its_data_are_named_and_others_are_more_common():
    ours = result(full_config("cifar10", {}), (0.1, 0.2), first_seed=3)
    others = []
    for seed in (0, 1):
        others.append(result(ours.config, (0.1, 0.2), first_seed=seed, model="cifar-cnn-pool3"))
    save(Path("runs-cifar10.npz"), [ours, *others])
    tables = []
    for named in ({}, {"dataset": "cifar10"}):
        shown = reproduce.show(["table3", "figure6"], Path(), rounds=2, **named)
        tables.append([shown.reports[name].tables for name in shown.reports])
    assert tables[0] == tables[1]
    title = "Best-fitting: iid, FedAvg, worlds that chose nothing"
    row = next(row for row in tables[1][0][title] if row["scheme"] == "Random")
    assert row["runs"] == 1


def test_table_2_takes_the_network_of_the_data_that_are_named():
    named = {"dataset": "cifar10", "rounds": 2}
    letters = full_config("emnist-letters", named)
    assert letters.model == TASKS["cifar10"]["model"]
    assert task_config("emnist-letters", named) == letters
    assert task_config("emnist-letters", named | {"model": "cifar-cnn"}).model == "cifar-cnn"

    trained = result(letters, (0.1, 0.2), first_seed=3)
    others = []
    for seed in (1, 2):
        others.append(result(letters, (0.1, 0.2), first_seed=seed, model="small-cnn"))
    save(Path("runs-cifar10.npz"), [trained, *others])
    tables = reproduce.show(["table2"], Path(), **named).reports["table2"].tables
    rows = tables["iid, FedAvg, worlds that chose nothing"]
    row = next(row for row in rows if row["scheme"] == "Random")
    assert row["runs"] == 1
