"""Real processes: a client whose every reply would make NumPy raise an error."""

import pytest
from deployment import (
    CLIENTS,
    DEADLINE,
    Run,
    assert_all_ended,
    assert_model,
    assert_nothing_left,
    assert_on_time,
    assert_replayed,
    averaged,
    fates,
    online,
    open_lab,
    reasons,
    start_node,
    until,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(quick, tmp_path_factory):
    """A SuperLink and three SuperNodes."""
    with open_lab(tmp_path_factory.mktemp("hostile")) as lab:
        for name in ("0", "1", "3"):
            start_node(lab, name)
        until(lambda: len(online(lab)) == 3, "three nodes", lambda: lab.log("0"))
        yield lab
        assert_all_ended(lab)


def test_a_client_with_a_negative_dimension_in_every_round_costs_only_its_own_updates(
    lab, tmp_path
):
    """It rests after its third rejection, in rounds 4 and 5; the run is resumed after round 2."""
    patience = 4 * DEADLINE  # rounds end as soon as all have answered
    config = {"clients": 3, "trouble": "hostile", "deadline": patience}
    for last in (2, 6):
        changed = {"rounds": last, "resume": last > 2}
        with Run(lab, tmp_path, config | changed) as run:
            assert run.end(400.0) == "finished:completed", run.log()

    assert [row["round"] for row in run.rows] == [1, 2, 3, 4, 5, 6]
    for row in run.rows:
        told = fates(row)
        if row["round"] in (4, 5):
            assert row["resting"] == ["3"]
        else:
            assert told.pop("3") == "rejected"
            assert reasons(row)["3"] == "array 'w' cannot be read: it has a dimension of -1"
        assert told == {"0": "arrived", "1": "arrived"}
    assert_on_time(run.rows, patience)
    assert_model(run, averaged(run.rows, CLIENTS))
    assert_replayed(run, run.rows, 3, 7)
    assert_nothing_left(lab)
