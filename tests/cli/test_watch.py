import json
import os
import re
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "reports"))
from run_folders import SMALL, journal_entry, write_comparison

from fedcohort.lab import folder as rundir
from fedcohort.lab.progress import AskedClient, SelectorProgress, follow

module = import_module("fedcohort.cli.watch")


@pytest.fixture
def call(fedcohort):
    """Return a function that runs `watch`: exit code, output and errors."""

    def run(*args):
        return fedcohort("watch", *args)

    return run


def chunks(folder):
    return sorted((folder / "records").glob("*.npz"))


def test_a_comparison_is_followed_chunk_by_chunk(tmp_path):
    kept = write_comparison(tmp_path, chunks=3)
    paths = chunks(tmp_path)
    os.utime(tmp_path / "settings.toml", (1000, 1000))
    for number, path in enumerate(paths):
        os.utime(path, (1010 + 10 * number,) * 2)
        path.rename(path.with_suffix(".later"))
    following = follow(tmp_path)
    now = following.snapshot()
    assert (now.done, now.rounds, now.seconds_left, now.selectors, now.finished) == (
        0,
        12,
        None,
        (),
        False,
    )
    for number, path in enumerate(paths):
        path.with_suffix(".later").rename(path)
        now = following.snapshot()
        done = 4 * (number + 1)
        assert (now.done, now.finished) == (done, done == 12)
        assert now.seconds_left == pytest.approx(
            (12 - done) * 10 / 4
        )  # ten seconds for each four rounds
        random = now.selectors[1]
        rows = slice(6, 12)  # the second of two schemes, two partitions, three seeds
        assert random.success == pytest.approx(kept["valid"][:done, rows].mean())
        assert random.accuracy == pytest.approx(kept["accuracy"][done - 1, rows].mean())
        assert [one.name for one in random.asked] == kept["clients"][done - 1, 6].astype(
            str
        ).tolist()
        assert [one.status == "arrived" for one in random.asked] == kept["valid"][
            done - 1, 6
        ].tolist()


def test_once_tells_how_far_a_run_is_in_plain_lines(call, tmp_path):
    write_comparison(tmp_path, chunks=3)
    chunks(tmp_path)[-1].unlink()
    code, out, err = call(tmp_path, "--once")
    assert (code, err) == (0, "")
    first, *schemes = out.splitlines()
    assert first.startswith("digits, mlp, 12 runs: round 8 of 12")
    assert [line.split(":")[0].strip() for line in schemes] == list(SMALL.selectors)
    assert "!missing" in out
    assert "\x1b" not in out


def test_watching_ends_when_the_run_ends(call, tmp_path, monkeypatch):
    write_comparison(tmp_path, chunks=3)
    last = chunks(tmp_path)[-1]
    content = last.read_bytes()
    last.unlink()
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            last.write_bytes(content)

    monkeypatch.setattr(module, "sleep", pause)
    code, out, err = call(tmp_path, "--every", "0.5")
    assert (code, err, pauses) == (0, "", [0.5, 0.5])
    told = [line for line in out.splitlines() if "runs: round" in line]
    assert [
        "round 8 of 12" in told[0],
        told[1].endswith("round 12 of 12, finished"),
        len(told),
    ] == [True, True, 2]


def test_an_interrupt_ends_the_watching_and_says_that_the_run_goes_on(call, tmp_path, monkeypatch):
    write_comparison(tmp_path, chunks=3)
    chunks(tmp_path)[-1].unlink()

    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "sleep", interrupted)
    code, out, err = call(tmp_path)
    assert (code, err) == (0, "")
    assert out.endswith("No longer watched; the run goes on.\n")


def test_a_flower_run_is_followed_through_its_journal(call, tmp_path):
    (tmp_path / "run.json").write_text(
        '{"rounds": 4, "selector": "e3cs-0.5", "cohort_size": 2, "clients": 3}'
    )
    assert follow(tmp_path).snapshot().done == 0
    rows = [
        journal_entry(1, {"a": "arrived", "b": "lost"}),
        journal_entry(2, {"a": "arrived", "c": "stopped"}),
    ]
    (tmp_path / "rounds.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    now = follow(tmp_path).snapshot()
    assert (now.done, now.rounds, now.seconds_left, now.finished) == (
        2,
        4,
        5.0,
        False,
    )  # 2.5 s a round
    code, out, _ = call(tmp_path, "--once")
    assert code == 0
    assert "asked last: a c!stopped" in out
    assert "Flower, e3cs-0.5, 2 of 3 clients: round 2 of 4, about 0:05 to go" in out


def test_a_terminal_gets_a_bar_and_names_every_scheme(tmp_path):
    from rich.console import Console

    write_comparison(tmp_path)
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(module.draw_snapshot(follow(tmp_path).snapshot()))
    text = console.export_text()
    console.file.close()
    title, bar, header, *schemes = text.splitlines()
    assert title.startswith("digits, mlp, 12 runs: round 12 of 12, finished")
    assert set(bar.strip()) == {"━"}
    assert header.split() == ["scheme", "success", "accuracy", "asked", "last"]
    assert len(schemes) == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("none",), "run must be a folder of a run, got none"),
        ((".",), "run must be a folder of `compare`"),
        ((".", "--every", "0"), r"every must be .* 0\.01 .* 86400"),
        ((".", "--every", "1e300"), r"every must be .* 0\.01 .* 86400"),
    ],
)
def test_what_cannot_be_watched_is_refused_in_one_line(call, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert re.search(message, err)


def test_a_damaged_chunk_is_refused_by_name(call, tmp_path):
    write_comparison(tmp_path)
    chunks(tmp_path)[0].write_bytes(b"half")
    code, _, err = call(tmp_path, "--once")
    assert code == 2
    assert "0000000.npz must be a results file" in err


def test_the_journal_says_what_is_played(tmp_path):
    assert rundir.read_about(tmp_path) == {}
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"run\.json must be written by a Flower run"):
        rundir.read_about(tmp_path)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (61.4, "1:01"), (3599.6, "1:00:00")]
)
def test_times_are_rounded_to_whole_seconds(seconds, text):
    assert module.format_seconds(seconds) == text


@pytest.mark.parametrize(("asked", "text"), [(20, ""), (21, " and 1 more"), (50, " and 30 more")])
def test_clients_beyond_the_first_twenty_are_counted(asked, text):
    clients = [AskedClient(str(number), "arrived") for number in range(asked)]
    selector = SelectorProgress("random", 0.5, 0.5, clients)
    assert module.count_unnamed(selector) == text


def test_a_client_whose_update_was_rejected_is_told_from_one_that_did_not_answer(tmp_path):
    folder = tmp_path / "run"
    config = replace(SMALL, selectors=("random",), partitions=("iid",), seeds=1, rounds=1)
    records = write_comparison(folder, config)
    records["arrived"] = np.array([[[True, True, False]]])
    records["valid"] = np.array([[[True, False, False]]])
    rundir.save_records(folder, 0, records)
    (progress,) = follow(folder).snapshot().selectors
    statuses = [client.status for client in progress.asked]
    assert statuses == ["arrived", "rejected", "missing"]


def test_the_time_left_of_a_flower_run_follows_its_last_ten_rounds(tmp_path):
    (tmp_path / "run.json").write_text('{"rounds": 32, "selector": "random"}')
    rows = []
    for number in range(1, 31):
        seconds = 3.0 if number > 20 else 50.0
        rows.append(journal_entry(number, {"a": "arrived"}) | {"seconds": seconds})
    (tmp_path / "rounds.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert follow(tmp_path).snapshot().seconds_left == pytest.approx(2 * 3.0)
