import csv
import io
import json
import os
import zipfile
from dataclasses import asdict, dataclass
from unittest.mock import ANY

import numpy as np
import pytest

from fedcohort.files import atomic_write, save_csv
from fedcohort.lab.folder import (
    check_simulation_folder,
    load_simulation_results,
    read_simulation_settings,
    save_simulation,
)

SETTINGS = {"experiment": "x", "rates": (0.1, 0.9), "eta": 0.5}
ARRAYS = {
    "e3cs-0.5/counts": np.arange(2000).reshape(2, 1000),
    "random/expected": np.linspace(0, 1, 7),
}


@pytest.fixture
def saved(tmp_path):
    """Return a folder with results."""
    save_simulation(tmp_path / "deep" / "run", SETTINGS, ARRAYS)
    return tmp_path / "deep" / "run"


def load(folder):
    return read_simulation_settings(folder), load_simulation_results(folder)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return file.getvalue()


def test_a_file_is_put_in_place_only_when_written_whole(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with atomic_write(path) as draft:
        draft.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert names(path.parent) == ["file.txt"]


@pytest.mark.parametrize("trouble", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_writer_that_fails_leaves_the_old_file_and_no_draft(tmp_path, trouble):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write_half():
        with atomic_write(path) as draft:
            draft.write_text("half of the n")
            raise trouble

    with pytest.raises(trouble):
        write_half()
    assert contents(tmp_path) == {"file.txt": b"old"}


def test_a_writer_that_fails_before_the_first_byte_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), atomic_write(tmp_path / "file.txt"):
        raise RuntimeError
    assert names(tmp_path) == []


def test_an_error_about_a_draft_names_the_file_that_was_to_be_written(tmp_path):
    path = tmp_path / ("long" * 63)  # 252 letters: too long for a draft, which adds to them
    with pytest.raises(OSError, match="too long") as caught, atomic_write(path):
        raise AssertionError("there is no draft to write to")
    assert caught.value.filename == str(path)


def test_what_was_saved_is_loaded_with_types_and_shapes(saved):
    settings, arrays = load(saved)
    assert settings == {"experiment": "x", "rates": [0.1, 0.9], "eta": 0.5}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    assert names(saved) == ["results.npz", "settings.json"]


def test_an_object_array_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="cannot keep 'bad', an array of objects"):
        save_simulation(tmp_path, SETTINGS, {"bad": np.array([{"a": 1}], dtype=object)})
    assert names(tmp_path) == []


def test_an_interrupted_overwrite_never_pairs_old_settings_with_new_results(saved, monkeypatch):
    replace = os.replace

    def fail_at_the_settings(source, target):
        if str(target).endswith("settings.json"):
            raise OSError("disk full")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_at_the_settings)
    with pytest.raises(OSError, match="disk full"):
        save_simulation(saved, {**SETTINGS, "eta": 0.9}, {"other": np.zeros(3)})
    if (saved / "settings.json").exists():  # a folder with settings is complete
        settings, arrays = load(saved)
        assert (settings["eta"], arrays.keys()) == (0.5, ARRAYS.keys())


def test_a_new_folder_an_empty_one_and_an_unfinished_one_may_be_claimed(tmp_path):
    check_simulation_folder(tmp_path / "none", SETTINGS, overwrite=False)
    assert not (tmp_path / "none").exists()
    check_simulation_folder(tmp_path, SETTINGS, overwrite=False)
    (tmp_path / "environment.json").write_text("{}")  # the first file of a simulation
    for name in ("world.sha256", "results.npz"):
        (tmp_path / name).write_bytes(b"left by an interrupted run")
    check_simulation_folder(tmp_path, SETTINGS, overwrite=False)


@pytest.mark.parametrize("last", ["environment.json", "results.npz", "settings.json"])
def test_a_simulation_killed_while_it_writes_a_file_may_be_claimed(tmp_path, last):
    if last != "environment.json":
        (tmp_path / "environment.json").write_text("{}")
    with atomic_write(tmp_path / last) as draft:
        draft.write_bytes(b"cut")
    (tmp_path / last).rename(draft)
    check_simulation_folder(tmp_path, SETTINGS, overwrite=False)


def test_files_that_no_simulation_left_are_not_claimed(tmp_path):
    (tmp_path / "results.npz").write_bytes(b"somebody's own")
    for name in ("notes.txt", "environment.json"):
        with pytest.raises(ValueError, match="out must be a new or empty folder"):
            check_simulation_folder(tmp_path, SETTINGS, overwrite=False)
        (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match="out must be a new or empty folder"):
        check_simulation_folder(tmp_path, SETTINGS, overwrite=False)


def test_the_same_settings_may_claim_their_folder_again_tuples_or_lists(saved):
    check_simulation_folder(saved, SETTINGS, overwrite=False)
    check_simulation_folder(saved, {**SETTINGS, "rates": [0.1, 0.9]}, overwrite=False)


@pytest.mark.parametrize(
    "other",
    [{**SETTINGS, "eta": 0.6}, {**SETTINGS, "seeds": 3}, {"experiment": "x"}],
    ids=["changed", "more", "fewer"],
)
def test_other_settings_are_refused_unless_told_to_overwrite(saved, other):
    before = contents(saved)
    with pytest.raises(
        ValueError,
        match=r"out must not hold results of other settings, got .*run with .*; .*--overwrite",
    ):
        check_simulation_folder(saved, other, overwrite=False)
    check_simulation_folder(saved, other, overwrite=True)
    assert contents(saved) == before


def test_unreadable_settings_refuse_a_claim_by_name_unless_told_to_overwrite(saved):
    (saved / "settings.json").write_text("{")
    with pytest.raises(ValueError, match=r"settings\.json must be"):
        check_simulation_folder(saved, SETTINGS, overwrite=False)
    check_simulation_folder(saved, SETTINGS, overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_cannot_be_claimed_as_a_folder(tmp_path, overwrite):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ValueError, match=r"out must be a folder, got .*taken is a file"):
        check_simulation_folder(tmp_path / "taken", SETTINGS, overwrite)
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"[1, 2]", b"3", b"\xff\xfe\x00", b"null"])
def test_truncated_or_foreign_settings_are_refused_by_the_name_of_the_file(saved, content):
    (saved / "settings.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"run.settings\.json must"):
        load(saved)


def test_missing_settings_and_missing_results_are_refused_by_the_name_of_the_file(saved):
    (saved / "results.npz").unlink()
    with pytest.raises(ValueError, match=r"run.results\.npz must"):
        load(saved)
    (saved / "settings.json").unlink()
    with pytest.raises(ValueError, match=r"run.settings\.json must"):
        read_simulation_settings(saved)


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_truncated_results_are_refused_by_the_name_of_the_file(saved, part):
    path = saved / "results.npz"
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(ValueError, match=r"run.results\.npz must"):
        load(saved)


@pytest.mark.parametrize("place", [0.05, 0.2, 0.4])
def test_damaged_results_are_refused_by_the_name_of_the_file(saved, place):
    path = saved / "results.npz"
    content = bytearray(path.read_bytes())
    start = int(place * len(content))
    content[start : start + 8] = bytes(255 - byte for byte in content[start : start + 8])
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run.results\.npz must"):
        load(saved)


@pytest.mark.parametrize(
    "content",
    [
        b"hello, I am a text",
        npy(np.arange(3)),
        zipped(readme_txt="hello"),
        zipped(x_npy=npy(np.array([{1: 2}], dtype=object))),
    ],
    ids=["text", "bare npy", "zip of something else", "pickled objects"],
)
def test_foreign_results_are_refused_by_the_name_of_the_file(saved, content):
    (saved / "results.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"run.results\.npz must"):
        load(saved)


def test_a_pickle_in_the_results_is_not_run(saved):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(saved / "exploded"),))

    (saved / "results.npz").write_bytes(zipped(x_npy=npy(np.array([Bomb()], dtype=object))))
    with pytest.raises(ValueError, match=r"run.results\.npz must"):
        load(saved)
    assert not (saved / "exploded").exists()


def test_rows_come_back_from_csv_with_commas_quotes_and_line_breaks(tmp_path):
    rows = [{"case": 'switch, "no floor"', "eta": 0.5}, {"case": "two\nlines", "eta": float("nan")}]
    save_csv(tmp_path / "deep" / "summary.csv", rows)
    with (tmp_path / "deep" / "summary.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["case"] for row in read] == [row["case"] for row in rows]
    assert read[0]["eta"] == "0.5"
    assert np.isnan(float(read[1]["eta"]))


def test_no_rows_make_an_empty_file(tmp_path):
    save_csv(tmp_path / "summary.csv", [])
    assert contents(tmp_path) == {"summary.csv": b""}


def test_a_row_that_does_not_fit_the_header_leaves_the_old_file(tmp_path):
    save_csv(tmp_path / "summary.csv", [{"a": 1}])
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="b"):
        save_csv(tmp_path / "summary.csv", [{"a": 1}, {"a": 1, "b": 2}])
    assert contents(tmp_path) == before


def test_settings_on_disk_are_plain_json_of_the_dataclass(tmp_path):
    @dataclass(frozen=True)
    class Some:
        rates: tuple[float, ...] = (0.1, 0.9)
        eta: float | str = "auto"

    save_simulation(tmp_path, asdict(Some()), {})
    assert json.loads((tmp_path / "settings.json").read_text()) == {
        "fedcohort-sha256": ANY,
        "rates": [0.1, 0.9],
        "eta": "auto",
    }
