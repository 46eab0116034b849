import subprocess
import sys
from dataclasses import replace

import pytest

from fedcohort.paper import regret
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.results import Results

SIMULATED = [name for name, artefact in ARTEFACTS.items() if artefact.simulation]


def test_every_artefact_is_listed_under_its_name():
    assert list(ARTEFACTS) == [artefact.name for artefact in ARTEFACTS.values()]
    assert list(ARTEFACTS) == [
        "figure3", "figure4", "regret", "table2", "figure5", "table3", "figure6", "figure7",
        "server_step", "ablations", "claims",
    ]  # fmt: skip


def test_the_list_of_artefacts_loads_no_pytorch():
    code = "import sys; import fedcohort.paper.artefacts; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", SIMULATED)
def test_every_simulation_runs_small_and_is_reported(name, monkeypatch, tmp_path):
    monkeypatch.setattr(regret, "SWITCH_ROUNDS", 40)
    spec = ARTEFACTS[name].simulation
    small = replace(spec.config, clients=8, cohort=3, rounds=12, seeds=2)
    simulation = replace(spec, config=small).load_or_run(tmp_path, name)
    report = ARTEFACTS[name].report(Results([], tmp_path), {})
    rows = report.numbers["summary"]
    assert len(rows) == len(simulation.results) >= len(small.selectors)
    assert list(report.figures) == [name]


def test_every_trained_artefact_says_what_it_trains():
    for artefact in ARTEFACTS.values():
        if artefact.training:
            assert artefact.training({})
