import re
import subprocess
import sys

import numpy as np
import pytest
from published import idx_files, put

from fedcohort.data import DATASETS, DataNotFound, load
from fedcohort.data.locate import directories
from fedcohort.data.sources import write


@pytest.fixture(autouse=True)
def nothing_else_on_this_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("FEDCOHORT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("fedcohort.data.locate.SYSTEM", tmp_path / "system")


def test_the_digits_are_real_whole_and_scaled():
    data = load("digits", download=False)
    assert (data.x.shape, data.x.dtype, data.test_x) == ((1797, 1, 8, 8), np.float32, None)
    assert (data.x.min(), data.x.max()) == (-1, 1)
    assert np.bincount(data.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_without_scikit_learn_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match=r"pip install 'fedcohort\[learning\]'"):
        load("digits")


def test_importing_the_package_needs_numpy_alone():
    code = "import sys, fedcohort.data; print([m for m in ('sklearn', 'torch', 'matplotlib', 'rich') if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_directories_are_searched_in_the_stated_order(monkeypatch, tmp_path):
    places = [
        tmp_path / "given",
        tmp_path / "told",
        tmp_path / "cache" / "fedcohort",
        tmp_path / "system",
    ]
    monkeypatch.setenv("FEDCOHORT_DATA", str(places[1]))
    assert directories(places[0]) == places
    for seed, place in reversed(list(enumerate(places))):
        files, (x, _, _, _) = idx_files("", "t10k", seed=seed)
        put(place / "fashion-mnist", files, gzipped=True)
        np.testing.assert_array_equal(load("fashion-mnist", places[0], download=False).x[:, 0], x)


def test_the_cache_is_in_the_home_directory_unless_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert directories()[0] == tmp_path / ".cache" / "fedcohort"


def test_an_incomplete_folder_does_not_hide_a_whole_one(monkeypatch, tmp_path):
    files, (_, y, _, _) = idx_files("", "t10k")
    put(tmp_path / "given" / "mnist", dict(list(files.items())[:3]))
    put(tmp_path / "told" / "mnist", files)
    monkeypatch.setenv("FEDCOHORT_DATA", str(tmp_path / "told"))
    np.testing.assert_array_equal(load("mnist", tmp_path / "given", download=False).y, y)


@pytest.mark.parametrize("name", sorted(set(DATASETS) - {"digits"}))
def test_what_is_nowhere_says_where_it_looked_and_which_file_to_put_where(tmp_path, name):
    with pytest.raises(DataNotFound) as caught:
        load(name, tmp_path, download=False)
    message = str(caught.value)
    assert message.startswith(
        f"{name} is in none of the data directories {tmp_path}, {tmp_path / 'cache' / 'fedcohort'}"
    )
    found = re.findall(
        r"download (https://\S+) elsewhere and put the file as (\S+) into the directory (\S+?)(?:;|$)",
        message,
    )
    assert found
    for url, file, folder in found:
        assert url.endswith(f"/{file}")
        assert folder == str(tmp_path / name)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(
        ValueError, match=r"dataset must be one of digits, cifar10, .* did you mean 'cifar10'"
    ):
        load("cifar-10")


def test_a_path_that_ends_in_npz_is_loaded(tmp_path):
    np.savez(tmp_path / "own.npz", x=np.zeros((3, 2)), y=np.array([0, 1, 1]))
    data = load(tmp_path / "own.npz")
    assert (data.name, data.num_classes, len(data.y)) == ("own", 2, 3)


def test_a_file_in_place_of_a_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="a data directory must be a directory, got the file"):
        load("mnist", tmp_path / "file")


def test_a_write_that_fails_leaves_the_old_file_and_no_scratch(monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path / "file", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]
