import gzip

import numpy as np
import pytest
from published import idx

from fedcohort.data.idx import parse_idx


@pytest.mark.parametrize("packed", [False, True])
def test_idx_gives_back_the_array_plain_or_gzipped(packed):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    data = gzip.compress(idx(array)) if packed else idx(array)
    np.testing.assert_array_equal(parse_idx(data, "file", 3), array)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data[:-1], "file is truncated: its header .2, 3, 4. needs 24 bytes, got 23"),
        (lambda data: data + b"?", "file is followed by something else: .* needs 24 bytes, got 25"),
        (lambda data: data[:10], "must start like an IDX file"),
        (lambda data: b"", "must start like an IDX file"),
        (lambda data: b"\0\0\x0d\x03" + data[4:], "unsigned bytes with 3 axes, got '00 00 0d 03'"),
        (lambda data: b"\0\0\x08\x01" + data[4:], "unsigned bytes with 3 axes, got '00 00 08 01'"),
        (lambda data: b"<html>" + data, "must start like an IDX file"),
        (lambda data: gzip.compress(data)[:-12], "file is damaged or truncated"),
        (
            lambda data: gzip.compress(data)[:20] + b"????" + gzip.compress(data)[24:],
            "file is damaged or truncated",
        ),
    ],
)
def test_a_spoilt_idx_file_is_refused(spoil, message):
    with pytest.raises(ValueError, match=message):
        parse_idx(spoil(idx(np.arange(24).reshape(2, 3, 4))), "file", 3)
