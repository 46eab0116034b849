"""`benchmarks/run.py` measures suites, keeps their record and exits with 1 if one got slower."""

import json
from importlib import import_module

import pytest


@pytest.fixture
def run():
    return import_module("run")


def row(median, unit="ms"):
    return {"what": "a", "median": median, "Q1": median, "Q3": median, "unit": unit, "n": 3}


@pytest.fixture
def fake(run, monkeypatch):
    """Replace all suites by one whose rows the test sets."""
    rows = []
    suite = run.Suite("Something.", lambda quick: [dict(one) for one in rows], "higher")
    monkeypatch.setattr(run, "SUITES", {"fake": suite})
    return rows


def test_a_run_writes_a_record_that_the_next_run_is_compared_with(run, fake, tmp_path, capsys):
    old = tmp_path / "old.json"
    new = tmp_path / "new.json"
    fake[:] = [row(10.0), row(2.0, "×")]
    assert run.main(["fake", "--quick", "--out", str(old)]) == 0
    record = json.loads(old.read_text())
    assert record["command"] == "python benchmarks/run.py fake --quick"
    assert [one["better"] for one in record["suites"]["fake"]["rows"]] == ["lower", "higher"]

    assert run.main(["--out", str(new), "--against", str(old)]) == 0
    assert "slower" not in capsys.readouterr().out
    fake[:] = [row(10.0), row(1.0, "×")]
    assert run.main(["--out", str(new), "--against", str(old)]) == 1
    assert "new / old 0.5 (higher is better): slower" in capsys.readouterr().out


def test_a_mistake_is_said_before_anything_is_measured(run, monkeypatch, tmp_path, capsys):
    def fail(*_):
        raise AssertionError("nothing must be measured")

    monkeypatch.setattr(run, "measure", fail)
    wrong = tmp_path / "wrong.json"
    wrong.write_text("[]")
    records = run.ROOT / "benchmarks" / "records"
    for words in (
        ["selektion"],
        ["selection", "--against", str(wrong)],
        ["selection", "--out", str(wrong)],
        ["selection", "--page", str(wrong)],
        ["--page", str(wrong)],
        ["--page", str(records), "--overwrite"],
        ["selection", "--out", str(wrong / "new.json")],
        ["selection", "--out", str(tmp_path), "--overwrite"],
        ["selection", "--out", str(tmp_path / ("x" * 250 + ".json"))],
        ["selection", "--out", str(tmp_path / ("x" * 300))],
        ["selection", "--out", "/proc/new.json"],
    ):
        assert run.main(words) == 2
        said = capsys.readouterr().err
        assert said.startswith("Error: ")
        assert len(said.splitlines()) == 1
    assert wrong.read_text() == "[]"
    assert list(tmp_path.iterdir()) == [wrong]


def test_the_page_of_a_record_is_written_without_measuring(run, fake, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    monkeypatch.setattr(run, "PAGE", page)
    out = tmp_path / "record.json"
    fake[:] = [row(10.0)]
    run.main(["--out", str(out)])
    fake[:] = [row(99.0)]
    assert run.main(["--page", str(out)]) == 0
    assert "| a | 10 | 10 | 10 | ms | 3 | lower |" in page.read_text()


def test_the_page_of_a_folder_has_a_section_for_each_record(run, fake, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    monkeypatch.setattr(run, "PAGE", page)
    for name, median in (("b-gpu", 2.0), ("a-cpu", 10.0)):
        fake[:] = [row(median)]
        run.main(["--out", str(tmp_path / f"{name}.json")])
    assert run.main(["--page", str(tmp_path)]) == 0
    text = page.read_text()
    first, second = text.index("## a-cpu\n"), text.index("## b-gpu\n")
    assert first < text.index("| a | 10 |") < second < text.index("| a | 2 |")


def test_records_of_one_name_are_all_shown_with_their_paths(run, fake, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    monkeypatch.setattr(run, "PAGE", page)
    paths = [tmp_path / folder / "x.json" for folder in ("one", "two")]
    for path, median in zip(paths, (10.0, 2.0), strict=True):
        fake[:] = [row(median)]
        run.main(["--out", str(path)])
    assert run.main(["--page", *map(str, paths)]) == 0
    text = page.read_text()
    places = [text.index(words) for words in (f"`{paths[0]}`", "| a | 10 |", f"`{paths[1]}`")]
    assert places == sorted(places)
    assert places[-1] < text.index("| a | 2 |")


def test_a_folder_without_records_is_refused(run, tmp_path, capsys):
    assert run.main(["--page", str(tmp_path)]) == 2
    assert "must hold records (*.json), got none" in capsys.readouterr().err


def test_the_page_of_measurements_is_that_of_the_committed_records(run, tmp_path, monkeypatch):
    committed = run.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(run, "PAGE", tmp_path / "page.md")
    assert run.main(["--page", str(run.ROOT / "benchmarks" / "records")]) == 0
    assert run.PAGE.read_text(encoding="utf-8") == committed


def test_comparisons_of_the_cpu_become_rows():
    comparison = {
        "what": "mlp / vmap",
        "ratio": 0.5,
        "ratio Q1": 0.4,
        "ratio Q3": 0.6,
        "ours seconds": 1.0,
        "floor seconds": 2.0,
        "rounds": 7,
    }
    ratio = import_module("bench_suites").as_ratio_row(comparison)
    assert ratio == {
        "what": "mlp / vmap",
        "median": 0.5,
        "Q1": 0.4,
        "Q3": 0.6,
        "unit": "×",
        "n": 7,
    }


def test_bandwidth_counts_the_bytes_that_it_is_given(monkeypatch):
    suites = import_module("bench_suites")
    monkeypatch.setattr(suites, "time_calls", lambda copy: [0.5, 0.5])
    found = suites.bandwidth_row("copy", lambda: None, 4_000_000_000)
    assert (found["median"], found["unit"]) == (pytest.approx(8.0), "GB/s")


def test_a_product_of_matrices_counts_two_operations_per_pair(monkeypatch):
    torch = pytest.importorskip("torch")
    suites = import_module("bench_suites")
    monkeypatch.setattr(suites, "time_calls", lambda call: [1e-6])
    found = suites.matmul_row("cpu", torch.float32, 10)
    assert found["median"] == pytest.approx(2.0)  # 2 * 10 * 10 * 10 in a microsecond
    assert found["unit"] == "GFLOP/s"


def test_calls_take_turns_and_the_first_turn_only_warms_up():
    order = []
    calls = [lambda: order.append("a"), lambda: order.append("b")]
    seconds = import_module("bench_suites").time_by_turns(calls, 3)
    assert order == ["a", "b"] * 4
    assert [len(own_seconds) for own_seconds in seconds] == [3, 3]


def test_what_is_not_installed_has_a_row_that_says_so(monkeypatch):
    suites = import_module("bench_suites")
    monkeypatch.setattr(suites, "find_spec", lambda name: None)
    (flower,) = suites.measure_flower(True)
    flwr, pfl = suites.measure_peers(True)
    assert flower["what"] == "rounds on Flower: flwr is not installed"
    assert (flwr["what"], pfl["what"]) == ("flwr[simulation]: not installed", "pfl: not installed")
    assert [one["n"] for one in (flower, flwr, pfl)] == [0, 0, 0]


@pytest.mark.slow
def test_the_report_of_a_stored_run_is_measured():
    pytest.importorskip("torch")
    rows = import_module("bench_suites").measure_report(True)
    assert [one["unit"] for one in rows] == ["ms", "ms", "ms", "×"]
    assert all(one["n"] == 3 and one["median"] > 0 for one in rows)
