import pytest

from fedcohort.data.archives import write_file


def test_a_write_that_fails_leaves_the_old_file_and_no_scratch(monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_file(tmp_path / "file", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]
