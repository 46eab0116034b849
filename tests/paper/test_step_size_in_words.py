"""What results/step-size.md says of single worlds is true of the records."""

from pathlib import Path

import numpy as np
import pytest
import recompute

RESULTS = Path(__file__).parents[2] / "results"
EQUAL_STEP = 0.095  # k/K times the mean rate of the classes


@pytest.fixture(scope="module")
def rounds_with_equal_steps():
    """First rounds at 45 %, by world and scheme, of the runs in float32."""
    found = {}
    for row in recompute.read_runs(RESULTS / "runs-cifar10.parquet"):
        settings = row["settings"]
        if settings["precision"] == "float32" and settings["server_rate"] == EQUAL_STEP:
            reached = np.asarray(row["accuracy"]) >= 0.45
            assert reached.any()
            found.setdefault(row["seed"], {})[row["selector"]] = 1 + int(reached.argmax())
    return found


def test_fedcs_is_slower_in_one_world_and_faster_in_the_other(rounds_with_equal_steps):
    assert sorted(rounds_with_equal_steps) == [1, 2]
    first, second = rounds_with_equal_steps[1], rounds_with_equal_steps[2]
    page = (RESULTS / "step-size.md").read_text(encoding="utf-8")
    slower = first["random"] / first["fedcs"]
    faster = second["random"] / second["fedcs"]
    assert slower < 1 < faster
    words = f"longer in world 1 ({slower:.2f}×) and less in world 2 ({faster:.2f}×)"
    assert words in " ".join(page.split())


def test_with_equal_steps_e3cs_takes_as_long_as_random(rounds_with_equal_steps):
    for rounds in rounds_with_equal_steps.values():
        for selector in ("e3cs-0.5", "e3cs-inc"):
            assert abs(rounds[selector] - rounds["random"]) <= 2
