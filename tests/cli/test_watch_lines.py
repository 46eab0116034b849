"""Every line that `watch` and the console print, beside what the files say."""

import os
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "reports"))
from run_folders import SMALL, journal_entry, write_comparison, write_journal

from fedcohort.cli.compare import _narrow_row, parse_setting
from fedcohort.cli.console import print_json, show
from fedcohort.cli.parse import parse_eta, parse_numbers, parse_words
from fedcohort.lab import folder as run_folder
from fedcohort.lab.progress import Snapshot, follow
from fedcohort.reports.report import Report

module = import_module("fedcohort.cli.watch")
CONFIG = replace(SMALL, partitions=("iid",), seeds=2, rounds=6)


@pytest.fixture
def half_done(tmp_path, monkeypatch):
    """Write four of six rounds; the last is not tested, and some were asked nobody in."""
    monkeypatch.setattr(module, "time", lambda: 2000.0)
    records = write_comparison(tmp_path, CONFIG)
    width = np.full((6, 4, 1), -1)
    records["clients"] = np.concatenate([records["clients"], width], axis=2).astype(np.int32)
    records["clients"][3, 2, 1] = -1
    for name in ("valid", "arrived"):
        records[name] = np.concatenate([records[name], width > 0], axis=2)
    records["valid"][3, 2] = [True, False, False, False]
    records["arrived"][3, 2] = [True, False, True, False]
    records["accuracy"][3] = np.nan
    (tmp_path / "records" / "0000000.npz").unlink()
    for start in (0, 2):
        chunk = {name: values[start : start + 2] for name, values in records.items()}
        run_folder.save_records(tmp_path, start, chunk)
    os.utime(tmp_path / "settings.toml", (1000, 1000))
    os.utime(tmp_path / "records" / "0000000.npz", (1900, 1900))
    os.utime(tmp_path / "records" / "0000002.npz", (1940, 1940))
    return tmp_path, records


def expected_numbers(records, rows):
    asked = 0
    for row in rows:
        asked += sum(client >= 0 for client in records["clients"][:4, row].ravel().tolist())
    used = sum(int(records["valid"][:4, row].sum()) for row in rows)
    accuracy = sum(records["accuracy"][2, row] for row in rows) / len(rows)
    return used / asked, accuracy


def test_watch_tells_a_comparison_line_by_line(half_done, fedcohort):
    folder, records = half_done
    snapshot = follow(folder).snapshot()
    assert (snapshot.done, snapshot.rounds, snapshot.written) == (4, 6, 1940)
    assert snapshot.seconds_left == pytest.approx(2 * 40 / 2)
    code, out, err = fedcohort("watch", folder, "--once")
    assert (code, err) == (0, "")
    title, first, second = out.splitlines()
    # Two rounds in the last 40 s, two to go; written a minute before now.
    assert title == "digits, mlp, 4 runs: round 4 of 6, about 0:40 to go, last written 1:00 ago"
    success, accuracy = expected_numbers(records, [0, 1])
    assert first.startswith(f"  e3cs-0.5: success ratio {success:.3f}, accuracy {accuracy:.3f}; ")
    success, accuracy = expected_numbers(records, [2, 3])
    arrived, _, rejected, _ = records["clients"][3, 2].tolist()
    assert second == (
        f"  random: success ratio {success:.3f}, accuracy {accuracy:.3f}; "
        f"asked last: {arrived} {rejected}!rejected"
    )


def test_the_table_in_a_terminal_has_the_same_numbers_and_failures_in_red(half_done):
    from rich.console import Console

    folder, records = half_done
    drawn = module.draw_snapshot(follow(folder).snapshot())
    with open(os.devnull, "w") as nowhere:
        console = Console(width=120, record=True, file=nowhere, force_terminal=True)
        console.print(drawn)
        styled = console.export_text(styles=True, clear=False)
        plain = console.export_text()
    title, bar, _, _, random = plain.splitlines()
    assert title.rstrip().endswith("about 0:40 to go, last written 1:00 ago")
    assert len(bar.rstrip()) == 40
    success, accuracy = expected_numbers(records, [2, 3])
    arrived, _, rejected, _ = records["clients"][3, 2].tolist()
    assert random.split() == [
        "random",
        f"{success:.3f}",
        f"{accuracy:.3f}",
        str(arrived),
        f"{rejected}!rejected",
    ]
    assert f"\x1b[31m{rejected}!rejected" in styled
    assert f"\x1b[31m{arrived}" not in styled


def test_a_flower_run_that_does_not_say_how_long_it_is_has_no_end(tmp_path, fedcohort, monkeypatch):
    write_journal(tmp_path, [journal_entry(3, {"a": "arrived", "b": "lost", "c": "arrived"})])
    os.utime(tmp_path / "rounds.jsonl", (1000, 1000))
    monkeypatch.setattr(module, "time", lambda: 4661.0)
    snapshot = follow(tmp_path).snapshot()
    assert (snapshot.done, snapshot.rounds, snapshot.seconds_left) == (3, None, None)
    assert not snapshot.finished
    code, out, _ = fedcohort("watch", tmp_path, "--once")
    assert code == 0
    assert out.splitlines() == [
        "Flower, a selector, ? of ? clients: round 3, last written 1:01:01 ago",
        "  this run: success ratio 0.667; asked last: a b!lost c",
    ]


def test_a_run_is_finished_when_its_last_round_is_played():
    for done, finished in ((4, False), (5, True), (6, True)):
        assert Snapshot("t", done, 5, None, None, ()).finished is finished
    assert not Snapshot("t", 5, None, None, None, ()).finished


def test_a_report_is_shown_with_its_tables_notes_and_figures(capsys, monkeypatch):
    console = import_module("fedcohort.cli.console").console
    monkeypatch.setattr(console, "_width", 100, raising=False)
    rows = [{"scheme": "random", "@45": "120", "paper @45": "121"}]
    show(Report("n", "Title [b]", {"Table [1]": rows}, ["Note one.", "Note [two]."]), "Figures: x")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0] == "Title [b]"
    assert lines[1] == "Table [1]"
    assert lines[-3:] == ["Note one.", "Note [two].", "Figures: x"]
    body = " ".join(" ".join(line.split()) for line in lines[2:-3])
    assert "@45" in body
    assert "random 120 121" in body  # the published value below ours


def test_json_keeps_what_json_has_and_spells_the_rest(capsys):
    import json

    print_json({"n": 1, "b": True, "z": None, "l": (1.5, "x"), "p": Path("a/b"), 3: {"q": "é"}})
    out = capsys.readouterr().out
    assert "é" in out
    assert json.loads(out) == {
        "n": 1,
        "b": True,
        "z": None,
        "l": [1.5, "x"],
        "p": str(Path("a/b")),
        "3": {"q": "é"},
    }


def test_the_table_of_compare_leaves_out_what_a_terminal_has_no_room_for():
    row = {"partition": "iid", "aggregation": "paper", "mu": 0.5, "selector": "random"}
    row |= {"rounds to 0.3": 4.0, "time to 0.3": 40.0, "rounds to 0.5": 6.0, "time to 0.5": 60.0}
    row |= {"final": 0.51239, "sd": 0.0126, "worst class": 0.4, "gap": 3.0, "worst label": 0.1}
    row |= {"success": 0.5, "Jain": 0.9, "wasted s": 3.0, "wasted MB": 2.0}
    narrow = _narrow_row(row)
    assert list(narrow) == [
        "selector",
        "rounds to 0.3",
        "rounds to 0.5",
        "time to 0.5",
        "final",
        "worst class",
        "success",
        "Jain",
        "wasted s",
    ]
    assert narrow["final"] == "0.512±0.013"
    assert _narrow_row(row | {"sd": float("nan")})["final"] == "0.512"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("seeds", "3", 3),
        ("learning_rate", "0.5", 0.5),
        ("mus", "0, 0.5", (0, 0.5)),
        ("dataset", "7", "7"),
        ("eta", "0.25", 0.25),
        ("eta", "auto", "auto"),
        ("candidates", "None", None),
        ("world_file", "12", "12"),
        ("world_options", ["a=1", "b=2"], ("a=1", "b=2")),
        ("refill", True, True),
    ],
)
def test_flags_have_the_type_of_their_setting(name, text, value):
    parsed = parse_setting(name, text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_words_and_numbers_are_read_from_commas():
    assert parse_words(" a, b ,,c") == ("a", "b", "c")
    assert parse_numbers("rates", "0.1, 2") == (0.1, 2.0)
    assert parse_eta("auto") == "auto"
    assert parse_eta("2") == 2.0
    with pytest.raises(ValueError, match="rates must be comma-separated numbers, got '1,x'"):
        parse_numbers("rates", "1,x")


def test_a_client_that_is_not_waited_for_is_not_shown_as_a_failure(tmp_path):
    entry = journal_entry(1, {"0": "arrived", "1": "unneeded", "2": "lost"})
    write_journal(tmp_path, [entry])
    (progress,) = follow(tmp_path).snapshot().selectors
    shown = {}
    for client in progress.asked:
        shown[client.name] = (module.name_client(client), module.STYLES.get(client.status, "red"))
    assert shown["1"] == ("1 (unneeded)", "dim")
    assert shown["2"] == ("2!lost", "red")
    spans = {span.style for span in module._draw_clients(progress).spans}
    assert spans == {"dim", "red"}
