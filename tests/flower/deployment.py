"""Runs of the test app on real processes, and what a run must have been.

What a run must have been is worked out here from its journal: who arrived gives the model, and a
new selector with the same outcomes gives the state.
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
from fedcohort.lab.folder.flower import FLOWER_CHECKPOINT_PARTS


def cannot_run(why):
    """Skip what this machine cannot run, loudly; in CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(f"CI is set, so Flower must run here: {why}", pytrace=False)
    pytest.skip(f"FLOWER IS NOT TESTED HERE: {why}", allow_module_level=True)


try:
    import ray  # noqa: F401  (the simulation engine)
    from local_federation import LocalFederation

    import fedcohort.flower  # noqa: F401
except ModuleNotFoundError as missing:
    cannot_run(str(missing))
if sys.platform != "linux":
    cannot_run(f"processes are followed in /proc, got {sys.platform}")

APP = Path(__file__).parent / "app"
DEADLINE = 20.0
SLACK = 2.0
TABLES = ("message_ins", "message_res", "objects", "run_objects", "object_children")
CLIENTS = {
    "0": {"number": 1.0, "examples": 10, "region": "eu"},
    "1": {"number": 2.0, "examples": 20, "region": "eu"},
    "2": {"number": 4.0, "examples": 30, "region": "eu", "behaviour": "slow|", "lags": "late"},
    "3": {
        "number": 8.0,
        "examples": 40,
        "region": "us",
        "behaviour": "nan|shape|raise|schema",
        "dies": "|slow|",
        "hostile": "dimension",
    },
    "4": {"number": 16.0, "examples": 50},
}
FOUR = ("0", "1", "2", "3")


class Run:
    """One run of the app: its folder, its journal, its status; at the end nothing holds it."""

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
        asked = (
            "select finished_at, sub_status from run "
            "join task on primary_task_id = task_id where run.run_id = ?"
        )
        [(finished, how)] = query(self.lab, asked, signed(self.id))
        return f"finished:{how}" if finished else "under way"

    def log(self):
        """What the ServerApp has said."""
        asked = (
            "select log from run join task_logs on primary_task_id = task_id "
            "where run_id = ? order by timestamp"
        )
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
        return load_checkpoint(self.folder, FLOWER_CHECKPOINT_PARTS)

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
    """FedAvg by hand: each client adds its number, so the model moves by the arrived mean."""
    model = 0.0
    for row in rows:
        came = [clients[name] for name, status in fates(row).items() if status == "arrived"]
        if came:
            model += sum(c["number"] * c["examples"] for c in came) / sum(
                c["examples"] for c in came
            )
    return model


def by_the_paper(rows, clients):
    """The paper's sum by hand: shares are of all clients' data.

    A client that never declared its examples counts as the mean of the others.
    """
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
    """A new selector with the same outcomes asks the same, and ends in the checkpoint's state."""
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
    """Return whether a newcomer's answer is in the database, or the server has it already."""
    asked = "select 1 from message_ins where dst_node_id = ?"
    answered = (
        "select 1 from message_ins i join message_res r "
        "on r.reply_to_message_id = i.message_id where i.dst_node_id = ?"
    )
    fetched = f"node {node % 2**64} is asked which client it is" in run.log() and not query(
        lab, asked, node
    )
    return (
        fetched
        or bool(query(lab, answered, node))
        or f"client {client} is on node {node % 2**64}" in run.log()
    )


def open_lab(folder, *link, **more):
    """Return a federation whose SuperLink runs."""
    lab = LocalFederation(folder, **more)
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
