"""A damaged npz file is refused in one sentence, whatever NumPy's reader raises for it."""

import io
import zipfile

import numpy as np
import pytest

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
