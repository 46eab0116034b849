"""The quickstart app itself, as its README starts it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from local_federation import LocalFederation, wait_until

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


def test_sigterm_ends_every_process_of_the_demonstration(tmp_path):
    folder = tmp_path / "demo"
    federation = LocalFederation(folder)  # only to look for its processes
    log = (tmp_path / "demo.log").open("wb")
    demo = subprocess.Popen([sys.executable, str(APP / "demo.py"), str(folder)], stdout=log)
    try:
        wait_until(lambda: len(federation.alive()) >= 6, 90.0, "all processes of the demonstration")
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(timeout=60) == 128 + signal.SIGTERM
        assert federation.alive() == []
    finally:
        demo.kill()
        demo.wait()
        federation.close()
        log.close()


def test_a_supervised_run_survives_the_death_of_its_superlink(tmp_path):
    """The shell loop alone: nobody but it starts the run again."""
    config = {"num-clients": 3, "cohort-size": 2, "num-rounds": 5, "deadline": 20.0}
    state = tmp_path / "state"

    def rounds():
        path = state / "rounds.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    with LocalFederation(tmp_path / "lab") as lab:
        lab.start_link()
        for client in range(3):
            lab.start_node(f"client-{client}", {"client-id": str(client)})
        settings = " ".join(f"{key}={value}" for key, value in config.items())
        log = (tmp_path / "supervise.log").open("wb")
        supervisor = subprocess.Popen(
            [str(APP / "supervise"), str(APP), "lab", f'folder="{state}" {settings}'],
            env={**lab.environment, "PAUSE": "2"},
            stderr=log,
            start_new_session=True,
        )
        try:
            wait_until(lambda: rounds() >= 2, 120.0, "two rounds")
            lab.kill("superlink")
            lab.start_link()  # as systemd does
            assert supervisor.wait(timeout=240) == 0, (tmp_path / "supervise.log").read_text()
        finally:
            if supervisor.poll() is None:
                os.killpg(supervisor.pid, signal.SIGKILL)
            supervisor.wait()
            log.close()
    assert lab.alive() == []
    rows = [json.loads(line) for line in (state / "rounds.jsonl").read_text().splitlines()]
    assert [row["round"] for row in rows] == [1, 2, 3, 4, 5]
    assert "start 2 is run" in (tmp_path / "supervise.log").read_text()
