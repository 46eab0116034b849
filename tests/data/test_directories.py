import numpy as np
import pytest
from published import idx_files, put

from fedcohort.data import load
from fedcohort.data.directories import data_directories


def test_directories_are_searched_in_the_stated_order(monkeypatch, tmp_path):
    places = [
        tmp_path / "given",
        tmp_path / "told",
        tmp_path / "cache" / "fedcohort",
        tmp_path / "system",
    ]
    monkeypatch.setenv("FEDCOHORT_DATA", str(places[1]))
    assert data_directories(places[0]) == places
    for seed, place in reversed(list(enumerate(places))):
        files, (x, _, _, _) = idx_files("", "t10k", seed=seed)
        put(place / "fashion-mnist", files, gzipped=True)
        np.testing.assert_array_equal(load("fashion-mnist", places[0], download=False).x[:, 0], x)


def test_the_cache_is_in_the_home_directory_unless_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_directories()[0] == tmp_path / ".cache" / "fedcohort"


def test_a_user_without_a_home_has_no_cache(monkeypatch, tmp_path):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", no_home)
    assert data_directories(tmp_path) == [tmp_path, tmp_path / "system"]


def test_an_incomplete_folder_does_not_hide_a_whole_one(monkeypatch, tmp_path):
    files, (_, y, _, _) = idx_files("", "t10k")
    put(tmp_path / "given" / "mnist", dict(list(files.items())[:3]))
    put(tmp_path / "told" / "mnist", files)
    monkeypatch.setenv("FEDCOHORT_DATA", str(tmp_path / "told"))
    np.testing.assert_array_equal(load("mnist", tmp_path / "given", download=False).y, y)


def test_a_file_in_place_of_a_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="a data directory must be a directory, got the file"):
        load("mnist", tmp_path / "file")
