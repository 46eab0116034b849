"""TLS and authenticated SuperNodes, as real processes: only registered nodes take part."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deployment import (
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
    query,
    until,
)

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[2] / "examples/flower-quickstart/make-certificates"
CLIENTS = {"client-0": {"number": 1.0, "examples": 10}, "client-1": {"number": 2.0, "examples": 30}}
SEED = 0


def make_certificates(folder, *names):
    subprocess.run([sys.executable, str(SCRIPT), str(folder), *names], check=True)
    return folder


@pytest.mark.parametrize("names", [("../outside",), ("server",), ("twice", "twice"), ("",)])
def test_a_key_goes_into_the_folder_under_a_name_of_its_own_or_nowhere(tmp_path, names):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "keys"), *names],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert (
        f"clients must be names of files, each once and none server, got {names[0]!r}"
        in done.stderr
    )
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Ours, with a key that nobody registers, and those of another authority."""
    folder = tmp_path_factory.mktemp("keys")
    ours = make_certificates(folder / "ours", *CLIENTS, "nobody", "misled")
    return ours, make_certificates(folder / "theirs")


@pytest.fixture(scope="module")
def lab(quick, keys, tmp_path_factory):
    """A SuperLink with TLS, two registered SuperNodes, an unknown one, and a misled one."""
    ours, theirs = keys
    folder = tmp_path_factory.mktemp("tls")
    shutil.copy(ours / "ca.crt", folder)
    link = (
        "--ssl-ca-certfile",
        "ca.crt",
        "--ssl-certfile",
        "server.pem",
        "--ssl-keyfile",
        "server.key",
    )
    files = [argument if argument.startswith("--") else str(ours / argument) for argument in link]
    with open_lab(folder, *files, "--enable-supernode-auth", insecure=False) as lab:
        for name in (*CLIENTS, "misled"):
            told = lab.flwr(
                "supernode",
                "register",
                str(ours / f"{name}.pub"),
                "lab",
                "--name",
                name,
                "--format",
                "json",
            )
            assert told["success"], told
        for name in (*CLIENTS, "nobody", "misled"):
            (folder / f"marks-{name}").mkdir()
            says = {
                "client-id": f"not {name}",
                "marks": str(folder / f"marks-{name}"),
                **CLIENTS.get(name, {}),
            }
            trusts = theirs if name == "misled" else ours
            lab.start_node(
                name,
                says,
                *(
                    "--root-certificates",
                    str(trusts / "ca.crt"),
                    "--auth-supernode-private-key",
                    str(ours / f"{name}.key"),
                ),
            )
        until(lambda: len(online(lab)) == 2, "both clients", lambda: lab.log("client-0"))
        yield lab
        assert_all_ended(lab)


def test_registered_clients_train_and_are_known_by_their_registered_names(lab, tmp_path):
    config = {"clients": 2, "cohort": 1, "rounds": 3, "seed": SEED}
    with Run(lab, tmp_path, config) as run:
        assert run.end() == "finished:completed", run.log()
    assert run.saved()["registry"]["names"] == ["client-0", "client-1"]
    assert {name for row in run.rows for name in fates(row)} == set(CLIENTS)
    assert {status for row in run.rows for status in fates(row).values()} == {"arrived"}
    assert_on_time(run.rows)
    assert_model(run, averaged(run.rows, CLIENTS))
    assert_replayed(run, run.rows, 2, SEED)
    assert_nothing_left(lab)
    for name in ("nobody", "misled"):
        assert list((lab.folder / f"marks-{name}").iterdir()) == []
        assert name not in run.log()


def test_a_key_that_nobody_registered_is_refused(lab):
    process = lab.processes["nobody"]
    until(
        lambda: process.poll() is not None,
        "the SuperNode to give up",
        lambda: lab.log("nobody"),
        60.0,
    )
    assert process.returncode != 0
    assert "Received successfully" not in lab.log("nobody")
    assert len(query(lab, "select 1 from node")) == 3, "only those registered are in the database"


def test_a_node_that_trusts_another_authority_does_not_connect(lab):
    until(
        lambda: "CERTIFICATE_VERIFY_FAILED" in lab.log("misled"),
        "the refusal",
        lambda: lab.log("misled"),
        60.0,
    )
    assert "Received successfully" not in lab.log("misled")
    assert query(lab, "select last_activated_at from node where name = 'misled'") == [(None,)]
