"""Real processes: a SuperLink and clients that are slow, broken, killed, new or twice there.

One federation serves most tests, one run after another.
"""

import re

import numpy as np
import pytest
from deployment import (
    CLIENTS,
    DEADLINE,
    FOUR,
    SLACK,
    Run,
    apps,
    assert_all_ended,
    assert_model,
    assert_nothing_left,
    assert_on_time,
    assert_replayed,
    averaged,
    by_the_paper,
    fates,
    has_said_who_it_is,
    marked,
    online,
    open_lab,
    reasons,
    rows_left,
    start,
    start_node,
    there,
    until,
)

from fedcohort import Federation, Outcome, make_selector
from fedcohort.flower import checkpoint

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bare(quick, tmp_path_factory):
    """A SuperLink alone."""
    with open_lab(tmp_path_factory.mktemp("bare")) as lab:
        yield lab
        assert_all_ended(lab)


@pytest.fixture(scope="module")
def federation(quick, tmp_path_factory):
    """A SuperLink, and the SuperNodes that the tests start."""
    with open_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab
        assert_all_ended(lab)


@pytest.fixture
def lab(federation):
    """A SuperLink and four SuperNodes that are alive, whatever the test before left."""
    for name in set(federation.processes) - {"superlink", *FOUR}:
        federation.stop(name)
    if "superlink" not in federation.processes:
        federation.start_link()
    for name in set(FOUR) - set(federation.processes):
        start_node(federation, name)
    until(lambda: len(online(federation)) == 4, "four nodes", lambda: federation.log("0"))
    return federation


def test_what_cannot_run_says_why(bare, tmp_path):
    """No SuperNode, an unknown selector, and the checkpoint of another model each end the run."""
    assert not online(bare)
    other = {
        "round": 3,
        "model": {"w": np.zeros(5, dtype=np.float32)},
        "selector": {},
        "registry": {},
        "strategy": {},
        "totals": {},
    }
    checkpoint.save(tmp_path / "other", other)
    with (
        Run(bare, tmp_path / "none", {"wait": 2.5}) as none,
        Run(bare, tmp_path / "unknown", {"selector": "e3cs-0.55"}) as unknown,
        Run(bare, tmp_path / "other", {"resume": True}) as another,
    ):
        for run, message in [
            (none, "wait must be long enough for a client to connect, got 2.5 s in which none did"),
            (unknown, "selector must be one of "),
            (unknown, "'e3cs-0.55'"),
            (
                another,
                f"{tmp_path / 'other'} must hold a checkpoint of this model, got another: "
                "'w' is float32[4] here and",
            ),
            (another, "float32[5] there"),
        ]:
            assert run.end() == "finished:failed"
            until(lambda run=run, message=message: message in run.log(), message, run.log, 10.0)
            assert not run.rows
            assert not (run.folder / "final.json").exists()
    assert bare.status(none.id) == "finished:failed"
    assert_nothing_left(bare)


def test_too_few_clients_and_a_deadline_nobody_can_keep(bare, tmp_path):
    start(bare, "0")
    with (
        Run(bare, tmp_path / "few", {"wait": 12.0}) as few,
        Run(bare, tmp_path / "short", {"deadline": 0.5, "rounds": 1, "cohort": 1}) as short,
    ):
        assert short.end() == "finished:completed", short.log()
        assert few.end() == "finished:failed"
    wanted = "cohort_size must be at most 1, as many clients connected in 12 s, got 3"
    until(lambda: wanted in few.log(), wanted, few.log, 10.0)
    assert not few.rows
    warning = r"the deadline of 0\.5 s is shorter than the (\d+\.\d) s that clients took to answer"
    assert (found := re.search(warning, short.log())), short.log()
    assert float(found[1]) > 0.5
    assert_on_time(short.rows, 0.5)
    assert fates(short.rows[0]) == {"0": "lost"}
    assert_model(short, 0.0)
    assert_replayed(short, short.rows, 1, 7)
    left = rows_left(bare)
    assert (left["message_ins"], left["message_res"]) == (0, 0)
    assert left["objects"] in (0, 6), (
        "of the one message that nobody took Flower deletes the row, and not always the contents"
    )


def test_a_straggler_and_broken_clients_cost_only_their_own_updates(lab, tmp_path):
    with Run(lab, tmp_path, {"clients": 4, "seed": 76}) as run:
        assert run.end() == "finished:completed", run.log()
    first, second, third, fourth = run.rows
    assert_on_time(run.rows)
    assert max(run.final()["seconds"]) <= DEADLINE + SLACK
    assert fates(first) == {"0": "arrived", "2": "stopped", "3": "rejected"}
    assert reasons(first) == {
        "0": "",
        "2": f"stopped at the deadline of {DEADLINE:g} s",
        "3": "array 'w' is not finite",
    }
    assert first["seconds"] > DEADLINE - SLACK - 1, "the straggler has its time"
    assert fates(second) == {"1": "arrived", "2": "arrived", "3": "rejected"}
    assert reasons(second)["3"] == "array 'w' must be float32(4,), got float32(8,)"
    assert fates(third) == {"1": "arrived", "2": "arrived", "3": "failed"}
    assert "a broken client" in reasons(third)["3"]
    assert fates(fourth) == {"0": "arrived", "1": "arrived", "3": "rejected"}
    assert reasons(fourth)["3"] == "its records are not those of the others"
    assert_model(run, averaged(run.rows, CLIENTS))
    assert_replayed(run, run.rows, 4, 76)
    assert_nothing_left(lab)


def test_of_two_nodes_that_claim_one_client_the_later_is_asked(lab, tmp_path):
    later = start(lab, "twin", client="0", number=100.0) % 2**64
    with Run(lab, tmp_path, {"cohort": 4, "rounds": 1, "aggregation": "paper"}) as run:
        assert run.end() == "finished:completed", run.log()
    assert run.saved()["registry"]["names"] == ["0", "1", "2", "3"]
    assert re.search(
        rf"client 0 is claimed by nodes \[\d+, {later}\]: {later} (.* )?is asked", run.log()
    )
    assert run.log().count("is claimed by") == 1
    assert (marked(lab, "twin", run, 1), marked(lab, "0", run, 1)) == (True, False)
    assert fates(run.rows[0]) == {"0": "arrived", "1": "arrived", "2": "stopped", "3": "rejected"}
    assert_on_time(run.rows)
    assert_model(run, by_the_paper(run.rows, CLIENTS | {"0": {"number": 100.0, "examples": 10}}))
    assert_replayed(run, run.rows, 4, 7)
    assert_nothing_left(lab)


def test_clients_join_and_leave_while_a_run_is_under_way(lab, tmp_path):
    config = {"clients": 4, "seed": 7, "rounds": 5, "trouble": "none", "aggregation": "paper"}
    with Run(lab, tmp_path, config, hold=(1, 2, 4)) as run:
        until(lambda: any(marked(lab, name, run, 1) for name in FOUR), "the first round", run.log)
        newcomer = start(lab, "4")
        first = run.row(1)
        run.let_go(1)
        second = run.row(2)
        until(lambda: has_said_who_it_is(lab, run, newcomer, "4"), "the newcomer's name", run.log)
        run.let_go(2)
        third, fourth = (
            run.row(3),
            run.row(4),
        )  # on a busy machine the third may begin before the name is pulled
        lab.stop("1")
        run.let_go(4)
        assert run.end() == "finished:completed", run.log()
    fifth = run.rows[4]
    assert list(first["probabilities"]) == ["0", "1", "2", "3"], (
        "who comes during a round is asked in a later one"
    )
    assert "4" in there(fourth)
    assert "4" in fates(third) or "4" not in there(third), (
        "this seed draws it as soon as it is there"
    )
    assert ("1" in there(second), "1" in there(fourth), "1" in there(fifth)) == (True, True, False)
    assert "1" not in fates(fifth)
    assert {status for row in run.rows for status in fates(row).values()} == {"arrived"}
    assert "client 1 has left" in run.log()
    assert_on_time(run.rows)
    assert_model(run, by_the_paper(run.rows, CLIENTS))
    state = assert_replayed(run, run.rows, 4, 7)
    assert state.num_clients == 5
    assert_nothing_left(lab)


def test_a_killed_superlink_is_started_again_and_the_run_resumes(lab, tmp_path):
    """Cohorts and model are those of a run that nobody interrupted, worked out beforehand."""
    seed, rounds, cohorts, model = 3, 4, [], 0.0
    whole = make_selector("e3cs-0.5", Federation(4, 3, rng=seed, horizon=rounds))
    for round in range(rounds):
        cohort = whole.select(round)
        whole.update(Outcome(cohort, np.ones(3)))
        asked = [CLIENTS[str(place)] for place in cohort.clients.tolist()]
        model += sum(c["number"] * c["examples"] for c in asked) / sum(c["examples"] for c in asked)
        cohorts.append([str(place) for place in cohort.clients.tolist()])
    patience = 3 * DEADLINE  # nodes look for a new SuperLink at growing intervals
    config = {"clients": 4, "seed": seed, "rounds": rounds, "trouble": "none", "deadline": patience}

    listed = online(lab)
    with Run(lab, tmp_path, config, hold=(2,)) as cut:
        cut.row(2)
        until(lambda: (state := cut.saved()) and state["round"] == 2, "the checkpoint", cut.log)
        lab.kill("superlink")
        written = (tmp_path / "rounds.jsonl").read_text()
        lab.start_link()
    assert not (tmp_path / "final.json").exists()
    with Run(lab, tmp_path, config | {"resume": True}) as run:
        assert run.end() == "finished:completed", run.log()
    assert cut.status != "finished:completed"
    assert f"resumed after round 2 from {tmp_path}" in run.log()
    assert (tmp_path / "rounds.jsonl").read_text().startswith(written)
    assert [row["round"] for row in run.rows] == [1, 2, 3, 4]
    assert [list(fates(row)) for row in run.rows] == cohorts
    assert {status for row in run.rows for status in fates(row).values()} == {"arrived"}
    assert_on_time(run.rows, patience)
    assert_model(run, model)
    assert_replayed(run, run.rows, 4, seed)
    np.testing.assert_array_equal(run.saved()["selector"]["log_weights"], whole.log_weights)
    assert online(lab) == listed, "the nodes came back as they were"
    assert_nothing_left(lab)


def test_a_round_closes_early_its_deadline_adapts_and_only_the_eligible_are_asked(lab, tmp_path):
    """Client 2 answers eight seconds after the others, and client 3 is in another region."""
    config = {"clients": 3, "rounds": 5, "seed": 2, "trouble": "lags", "eligible": "eu"}
    config |= {"enough": 2, "auto": True, "deadline": 40.0}
    with Run(lab, tmp_path, config) as run:
        assert run.end() == "finished:completed", run.log()

    rows = run.rows
    assert run.saved()["registry"]["names"] == ["0", "1", "2"], "client 3 has no index"
    assert fates(rows[0]) == {"0": "arrived", "1": "arrived", "2": "unneeded"}
    for row in rows:
        assert row["arrived"] >= 2
        assert row["seconds"] < row["deadline"] - 1, "nobody waits for the deadline"
        assert {"arrived", "unneeded"} >= set(fates(row).values())
    late = [entry for row in rows for entry in row.get("late", [])]
    assert late, "the late answer is noticed"
    assert {(entry["client"], entry["status"]) for entry in late} == {("2", "late")}
    assert min(entry["seconds"] for entry in late) > 8.0
    assert [row["deadline"] for row in rows[:2]] == [40.0, 40.0], "two answers are too few"
    # Answers take seconds, and up to 15 on a busy machine: the least deadline is 20.
    assert 20.0 <= rows[-1]["deadline"] < 40.0
    assert run.saved()["replies"]["deadlines"]["deadline"] == pytest.approx(
        rows[-1]["deadline"], abs=1e-3
    )
    assert_model(run, averaged(rows, CLIENTS))
    assert_replayed(run, rows, 3, 2)
    until(lambda: not apps(lab), "the last late answer", run.log, 20.0)


def by_fedvarp(rows):
    """FedVARP by hand: a client's update is its number in every round."""
    model, said, remembered = 0.0, {}, {}
    for row in rows:
        came = [name for name, status in fates(row).items() if status == "arrived"]
        said |= {name: CLIENTS[name]["examples"] for name in came}
        total = sum(said.values()) * len(row["probabilities"]) / len(said)
        number = {name: CLIENTS[name]["number"] for name in came}
        news = sum(said[name] * (number[name] - remembered.get(name, 0)) for name in came)
        average = sum(said[name] * update for name, update in remembered.items()) / total
        model += news / sum(said[name] for name in came) + average
        remembered |= number
    return model


def test_the_last_updates_of_all_clients_survive_the_death_of_the_server(lab, tmp_path):
    config = {"clients": 4, "cohort": 2, "seed": 5, "rounds": 4, "trouble": "none"}
    config |= {"aggregation": "fedvarp", "deadline": 3 * DEADLINE}
    with Run(lab, tmp_path / "whole", config) as whole:
        assert whole.end() == "finished:completed", whole.log()

    with Run(lab, tmp_path / "cut", config, hold=(2,)) as cut:
        until(lambda: (state := cut.saved()) and state["round"] == 2, "the checkpoint", cut.log)
        lab.kill("superlink")  # and the server app with it
        lab.start_link()
    assert not (tmp_path / "cut/final.json").exists()
    with Run(lab, tmp_path / "cut", config | {"resume": True}) as run:
        assert run.end() == "finished:completed", run.log()

    assert f"resumed after round 2 from {tmp_path / 'cut'}" in run.log()
    assert {status for row in run.rows for status in fates(row).values()} == {"arrived"}
    assert_model(whole, by_fedvarp(whole.rows))
    assert [fates(row) for row in run.rows] == [fates(row) for row in whole.rows]
    np.testing.assert_array_equal(run.saved()["model"]["w"], whole.saved()["model"]["w"])
    files = [
        {path.name: path.read_bytes() for path in (tmp_path / name / "memory").iterdir()}
        for name in ("whole", "cut")
    ]
    assert files[0] == files[1]
    assert len(run.saved()["replies"]["rule"]["memory"]) >= 3
    assert_nothing_left(lab)


def test_a_killed_supernode_is_lost_once_and_comes_back_with_its_weight(lab, tmp_path):
    """Last on this federation, because Flower lists the dead node for another minute.

    The next run would wait for its name.
    """
    with Run(
        lab, tmp_path, {"clients": 4, "seed": 7, "rounds": 6, "trouble": "dies"}, hold=(2, 3, 4)
    ) as run:
        until(lambda: marked(lab, "3", run, 2), "the client to train", run.log)
        listed = online(lab)
        lab.kill("3")
        second = run.row(2)
        until(lambda: run.saved()["round"] == 2, "the checkpoint", run.log)
        weight = run.saved()["selector"]["log_weights"][3]
        run.let_go(2)
        third = run.row(3)
        assert online(lab) == listed, "Flower still lists the dead"
        again = start(lab, "3")
        run.let_go(3)
        fourth = run.row(4)
        until(
            lambda: has_said_who_it_is(lab, run, again, "3"),
            "the name of the one that came back",
            run.log,
        )
        kept = run.saved()["selector"]["log_weights"][3]
        run.let_go(4)
        assert run.end() == "finished:completed", run.log()
    first, fifth, sixth = (
        run.rows[0],
        *run.rows[4:],
    )  # on a busy machine the fifth may begin before the name is pulled
    assert fates(first)["3"] == "arrived"
    assert (fates(second)["3"], reasons(second)["3"]) == ("lost", "no answer by the deadline")
    assert second["seconds"] > DEADLINE - 1, "nobody could know earlier"
    for row in (third, fourth):
        assert (there(row), list(fates(row))) == (["0", "1", "2"], ["0", "1", "2"]), (
            "the dead is not asked"
        )
        assert row["seconds"] < DEADLINE - 1, "and delays nobody"
    assert there(sixth) == ["0", "1", "2", "3"]
    assert "3" in fates(fifth) or "3" not in there(fifth), (
        "this seed draws it as soon as it is there"
    )
    assert {fates(row).get("3", "arrived") for row in (fifth, sixth)} == {"arrived"}
    assert_on_time(run.rows)
    assert_model(run, averaged(run.rows, CLIENTS))
    assert run.saved()["registry"]["names"] == ["0", "1", "2", "3"]
    assert weight > 0, "it had earned some"
    assert kept == weight, "and lost nothing while it was away"
    assert_replayed(run, run.rows, 4, 7)
    assert_nothing_left(lab)
