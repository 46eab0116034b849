"""The constants of the world `devices` are those that its script fits."""

import hashlib
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from fedcohort.world import devices

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("fit", ROOT / "benchmarks/fit_devices.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_fit_finds_the_laws_that_devices_were_drawn_from(script):
    count = 20_000
    milliseconds, _ = devices.draw_devices(count, rng=0)
    weight, mean, sd = script.fit_mixture(np.log(milliseconds))
    share = np.array([1 - devices.SLOW_SHARE, devices.SLOW_SHARE])
    # Five standard errors of samples whose kind is known, and twice that for not knowing it.
    error = 2 * 5 * devices.COMPUTE_SPREADS / np.sqrt(share * count)
    assert (np.abs(mean - np.log(devices.COMPUTE_MEDIANS)) <= error).all()
    assert (np.abs(sd - devices.COMPUTE_SPREADS) <= error).all()
    assert (np.abs(weight - share) <= 2 * 5 * np.sqrt(share.prod() / count)).all()


def test_the_distance_is_the_one_worked_out_by_hand(script):
    # One observation at the median: the measured function jumps from 0 to 1 where the law is 1/2.
    assert script.distance(np.array([0.0]), [1.0], [0.0], [1.0]) == 0.5
    # Two, at minus and plus infinity almost: 1/2 in between, where the law goes from 0 to 1.
    far = script.distance(np.array([-9.0, 9.0]), [1.0], [0.0], [1.0])
    assert far == pytest.approx(0.5, abs=1e-12)


def test_the_script_prints_and_writes_the_constants_of_a_file(script, tmp_path, capsys):
    milliseconds, kilobits = devices.draw_devices(5000, rng=1)
    np.savez(tmp_path / "p.npz", computation_ms=milliseconds, communication_kbps=kilobits)
    script.main(tmp_path / "p.npz", tmp_path / "fit.json")
    found = json.loads((tmp_path / "fit.json").read_text())
    assert json.loads(capsys.readouterr().out) == found
    assert found["devices"] == 5000
    assert found["sha256"] == hashlib.sha256((tmp_path / "p.npz").read_bytes()).hexdigest()
    assert found["link median"] == pytest.approx(np.exp(np.log(kilobits).mean()), rel=1e-4)
    assert 0 < found["compute distance"] < found["compute distance of one law"] < 1


def test_the_constants_are_those_of_the_committed_fit():
    record = json.loads((ROOT / "results/explorations/device-fit.json").read_text())
    assert devices.COMPUTE_MEDIANS.tolist() == [round(x, 1) for x in record["compute medians"]]
    assert devices.COMPUTE_SPREADS.tolist() == [round(x, 3) for x in record["compute spreads"]]
    assert round(record["link median"]) == devices.LINK_MEDIAN
    assert round(record["link spread"], 3) == devices.LINK_SPREAD
    assert pytest.approx(record["compute shares"][1], abs=0.0006) == devices.SLOW_SHARE
