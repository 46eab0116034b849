import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fedcohort.paper import participation, reproduce
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.export import export

pytestmark = pytest.mark.usefixtures("scratch")
SMALL = {"rounds": 4, "seeds": 2}
BOTH = ["figure3", "figure4"]


@pytest.fixture
def played(monkeypatch):
    """Return the rounds of every simulation of figures 3 and 4 that is played."""
    rounds = []

    def run(config, on_progress=None):
        rounds.append(config.rounds)
        return participation.SIMULATION.run(config, on_progress)

    spec = replace(participation.SIMULATION, run=run)
    for name in BOTH:
        monkeypatch.setitem(ARTEFACTS, name, replace(ARTEFACTS[name], simulation=spec))
    return rounds


def stored_in(folder):
    return sorted(path.parent.name for path in Path(folder).rglob("results.npz"))


def summaries(reproduction):
    return [reproduction.reports[name].numbers["summary"] for name in BOTH]


def test_figures_3_and_4_are_played_and_stored_once(played):
    reproduce.run(BOTH, Path("run"), **SMALL)
    assert played == [4]
    assert stored_in("run") == ["participation"]
    reproduce.run(BOTH, Path("run"), **SMALL)
    assert played == [4]
    reproduce.run(BOTH, Path("run"), rounds=5, seeds=2, overwrite=True)
    assert played == [4, 5]


def test_other_settings_are_refused_before_anything_is_played(played):
    reproduce.run(["figure3"], Path("run"), **SMALL)
    with pytest.raises(ValueError, match=r"results of other settings, got run.participation"):
        reproduce.run(["figure4"], Path("run"), rounds=5, seeds=2)
    assert played == [4]


@pytest.mark.parametrize("exported", [False, True])
def test_a_stored_simulation_of_other_settings_is_not_shown(exported):
    names = [*BOTH, "regret", "claims"]
    done = reproduce.run(names, Path("run"), **SMALL)
    folder = "run"
    if exported:  # the regret without its curves
        export(done.results, Path("small"))
        folder = "small"
    same = reproduce.show(names, Path(folder), rounds=4, seeds=5, sampler="successive")
    assert all(same.reports[name].tables for name in names)

    other = reproduce.show(names, Path(folder), rounds=100, sampler="systematic").reports
    asked = "rounds 4, asked 100; sampler successive, asked systematic"
    for name in BOTH:
        stored = Path(folder) / "participation"
        assert other[name].notes == [f"Not run: {stored} holds {asked}."]
        assert not other[name].tables
    stored = Path(folder) / "regret"
    assert other["regret"].notes == [f"Not run: {stored} holds rounds 4, asked 100."]
    assert other["claims"].tables["Verdicts"]  # these name the rounds of what they judge


@pytest.mark.parametrize("folders", [["figure3"], ["figure4"], ["figure3", "figure4"]])
def test_folders_of_older_versions_are_read_and_not_played_again(played, folders):
    first = reproduce.run(BOTH, Path("run"), **SMALL)
    for name in folders:
        old = Path("old") / name
        shutil.copytree("run/participation", old)
        settings = json.loads((old / "settings.json").read_text())
        del settings["fedcohort-sha256"]  # older versions wrote no checksum
        (old / "settings.json").write_text(json.dumps(settings | {"experiment": name}))
    again = reproduce.run(BOTH, Path("old"), **SMALL)
    assert played == [4]
    assert stored_in("old") == folders
    assert summaries(again) == summaries(first)
    assert summaries(reproduce.show(BOTH, Path("old"))) == summaries(first)


def test_each_figure_finds_its_own_copy_if_an_older_version_stored_two():
    home = Path("old")
    for name in BOTH:
        (home / name).mkdir(parents=True)
        (home / name / "settings.json").write_text("{}")
    assert participation.SIMULATION.find(home, "figure4") == home / "figure4"
    assert participation.SIMULATION.find(home) == home / "figure3"
    (home / "participation").mkdir()
    (home / "participation" / "settings.json").write_text("{}")
    assert participation.SIMULATION.find(home, "figure4") == home / "participation"
