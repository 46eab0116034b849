import io
import re

import numpy as np
import pytest

from fedcohort.world.trace import read_trace


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def as_npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def as_npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "text",
    ["1,0\n0,1\n", "1,0\n0,1", "1, 0\r\n0, 1\r\n", "1,0\n0,1\n\n\n", "\ufeff1,0\n0,1\n"],
    ids=repr,
)
def test_a_text_of_zeros_and_ones_says_who_answers(tmp_path, text):
    table = read_trace(write(tmp_path / "rounds.csv", text))
    assert table.dtype == bool
    assert table.tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.5,inf\n0,1e2\n", [[2.5, np.inf], [0.0, 100.0]]),
        ("1.0,0.0\n", [[1.0, 0.0]]),
        ("1,0\n1,inf\n", [[1.0, 0.0], [1.0, np.inf]]),
    ],
)
def test_any_other_text_says_after_how_many_seconds(tmp_path, text, expected):
    table = read_trace(write(tmp_path / "rounds.csv", text))
    assert table.dtype == np.float64
    assert table.tolist() == expected


@pytest.mark.parametrize(
    "array",
    [np.array([[1, 0]]), np.array([[1, 0]], dtype=np.uint8), np.array([[True, False]])],
    ids=str,
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_an_array_of_zeros_and_ones_says_who_answers(tmp_path, suffix, array):
    content = as_npy(array) if suffix == ".npy" else as_npz(table=array)
    table = read_trace(write(tmp_path / f"rounds{suffix}", content))
    assert table.dtype == bool
    assert table.tolist() == [[True, False]]


def test_an_array_of_floats_says_after_how_many_seconds(tmp_path):
    seconds = np.array([[1.0, 0.0], [np.inf, 3.5]], dtype=np.float32)
    table = read_trace(write(tmp_path / "rounds.npy", as_npy(seconds)))
    assert table.dtype == np.float64
    np.testing.assert_array_equal(table, seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have at least one line, one per round, got an empty file"),
        (" \n\n", "must have at least one line, one per round, got an empty file"),
        ("1,0\n1\n", ", line 2: every line must have 2 columns, as the first has, got 1"),
        ("1,0\n1,0,1\n", ", line 2: every line must have 2 columns, as the first has, got 3"),
        ("1,0\n\n1,0\n", ", line 2: every line must have 2 columns, as the first has, got 1"),
        ("1,0\n1,-2\n", ", line 2, column 2: must be 0 or 1, or seconds of at least 0"),
        ("1,0\nnan,0\n", "line 2, column 1: must be 0 or 1, or .* got 'nan'"),
        ("1,0\n2,1_0\n", "line 2, column 2: must be 0 or 1, or .* got '1_0'"),
        ("1,\u0661\n", "line 1, column 2: must be 0 or 1, or .* got '\u0661'"),
        ("1,0,\n", "line 1, column 3: must be 0 or 1, or .* got ''"),
        ("a,b\n1,0\n", "line 1, column 1: must be 0 or 1, or .* got 'a'"),
        (b"1,0\n\xff,0\n", "must be plain text in UTF-8, got byte 0xff in line 2"),
    ],
)
def test_a_bad_text_is_refused_by_file_line_and_column(tmp_path, text, message):
    path = write(tmp_path / "rounds.csv", text)
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*" + message):
        read_trace(path)


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        (".npy", as_npy(np.zeros((0, 3))), r"at least one of each, got shape \(0, 3\)"),
        (".npy", as_npy(np.zeros((2, 2, 2))), r"\[rounds, clients\] .* got shape \(2, 2, 2\)"),
        (".npy", as_npy(np.array([[1, 0], [0, 2]])), "row 2, column 2: must be 0 or 1.* got 2"),
        (".npy", as_npy(np.array([[1.0, -3.0]])), "row 1, column 2: must be seconds.* got -3.0"),
        (".npy", as_npy(np.array([[np.nan, 1.0]])), "row 1, column 1: .* got nan"),
        (".npy", as_npy(np.array([["a"]])), "must hold answers .* or seconds .*, got <U1"),
        (
            ".npy",
            as_npy(np.array([[None]]), allow_pickle=True),
            "without pickle, got: pickled data",
        ),
        (".npy", b"no array", "must be a NumPy file without pickle"),
        (".npy", b"", "must be a NumPy file without pickle"),
        (".npy", as_npy(np.ones((5, 5))).replace(b"}", b" "), "a NumPy file without pickle"),
        (".npy", as_npy(np.ones((50, 50)))[:-9], "must be a NumPy file without pickle"),
        (".npz", as_npz(table=np.ones((50, 50)))[:-9], "must be a NumPy file without pickle"),
        (".npz", as_npz(a=np.ones((1, 1)), b=np.ones((1, 1))), "must hold one array, got 2: a, b"),
        (".npz", as_npz(table=np.array([[None]])), "without pickle, got: pickled data"),
    ],
)
def test_a_bad_array_is_refused_by_file_row_and_column(tmp_path, suffix, content, message):
    path = write(tmp_path / f"rounds{suffix}", content)
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*" + message):
        read_trace(path)


@pytest.mark.parametrize("name", ["none.csv", "none.npy", ""])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / name))):
        read_trace(tmp_path / name)
