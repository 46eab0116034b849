"""Every file that is read back carries a checksum: a changed file is refused by its name.

For each format, every single bit of a small file is flipped and the file is cut at every byte.
Reading must refuse the file by its name, or give exactly what was written.
"""

import io
import json
import zipfile

import numpy as np
import pytest

from fedcohort.files import (
    load_arrays,
    load_state,
    parse_json,
    read_json_lines,
    read_json_table,
    read_toml,
    save_arrays,
    save_state,
    to_json_line,
    to_toml,
    write_json,
    write_sealed_text,
)
from fedcohort.lab.folder import read_data_digest, write_data_digest

TABLE = {"experiment": "x", "rates": [0.1, 0.9], "name": "fedcohort-sha256"}
ROWS = [{"round": 1, "asked": ["a"]}, {"round": 2, "asked": ["b", "c"]}]
ARRAYS = {"counts": np.arange(4), "rates": np.array([0.25, 0.5], np.float16)}
STATE = {
    "round": 7,
    "model": {"w": np.array([[0.5, -1.0]]), "b": np.zeros(1, np.float32)},
    "selector": {"kind": "E3CS paper", "rng": {"state": 2**127 + 1, "has_uint32": 0}},
    "name": '", "fedcohort-sha256": "' + 64 * "0",
}


def write_lines(path):
    path.write_text("".join(to_json_line(row) for row in ROWS))


DIGEST = 8 * "0123cdef"


FORMATS = {
    "table.json": (lambda path: write_json(path, TABLE), lambda path: read_json_table(path, "x")),
    "short.json": (
        lambda path: write_json(path, TABLE, indent=None),
        lambda path: read_json_table(path, "x"),
    ),
    "lines.jsonl": (write_lines, lambda path: read_json_lines(path, "x", ["round", "asked"])),
    "settings.toml": (
        lambda path: write_sealed_text(path, to_toml(TABLE)),
        lambda path: read_toml(path, is_sealed=True),
    ),
    "data.sha256": (
        lambda path: write_data_digest(path.parent, DIGEST),
        lambda path: read_data_digest(path.parent),
    ),
    "arrays.npz": (lambda path: save_arrays(path, ARRAYS), load_arrays),
    "state.safetensors": (lambda path: save_state(path, STATE), load_state),
}
WRITTEN = {
    "table.json": TABLE,
    "short.json": TABLE,
    "lines.jsonl": ROWS,
    "settings.toml": TABLE,
    "data.sha256": DIGEST,
    "arrays.npz": ARRAYS,
    "state.safetensors": STATE,
}
every = pytest.mark.parametrize("name", FORMATS)


@pytest.fixture
def path(tmp_path, name):
    write, _ = FORMATS[name]
    write(tmp_path / name)
    return tmp_path / name


def same(found, expected):
    if isinstance(expected, dict):
        if list(found) != list(expected):
            return False
        return all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and np.array_equal(found, expected)
    return found == expected


def refused(path, name):
    """Return whether reading refuses the file by its name; it must not give other content."""
    _, read = FORMATS[name]
    try:
        found = read(path)
    except ValueError as error:
        message = str(error)
    else:
        assert same(found, WRITTEN[name]), f"accepted {found}"
        return False
    assert name in message
    return True


@every
def test_what_was_written_comes_back_without_the_checksum(path, name):
    _, read = FORMATS[name]
    assert same(read(path), WRITTEN[name])
    assert b"fedcohort-sha256" in path.read_bytes()


@pytest.mark.slow
@every
def test_no_flipped_bit_is_accepted_with_other_content(path, name):
    whole = path.read_bytes()
    count = 0
    for place in range(len(whole)):
        for bit in range(8):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            count += refused(path, name)
    # What is accepted is a flip in the key of the checksum, which leaves the content as it was.
    assert count >= 8 * (len(whole) - 90)


@every
def test_no_truncated_file_is_accepted_with_other_content(path, name):
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        if name == "lines.jsonl":
            _, read = FORMATS[name]
            # A line that is cut may still be being written; the lines before it are whole.
            assert read(path) == ROWS[: whole[: size + 1].count(b"\n")]
        elif name == "settings.toml" and not size:
            assert read_toml(path, is_sealed=True) == {}  # of which every setting is missing
        else:
            refused(path, name)


@every
def test_one_file_in_the_place_of_another_of_its_kind_is_read_as_what_it_is(path, name, tmp_path):
    """A checksum belongs to its file alone: renaming and copying keep the file readable."""
    _, read = FORMATS[name]
    other = tmp_path / "other" / name
    other.parent.mkdir()
    path.rename(other)
    assert same(read(other), WRITTEN[name])


def without_seal(path):
    """Make a file such as was written before there were checksums."""
    content = path.read_bytes()
    if path.suffix == ".json":
        table = json.loads(content)
        del table["fedcohort-sha256"]
        path.write_text(json.dumps(table, indent=2) + "\n")
    elif path.suffix == ".npz":
        with zipfile.ZipFile(path, "a") as archive:
            archive.comment = b""
    elif path.suffix == ".toml":
        path.write_bytes(content.split(b"\n", 1)[1])


@pytest.mark.parametrize("name", ["table.json", "settings.toml", "arrays.npz"])
def test_a_file_from_before_there_were_checksums_is_read(path, name):
    _, read = FORMATS[name]
    without_seal(path)
    assert b"fedcohort-sha256: " not in path.read_bytes()
    assert same(read(path), WRITTEN[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arrays.npz"])
def test_an_old_npz_file_with_a_flipped_bit_gives_no_other_error(path, name):
    """Zip keeps a checksum of each array, so that only its own bookkeeping can go unnoticed."""
    without_seal(path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            message = name
            try:
                load_arrays(path)
            except ValueError as error:
                message = str(error)
            assert name in message


DEEP = "[" * 100_000


def deep_npz():
    file = io.BytesIO()
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': " + b"(" * 3000 + b"}"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", array)
    return file.getvalue()


def deep_state():
    from safetensors.numpy import save

    return save({}, metadata={"state": '{"round": ' + DEEP})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("table.json", b'{"a": ' + DEEP.encode()),
        ("lines.jsonl", DEEP.encode() + b"\n"),
        ("settings.toml", b"a = " + DEEP.encode()),
        ("arrays.npz", deep_npz()),
        ("state.safetensors", deep_state()),
    ],
)
def test_values_nested_too_deeply_are_refused_by_the_name_of_the_file(tmp_path, name, content):
    _, read = FORMATS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name):
        read(tmp_path / name)


def test_json_nested_too_deeply_is_an_error_of_values():
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(DEEP)


def test_a_line_break_that_is_damaged_is_no_unfinished_line(tmp_path):
    path = tmp_path / "lines.jsonl"
    write_lines(path)
    path.write_bytes(path.read_bytes()[:-1] + b"*")
    with pytest.raises(ValueError, match=r"lines\.jsonl must hold one round per line"):
        read_json_lines(path, "x", ["round"])


@pytest.mark.parametrize("size", [1, 7, 25, 39])
def test_bytes_cut_out_of_the_seal_of_a_table_are_noticed(tmp_path, size):
    path = tmp_path / "run.json"
    write_json(path, {"rounds": 3})
    whole = path.read_bytes()
    accepted = []
    for start in range(whole.index(b'"rounds"')):
        path.write_bytes(whole[:start] + whole[start + size :])
        try:
            accepted.append(read_json_table(path, "a table"))
        except ValueError:
            continue
    assert all(table == {"rounds": 3} for table in accepted)
