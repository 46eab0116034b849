import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import TINY

from fedcohort.data import load
from fedcohort.lab import simulation, training
from fedcohort.lab.archive import gather_results
from fedcohort.paper import reproduce
from fedcohort.paper.export import export
from fedcohort.paper.results import read_results

pytestmark = pytest.mark.usefixtures("scratch")


def test_results_carried_from_elsewhere_without_checkpoints_count_as_done(monkeypatch):
    reproduce.run(["table3"], Path("there"), **TINY)
    (path,) = export(read_results(Path("there"), {}), Path("here"), ".npz")
    assert path.name == "runs-digits.npz"
    monkeypatch.setattr(training, "Trial", None)
    done = reproduce.run(["table3"], Path("here"), **TINY)
    assert "not run" not in done.reports["table3"].tables["non-iid, FedAvg"][-1].values()


def test_export_adds_to_what_is_there():
    for first_seed in (0, 3):
        reproduce.run(["table3"], Path(f"run{first_seed}"), **TINY, first_seed=first_seed)
        export(read_results(Path(f"run{first_seed}"), {}), Path("kept"))
    assert sorted({run.config.first_seed for run in gather_results(Path("kept"))}) == [0, 3]


def test_an_exported_run_stays_unless_a_longer_one_is_exported():
    reproduce.run(["table3"], Path("run"), **TINY, stop_at=2)
    export(read_results(Path("run"), {}), Path("kept"))
    reproduce.run(["table3"], Path("run"), **TINY)
    longer = read_results(Path("run"), {})
    (path,) = export(longer, Path("kept"))
    lengths = {len(run.accuracy) for run in gather_results(Path("kept"))}
    assert lengths == {TINY["rounds"]}

    before = path.read_bytes()
    longer.runs = [replace(run, accuracy=run.accuracy / 2) for run in longer.runs]
    export(longer, Path("kept"))  # the same runs, trained again with other results
    assert path.read_bytes() == before


def test_exported_simulations_of_other_settings_are_kept(call):
    small = ("figure3", "regret", "--seeds", 2, "--out", "run", "--export", "kept")
    assert call(*small, "--rounds", 4)[0] == 0
    before = {path: path.read_bytes() for path in Path("kept").rglob("*.*")}
    assert call(*small, "--rounds", 4)[0] == 0  # the same again
    code, _, err = call(*small, "--rounds", 5, "--overwrite")
    assert code == 2
    assert "export must not be a folder that holds participation of other settings" in err
    assert "got kept" in err
    assert call("regret", "--rounds", 5, "--seeds", 2, "--out", "other", "--export", "kept")[0] == 2
    assert {path: path.read_bytes() for path in Path("kept").rglob("*.*")} == before
    Path("file").write_text("mine")
    assert (
        "export must be a folder, got file"
        in call("figure3", "--rounds", 5, "--seeds", 2, "--out", "run", "--export", "file")[2]
    )


def test_a_file_in_the_place_of_the_export_is_refused_before_training(call):
    Path("taken").write_text("")
    code, out, err = call(
        "table3", "--dataset", "digits", "--rounds", 2, "--selectors", "random", "--export", "taken"
    )
    assert (code, out) == (2, "")
    assert "export must be a folder" in err
    assert not Path("runs").exists()


def test_the_digest_of_a_file_of_samples_goes_with_its_results():
    np.savez(
        "mine.npz",
        x=np.random.default_rng(0).standard_normal((240, 5)).astype(np.float32),
        y=np.arange(240) % 3,
    )
    reproduce.run(["table3"], Path("run"), **TINY | {"dataset": "mine.npz"})
    export(read_results(Path("run"), {}), Path("kept"))
    assert {run.provenance["data"] for run in gather_results(Path("kept"))} == {
        load("mine.npz").digest
    }


def test_a_damaged_export_is_refused_before_anything_is_computed(call):
    Path("kept").mkdir()
    Path("kept/runs-digits.parquet").write_bytes(b"PAR1 nothing")
    code, _, err = call(
        "figure3",
        "table3",
        "--dataset",
        "digits",
        "--rounds",
        2,
        "--out",
        "run",
        "--export",
        "kept",
    )
    assert code == 2
    assert "kept/runs-digits.parquet must be a results file of fedcohort" in err
    assert [path.name for path in Path().rglob("*.*") if path.is_file()] == ["runs-digits.parquet"]
    with pytest.raises(ValueError, match="out must be a folder of results, got nowhere"):
        export(read_results(Path("nowhere"), {}), Path("other"))


def test_a_simulation_is_exported_once_for_both_of_its_figures(call):
    assert call("figure3", "figure4", "--rounds", 4, "--seeds", 2, "--out", "run")[0] == 0
    export(read_results(Path("run"), {}), Path("kept"))
    files = [path.relative_to("kept").as_posix() for path in sorted(Path("kept").rglob("*.*"))]
    assert files == ["participation/results.npz", "participation/settings.json"]
    for name in ("results.npz", "settings.json"):
        kept = Path("kept/participation") / name
        assert kept.read_bytes() == (Path("run/participation") / name).read_bytes()


def test_a_simulation_that_an_older_version_exported_is_not_exported_again(call):
    assert call("figure3", "--rounds", 4, "--seeds", 2, "--out", "run")[0] == 0
    shutil.copytree("run/participation", "kept/figure3")
    export(read_results(Path("run"), {}), Path("kept"))
    assert not Path("kept/participation").exists()
    assert call("figure3", "--rounds", 5, "--seeds", 2, "--out", "other")[0] == 0
    with pytest.raises(ValueError, match="participation of other settings, got kept"):
        export(read_results(Path("other"), {}), Path("kept"))


def test_a_simulation_that_an_earlier_version_exported_has_the_same_settings(call, monkeypatch):
    figure = ("figure3", "--rounds", 4, "--seeds", 2)
    assert call(*figure, "--out", "old", "--export", "kept")[0] == 0
    monkeypatch.setattr(simulation, "__version__", "999.0")
    assert call(*figure, "--out", "new", "--export", "kept")[0] == 0
