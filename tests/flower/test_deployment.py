"""Real processes on this machine: a SuperLink, SuperNodes, and clients that are slow, broken, killed, new or twice there.

One federation serves most tests, one run after another. What a run must have been is worked out here from its journal: who
arrived gives the model, and a new selector fed with the same outcomes gives the state.
"""

import json
import os
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep, time

import numpy as np
import pytest

from fedcohort import Federation, Outcome, make_selector
from fedcohort.lab.folder import load_checkpoint


def cannot_run(why):
    """Skip what this machine cannot run, loudly; in CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(f"CI is set, so Flower must run here: {why}", pytrace=False)
    pytest.skip(f"FLOWER IS NOT TESTED HERE: {why}", allow_module_level=True)


try:
    import ray  # noqa: F401  (the simulation engine)

    from fedcohort.flower import checkpoint
    from fedcohort.flower.loopback import Loopback
except ModuleNotFoundError as missing:
    cannot_run(str(missing))
if sys.platform != "linux":
    cannot_run(f"processes are followed in /proc, got {sys.platform}")

pytestmark = pytest.mark.slow
APP = Path(__file__).parent / "app"
DEADLINE = 20.0
SLACK = 2.0
TABLES = ("message_ins", "message_res", "objects", "run_objects", "object_children")
CLIENTS = {
    "0": {"number": 1.0, "examples": 10},
    "1": {"number": 2.0, "examples": 20},
    "2": {"number": 4.0, "examples": 30, "behaviour": "slow|"},
    "3": {"number": 8.0, "examples": 40, "behaviour": "nan|shape|raise|schema", "dies": "|slow|"},
    "4": {"number": 16.0, "examples": 50},
}
FOUR = ("0", "1", "2", "3")


class Run:
    """One run of the app: its folder, its journal, what Flower says of it; at the end nothing holds it any more."""

    def __init__(self, lab, folder, config, *more, hold=()):
        self.lab, self.folder = lab, folder
        self.config = {
            "folder": str(folder),
            "cohort": 3,
            "rounds": 4,
            "deadline": DEADLINE,
            "wait": 120.0,
            **config,
        }
        folder.mkdir(exist_ok=True, parents=True)
        for round in hold:
            (folder / f"hold-{round}").touch()
        self.id = lab.submit(APP, self.config, *more)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for path in self.folder.glob("hold-*"):
            path.unlink()
        if kind and not self.status.startswith("finished"):
            self.lab.flwr("stop", str(self.id), "lab", "--format", "json")

    def let_go(self, round):
        """Let the run go on after a round at which it was held."""
        (self.folder / f"hold-{round}").unlink()

    @property
    def rows(self):
        """The journal so far; the last line may be half written."""
        path = self.folder / "rounds.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def row(self, round):
        """Wait for a round to be written down and return it."""
        until(
            lambda: len(self.rows) >= round or self.status.startswith("finished"),
            f"round {round}",
            self.log,
        )
        assert len(self.rows) >= round, self.log()
        return self.rows[round - 1]

    @property
    def status(self):
        """How the run stands, as `flwr list` says it."""
        asked = "select finished_at, sub_status from run join task on primary_task_id = task_id where run.run_id = ?"
        [(finished, how)] = query(self.lab, asked, signed(self.id))
        return f"finished:{how}" if finished else "under way"

    def log(self):
        """What the ServerApp has said."""
        asked = "select log from run join task_logs on primary_task_id = task_id where run_id = ? order by timestamp"
        return re.sub(
            r"\x1b\[\d+m", "", "".join(line for (line,) in query(self.lab, asked, signed(self.id)))
        )

    def end(self, seconds=150.0):
        """Wait for the end and return how it was."""
        until(
            lambda: self.status.startswith("finished"),
            f"the end of run {self.id}",
            self.log,
            seconds,
        )
        return self.status

    def saved(self):
        """The state after the last round."""
        return load_checkpoint(self.folder, checkpoint.PARTS)

    def final(self):
        """What the ServerApp wrote when it was done."""
        return json.loads((self.folder / "final.json").read_text())


def until(done, wanted, log=lambda: "", seconds=90.0):
    """Wait for an event."""
    end = monotonic() + seconds
    while not done():
        if monotonic() > end:
            raise TimeoutError(f"waited {seconds:g} s in vain for {wanted}\n{log()}")
        sleep(0.1)


def signed(number):
    """Return an id as the database holds it."""
    return number - 2**64 if number >= 2**63 else number


def query(lab, text, *values):
    with closing(sqlite3.connect(f"file:{lab.database}?mode=ro", uri=True, timeout=20)) as base:
        return base.execute(text, values).fetchall()


def online(lab):
    """Return the nodes that Flower lists now."""
    return {
        node
        for (node,) in query(
            lab, "select node_id from node where status = 'online' and online_until > ?", time()
        )
    }


def apps(lab):
    """Return the commands of ServerApps and ClientApps that run now."""
    commands = [command_of(pid) for pid in lab.alive()]
    return [
        command
        for command in commands
        if re.search(r"flwr-(serverapp|clientapp|simulation)", command)
    ]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def fates(row):
    return {asked["client"]: asked["status"] for asked in row["asked"]}


def reasons(row):
    return {asked["client"]: asked["reason"] for asked in row["asked"]}


def there(row):
    """Return who could have been asked: every client that is there has a floor."""
    return [name for name, probability in row["probabilities"].items() if probability > 0]


def assert_on_time(rows, deadline=DEADLINE):
    for row in rows:
        assert row["seconds"] <= deadline + SLACK, row


def rows_left(lab):
    """Return how many rows there are in the tables that a run fills and must empty."""
    return {table: query(lab, f"select count(*) from {table}")[0][0] for table in TABLES}


def assert_nothing_left(lab):
    """No message, no object, no app is left once a run is over."""
    assert rows_left(lab) == dict.fromkeys(TABLES, 0)
    until(lambda: not apps(lab), "apps to end", lambda: "\n".join(apps(lab)), 10.0)


def averaged(rows, clients):
    """FedAvg by hand: every client adds its number, so the model moves by the mean of those that arrived."""
    model = 0.0
    for row in rows:
        came = [clients[name] for name, status in fates(row).items() if status == "arrived"]
        if came:
            model += sum(c["number"] * c["examples"] for c in came) / sum(
                c["examples"] for c in came
            )
    return model


def by_the_paper(rows, clients):
    """The paper's sum by hand: shares are of all clients' data; who never said how much it has counts as the mean."""
    model, said = 0.0, {}
    for row in rows:
        came = [name for name, status in fates(row).items() if status == "arrived"]
        said |= {name: clients[name]["examples"] for name in came}
        if came:
            total = sum(said.values()) * len(row["probabilities"]) / len(said)
            model += (
                sum(clients[name]["number"] * clients[name]["examples"] for name in came) / total
            )
    return model


def assert_replayed(run, rows, size, seed, selector="e3cs-0.5"):
    """A new selector that is told the same is asked the same, and ends in the state of the checkpoint, to the last bit."""
    saved = run.saved()
    names = saved["registry"]["names"]
    mine = make_selector(
        selector, Federation(size, run.config["cohort"], rng=seed, horizon=run.config["rounds"])
    )
    for row in rows:
        if (newcomers := len(row["probabilities"]) - mine.num_clients) > 0:
            mine.join(newcomers)
        places = np.array([names.index(name) for name in there(row)])
        available = None if len(places) == mine.num_clients else places
        told = [row["probabilities"][name] for name in names[: mine.num_clients]]
        np.testing.assert_allclose(mine.inclusion(row["round"] - 1, available), told, atol=1e-6)
        cohort = mine.select(row["round"] - 1, available)
        assert [names[place] for place in cohort.clients.tolist()] == [
            asked["client"] for asked in row["asked"]
        ]
        mine.update(
            Outcome(cohort, np.array([asked["status"] == "arrived" for asked in row["asked"]]))
        )
    assert saved["round"] == rows[-1]["round"]
    np.testing.assert_array_equal(saved["selector"]["log_weights"], mine.log_weights)
    assert str(saved["selector"]["rng"]) == str(mine.state_dict()["rng"])
    return mine


def assert_model(run, number):
    """The final model, and the one in the checkpoint, are this number four times."""
    np.testing.assert_allclose(run.final()["w"], [number] * 4, rtol=2e-6)
    np.testing.assert_array_equal(
        run.saved()["model"]["w"], np.array(run.final()["w"], dtype=np.float32)
    )


def start_node(lab, name, client=None, **more):
    marks = lab.folder / f"marks-{name}"
    marks.mkdir(exist_ok=True)
    lab.start_node(
        name, {"client-id": client or name, "marks": str(marks), **CLIENTS[client or name], **more}
    )


def start(lab, name, client=None, **more):
    """Start a SuperNode and wait until Flower lists it; return its id."""
    before = online(lab)
    start_node(lab, name, client, **more)
    until(lambda: online(lab) - before, f"node {name} to connect", lambda: lab.log(name))
    (node,) = online(lab) - before
    return node


def marked(lab, name, run, round):
    """Return whether a node has begun to train in a round."""
    return any((lab.folder / f"marks-{name}").glob(f"{run.id}-{round}-*"))


def has_said_who_it_is(lab, run, node, client):
    """Return whether a newcomer's answer has come: it waits in the database, or the server has it already, looked at or not."""
    asked = "select 1 from message_ins where dst_node_id = ?"
    answered = "select 1 from message_ins i join message_res r on r.reply_to_message_id = i.message_id where i.dst_node_id = ?"
    fetched = f"node {node % 2**64} is asked which client it is" in run.log() and not query(
        lab, asked, node
    )
    return (
        fetched
        or bool(query(lab, answered, node))
        or f"client {client} is on node {node % 2**64}" in run.log()
    )


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Let Flower look for work more often than once a second, so that the tests wait less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLWR_SUPEREXEC_TASK_POLL_INTERVAL", "0.2")
        yield


def open_lab(folder, *link, **more):
    """Return a federation whose SuperLink runs."""
    lab = Loopback(folder, **more)
    try:
        lab.start_link(*link)
    except (OSError, TimeoutError) as error:
        lab.close()
        cannot_run(f"no SuperLink: {error}\n{lab.log('superlink')[-2000:]}")
    return lab


def assert_all_ended(lab):
    """Closing ends every process, also by another sign than the one that `alive` goes by."""
    lab.close()
    assert lab.alive() == []
    everything = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    mine = [command_of(pid) for pid in everything if pid != os.getpid()]
    assert [c for c in mine if f"127.0.0.1:{lab.port}" in c or f"{lab.folder}/" in c] == []


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
    """A SuperLink and four SuperNodes, whatever the test before left; nothing of what Flower lists is dead."""
    for name in set(federation.processes) - {"superlink", *FOUR}:
        federation.stop(name)
    if "superlink" not in federation.processes:
        federation.start_link()
    for name in set(FOUR) - set(federation.processes):
        start_node(federation, name)
    until(lambda: len(online(federation)) == 4, "four nodes", lambda: federation.log("0"))
    return federation


def test_what_cannot_run_says_why(bare, tmp_path):
    """No SuperNode; a selector nobody knows; the checkpoint of another model: each ends the run and names what was given."""
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
                f"{tmp_path / 'other'} must hold a checkpoint of this model, got another: 'w' is float32[4] here and",
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


def test_a_killed_supernode_is_lost_once_and_comes_back_with_its_weight(lab, tmp_path):
    """Last on this federation: Flower lists the dead node for another minute, and the next run would wait for its name."""
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
