"""Records are compared by their quartiles, and a wrong file is refused in one line."""

import json
from importlib import import_module

import pytest


@pytest.fixture
def records():
    return import_module("bench_records")


def make_row(what="round", median=10.0, spread=0.5, unit="ms", better="lower", n=5):
    low = median - spread
    high = median + spread
    return {
        "what": what,
        "median": median,
        "Q1": low,
        "Q3": high,
        "unit": unit,
        "n": n,
        "better": better,
    }


def make_record(*rows, date="2026-01-02", machine="box", suite="selection"):
    return {
        "date": date,
        "machine": machine,
        "commit": "abc",
        "command": "python benchmarks/run.py",
        "load": 0.5,
        "suites": {suite: {"about": "Something.", "rows": list(rows)}},
    }


@pytest.mark.parametrize(
    ("unit", "ratio", "better"),
    [
        ("s", "higher", "lower"),
        ("ms", "higher", "lower"),
        ("µs", "higher", "lower"),
        ("client-steps/s", "lower", "higher"),
        ("GB/s", "lower", "higher"),
        ("×", "lower", "lower"),
        ("×", "higher", "higher"),
    ],
)
def test_times_shall_fall_speeds_shall_rise_and_ratios_say_their_direction(
    records, unit, ratio, better
):
    assert records.direction(unit, ratio) == better


def test_a_unit_without_a_direction_is_refused(records):
    with pytest.raises(ValueError, match=r"unit must be .*, got 'MB'"):
        records.direction("MB", "lower")


@pytest.mark.parametrize(
    ("new_median", "spread", "better", "verdict"),
    [
        (12.0, 0.5, "lower", "slower"),
        (12.0, 0.5, "higher", "faster"),
        (8.0, 0.5, "lower", "faster"),
        (8.0, 0.5, "higher", "slower"),
        (12.0, 1.5, "lower", ""),  # from 10.5 on, where the old range ends: they touch
        (12.0, 1.4, "lower", "slower"),
        (10.9, 0.1, "lower", ""),  # the ranges are apart, but by less than 10 %
        (9.2, 0.1, "higher", ""),  # 10 / 9.2 is less than 1.1
        (9.0, 0.1, "higher", "slower"),
        (10.0, 0.5, "lower", ""),
    ],
)
def test_slower_needs_both_quartiles_apart_and_more_than_a_tenth(
    records, new_median, spread, better, verdict
):
    old = make_record(make_row(median=10.0, spread=0.5, better=better))
    new = make_record(make_row(median=new_median, spread=spread, better=better))
    (row,) = records.compare(old, new)
    assert row["verdict"] == verdict
    assert (row["old"], row["new"]) == (10.0, new_median)
    assert row["new / old"] == pytest.approx(new_median / 10.0)
    assert records.has_slower(old, new) == (verdict == "slower")


def test_rows_are_the_same_only_with_the_same_suite_name_and_unit(records):
    old = make_record(make_row("a"), make_row("b"), make_row("c", unit="s"))
    new = make_record(make_row("a"), make_row("c"), make_row("d"))
    assert [row["what"] for row in records.compare(old, new)] == ["a"]
    assert records.only_in_first(old, new) == ["selection: b", "selection: c"]
    assert records.only_in_first(new, old) == ["selection: c", "selection: d"]
    assert records.compare(old, make_record(make_row("a"), suite="cpu")) == []


def test_what_was_not_measured_is_not_compared(records):
    missing = records.not_measured("pfl: not installed")
    record = make_record(missing)
    assert records.find_problem(record) is None
    assert records.compare(record, record) == []


def test_the_text_names_verdict_direction_machine_and_lonely_rows(records):
    old = make_record(make_row("a"), make_row("b"), machine="one")
    new = make_record(make_row("a", median=20.0), make_row("c"), machine="two")
    lines = records.describe_changes(old, new).splitlines()
    assert lines == [
        "Another machine or other versions: one; now two.",
        "selection: a: 10 -> 20 ms, new / old 2 (lower is better): slower",
        "only in the old record: selection: b",
        "only in the new record: selection: c",
    ]


def test_a_record_is_read_as_it_was_written(records, tmp_path):
    record = make_record(make_row(unit="µs"), records.not_measured("x"))
    path = tmp_path / "new" / "record.json"
    records.write_record(path, record)
    assert records.read_record(path) == record
    assert [file.name for file in path.parent.iterdir()] == ["record.json"]


def test_a_record_that_cannot_be_written_leaves_the_old_one(records, tmp_path):
    path = tmp_path / "record.json"
    records.write_record(path, make_record(make_row()))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        records.write_record(path, make_record(make_row(median=float("nan"))))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_another_dates_record_is_replaced_only_if_told(records, tmp_path):
    path = tmp_path / "record.json"
    records.write_record(path, make_record(date="2026-01-02"))
    records.write_record(path, make_record(make_row(), date="2026-01-02"))  # the same day
    with pytest.raises(ValueError, match="new or of 2026-01-03, got a record of 2026-01-02"):
        records.write_record(path, make_record(date="2026-01-03"))
    assert records.read_record(path)["date"] == "2026-01-02"
    records.write_record(path, make_record(date="2026-01-03"), overwrite=True)
    assert records.read_record(path)["date"] == "2026-01-03"


def test_a_file_that_is_no_record_is_not_replaced(records, tmp_path):
    path = tmp_path / "notes.json"
    path.write_text("[1]")
    with pytest.raises(ValueError, match="must be a record"):
        records.write_record(path, make_record())
    assert path.read_text() == "[1]"


WRONG = {
    "a list": [],
    "date = None": {key: value for key, value in make_record().items() if key != "date"},
    "machine = 3": make_record(machine=3),
    "load = 'low'": make_record() | {"load": "low"},
    "suites = None": make_record() | {"suites": None},
    "suite 'x' without a text": make_record() | {"suites": {"x": {"rows": []}}},
    "suite 'x' without a list": make_record() | {"suites": {"x": {"about": "", "rows": 1}}},
    "not exactly what": make_record({"what": "a"}),
    "better = 'up' of 'round'": make_record(make_row(better="up")),
    "n = -1 of 'round'": make_record(make_row(n=-1)),
    "the number -0.5 of 'round'": make_record(make_row(median=0.0)),
    "the number None of 'round'": make_record(make_row() | {"Q1": None}),
    "quartiles out of order": make_record(make_row(spread=-1.0)),
    "'round' twice in suite 'selection'": make_record(make_row(), make_row()),
}


@pytest.mark.parametrize("problem", WRONG)
def test_a_wrong_record_is_refused_in_one_line(records, tmp_path, problem):
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(WRONG[problem]))
    with pytest.raises(ValueError, match=r"must be a record of benchmarks/run.py, got ") as caught:
        records.read_record(path)
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_json_or_no_file_is_refused(records, tmp_path):
    path = tmp_path / "old.json"
    with pytest.raises(ValueError, match=r"old.json must be readable, got No such file"):
        records.read_record(path)
    path.write_text("{")
    with pytest.raises(ValueError, match=r"old.json must hold JSON, got: "):
        records.read_record(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"old.json must hold JSON, got: "):
        records.read_record(path)


def test_the_page_has_date_command_machine_and_a_table_for_each_suite(records):
    record = make_record(make_row("a | b", median=1234.5), records.not_measured("pfl"))
    page = records.as_page({"some/folder/here.json": record})
    for words in (
        "2026-01-02",
        "`python benchmarks/run.py`",
        "Machine: box",
        "end: 0.5",
        "## here",
        "- Record: `some/folder/here.json`",
        "### selection",
    ):
        assert words in page
    assert "| a \\| b | 1,234 |" in page
    assert "| pfl | - | - | - | s | 0 | lower |" in page
