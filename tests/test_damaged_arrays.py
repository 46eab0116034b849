"""A damaged npz file is refused in one sentence, whatever NumPy's reader raises for it."""

import io
import zipfile

import numpy as np
import pytest

from fedcohort.data import Dataset
from fedcohort.files import load_arrays

HEADERS = {
    "an open bracket": "{'descr': '<f8', 'fortran_order': False, 'shape': (3,",
    "an open string": "{'descr': '<f8",
    "no expression": "{'descr': '<f8', 'fortran_order': ?, 'shape': (3,)}",
    "a wrong type": "{'descr': 'nonsense', 'fortran_order': False, 'shape': (3,)}",
    "a negative shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}",
    "a huge shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (1" + "0" * 30 + ",)}",
    "deep nesting": "(" * 4000,
}


def with_header(path, header):
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", member + bytes(24))
    return path


@pytest.mark.parametrize("name", HEADERS)
def test_a_damaged_header_is_refused(tmp_path, name):
    path = with_header(tmp_path / "results.npz", HEADERS[name])
    with pytest.raises(ValueError, match=r"results\.npz must be a results file of fedcohort, got"):
        load_arrays(path)


def test_every_flipped_bit_is_refused_or_gives_arrays(tmp_path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.arange(3.0))
    whole = buffer.getvalue()
    path = tmp_path / "results.npz"
    messages = []
    for position in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            load_arrays(path)
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 4 * len(whole)
    assert all(str(path) in message for message in messages)


def test_words_that_are_no_text_are_refused_by_the_name_of_their_array(tmp_path):
    path = tmp_path / "results.npz"
    words = np.array(["abc"]).view(np.uint32) | 0x8000_0000
    np.savez(path, settings=words.view("<U3"))
    message = r"results\.npz must hold words in Unicode, got others in 'settings'"
    with pytest.raises(ValueError, match=message):
        load_arrays(path)
    np.savez(path, x=np.zeros((2, 2)), y=np.zeros(2, np.int64), clients=words.view("<U3"))
    with pytest.raises(ValueError, match=r"results\.npz must hold words in Unicode"):
        Dataset.from_npz(path)


@pytest.mark.parametrize("swapped", [False, True])
def test_words_of_any_language_and_byte_order_are_read(tmp_path, swapped):
    path = tmp_path / "results.npz"
    words = np.array(["ä", "日本", "😀", ""])
    np.savez(path, words=words.astype(words.dtype.newbyteorder()) if swapped else words)
    assert load_arrays(path)["words"].tolist() == words.tolist()


def test_a_member_that_is_no_array_is_refused(tmp_path):
    path = tmp_path / "own.npz"
    np.savez(path, x=np.zeros((2, 2)), y=np.zeros(2, np.int64))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("num_classes.npy", b"no array")
    with pytest.raises(ValueError, match=r"own\.npz must hold arrays alone, got 'num_classes'"):
        Dataset.from_npz(path)
