"""The quickstart app itself, as its README starts it."""

import json
from pathlib import Path

import pytest
from local_federation import LocalFederation

pytestmark = pytest.mark.slow
APP = Path(__file__).parents[2] / "examples" / "flower-quickstart"


def test_the_quickstart_learns_digits_in_the_simulation_engine(tmp_path):
    config = {
        "deadline": 0.0,
        "volatile": True,
        "num-clients": 8,
        "cohort-size": 4,
        "num-rounds": 3,
    }
    engine = "num-supernodes=8 client-resources-num-cpus=1 init-args-num-cpus=2"
    with LocalFederation(tmp_path / "lab") as lab:
        lab.start_link("--simulation")
        run = lab.submit(
            APP, {**config, "folder": str(tmp_path / "state")}, "--federation-config", engine
        )
        assert lab.wait(run, 240.0) == "finished:completed", lab.log("superlink")
    assert lab.alive() == []
    rows = [
        json.loads(line) for line in (tmp_path / "state" / "rounds.jsonl").read_text().splitlines()
    ]
    assert [row["round"] for row in rows] == [1, 2, 3]
    assert {asked["status"] for row in rows for asked in row["asked"]} == {"arrived", "failed"}
    assert all(len(row["asked"]) == 4 for row in rows)
