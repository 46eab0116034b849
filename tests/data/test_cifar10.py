import gzip
import io
import lzma
import pickle
import tarfile
import zipfile

import numpy as np
import pytest
from published import cifar_batches, cifar_binary, put, python2_pickle, tar

from fedcohort.data.archives import read_archive
from fedcohort.data.cifar10 import CIFAR10, cifar10_source, from_binary, from_python
from fedcohort.data.directories import find_or_download

RECORDS = 4


def load_from(folder):
    return find_or_download(cifar10_source(RECORDS), folder, False, None)


def assert_same(data, batches):
    *train, (test_x, test_y) = batches.values()
    np.testing.assert_array_equal(data.x.reshape(-1, 3072), np.concatenate([x for x, _ in train]))
    np.testing.assert_array_equal(data.y, np.concatenate([y for _, y in train]))
    np.testing.assert_array_equal(data.test_x.reshape(-1, 3072), test_x)
    np.testing.assert_array_equal(data.test_y, test_y)
    assert data.x.shape == (5 * RECORDS, 3, 32, 32)


def python3_pickle(x, y, protocol=2):
    return pickle.dumps({b"data": x, b"labels": y.tolist(), b"filenames": [b"a.png"]}, protocol)


PICKLED = {
    "python 2": python2_pickle,
    "python 3": python3_pickle,
    "text keys": lambda x, y: pickle.dumps({"data": x, "labels": [*map(int, y)]}),
}


@pytest.mark.parametrize("place", [".", "cifar10", "cifar-10-batches-bin"])
def test_the_binary_version_is_read_from_its_folder(tmp_path, place):
    batches = cifar_batches(RECORDS)
    put(tmp_path / place, cifar_binary(batches))
    assert_same(load_from(tmp_path), batches)
    assert_same(load_from(tmp_path / place), batches)


def test_batches_may_be_gzipped_one_by_one(tmp_path):
    batches = cifar_batches(RECORDS)
    files = {f"{name}.gz": gzip.compress(data) for name, data in cifar_binary(batches).items()}
    put(tmp_path / "cifar10", files)
    assert_same(load_from(tmp_path), batches)


def test_a_pixel_is_where_the_format_says_red_green_blue_row_by_row():
    x = np.zeros((RECORDS, 3072), np.uint8)
    x[0, 1024 + 32 * 5 + 7] = 99  # green, row 5, column 7
    batches = {name: (x, y) for name, (_, y) in cifar_batches(RECORDS).items()}
    data = from_binary(cifar_binary(batches), RECORDS)
    assert np.argwhere(data.test_x).tolist() == [[0, 1, 5, 7]]


@pytest.mark.parametrize("version", PICKLED)
def test_the_python_version_is_read_whoever_pickled_it(tmp_path, version):
    batches = cifar_batches(RECORDS)
    put(
        tmp_path / "cifar-10-batches-py",
        {name: PICKLED[version](x, y) for name, (x, y) in batches.items()},
    )
    assert_same(load_from(tmp_path), batches)


def test_both_versions_are_read_from_their_archives_and_nothing_is_unpacked(tmp_path):
    batches = cifar_batches(RECORDS)
    tar(
        tmp_path / "cifar-10-python.tar.gz",
        {n: python2_pickle(x, y) for n, (x, y) in batches.items()},
        "cifar-10-batches-py",
    )
    assert_same(load_from(tmp_path), batches)
    other = cifar_batches(RECORDS, seed=1)
    tar(tmp_path / "cifar-10-binary.tar.gz", cifar_binary(other), "cifar-10-batches-bin")
    assert_same(load_from(tmp_path), other)  # the version without pickles comes first
    assert len(list(tmp_path.iterdir())) == 2


def test_an_archive_cannot_write_outside_nor_smuggle_in_a_link(tmp_path):
    files = cifar_binary(cifar_batches(RECORDS))
    (tmp_path / "secret").write_bytes(files["test_batch.bin"])
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"../../{name}")
            member.size = len(data)
            if name == "test_batch.bin":
                member.type = tarfile.SYMTYPE
                member.linkname = str(tmp_path / "secret")
                member.size = 0
            archive.addfile(member, io.BytesIO(data))
    with pytest.raises(ValueError, match=r"lacks test_batch\.bin"):
        load_from(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cifar-10-binary.tar.gz", "secret"]


def test_a_truncated_archive_is_refused(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    tar(path, cifar_binary(cifar_batches(RECORDS)), "cifar-10-batches-bin")
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(ValueError, match="is damaged or truncated"):
        load_from(tmp_path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_zip_archive_is_refused_however_it_is_compressed(tmp_path, method):
    path = tmp_path / "images.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("images", bytes(range(256)) * 40)
    content = bytearray(path.read_bytes())
    content[50:60] = bytes(10)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"images\.zip is damaged or truncated"):
        read_archive(path, ("images",))


def test_a_tar_archive_with_a_wrong_byte_is_refused_by_its_checksum(tmp_path):
    path = tmp_path / "images.tar.gz"
    tar(path, {"images": bytes(range(256)) * 40}, "folder")
    # Without compression a byte of an image may be wrong and all can be read.
    content = bytearray(gzip.compress(gzip.decompress(path.read_bytes()), compresslevel=0))
    path.write_bytes(content)
    assert read_archive(path, ("images",)) == {"images": bytes(range(256)) * 40}
    content[2000] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"images\.tar\.gz is damaged or truncated: CRC"):
        read_archive(path, ("images",))


def put_images(path):
    """Write a compressed archive of one file with noise, which gets no shorter; return both."""
    images = np.random.default_rng(0).bytes(20_000)
    with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:
        member = tarfile.TarInfo("folder/images")
        member.size = len(images)
        archive.addfile(member, io.BytesIO(images))
    return path.read_bytes(), images


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
@pytest.mark.parametrize("padding", [b"", bytes(4), bytes(10_000), b"signature"])
def test_bytes_behind_a_compressed_archive_are_no_damage(tmp_path, suffix, padding):
    path = tmp_path / f"images.tar.{suffix}"
    content, images = put_images(path)
    path.write_bytes(content + padding)
    assert read_archive(path, ("images",)) == {"images": images}

    # What is torn is damaged, whatever follows it, and so is what has a wrong checksum.
    wrong = bytearray(content)
    wrong[-6] ^= 1
    for damaged in (content[:-5], content[: len(content) // 2], bytes(wrong)):
        path.write_bytes(damaged + padding)
        with pytest.raises(ValueError, match=rf"tar\.{suffix} is damaged or truncated: ."):
            read_archive(path, ("images",))


@pytest.mark.parametrize("suffix", ["gz", "xz"])
def test_an_archive_in_several_streams_is_read_to_the_end_of_the_last(tmp_path, suffix):
    path = tmp_path / f"images.tar.{suffix}"
    content, images = put_images(path)
    module = {"gz": gzip, "xz": lzma}[suffix]
    plain = module.decompress(content)
    first = module.compress(plain[:10_000])
    second = module.compress(plain[10_000:])
    for padding in (b"", bytes(4), b"signature"):
        path.write_bytes(first + second + padding)
        assert read_archive(path, ("images",)) == {"images": images}
        path.write_bytes(first + second[:-5] + padding)
        with pytest.raises(ValueError, match="is damaged or truncated"):
            read_archive(path, ("images",))


def test_too_little_memory_does_not_make_an_archive_damaged(tmp_path, monkeypatch):
    path = tmp_path / "images.tar.gz"
    tar(path, {"images": b"1"}, "folder")

    def fill_memory(*rest):
        raise MemoryError

    monkeypatch.setattr(tarfile.TarFile, "extractfile", fill_memory)
    with pytest.raises(MemoryError):
        read_archive(path, ("images",))


@pytest.mark.parametrize("cut", [1, 3073])
def test_a_truncated_batch_is_refused_even_at_the_border_of_a_record(cut):
    files = cifar_binary(cifar_batches(RECORDS))
    files["data_batch_3.bin"] = files["data_batch_3.bin"][:-cut]
    with pytest.raises(
        ValueError, match=r"data_batch_3\.bin must hold 4 records of 3073 bytes, got"
    ):
        from_binary(files, RECORDS)


def test_the_registered_loader_asks_for_all_ten_thousand_records(tmp_path):
    put(tmp_path, cifar_binary(cifar_batches(RECORDS)))
    with pytest.raises(ValueError, match=r"data_batch_1\.bin must hold 10000 records"):
        find_or_download(CIFAR10, tmp_path, False, None)


def test_a_label_out_of_range_is_refused_in_both_versions():
    batches = cifar_batches(RECORDS)
    batches["test_batch"][1][2] = 10
    with pytest.raises(
        ValueError, match=r"test_batch\.bin must be labels between 0 and 9, got 10 at position 2"
    ):
        from_binary(cifar_binary(batches), RECORDS)
    with pytest.raises(
        ValueError, match="test_batch must be labels between 0 and 9, got 10 at position 2"
    ):
        from_python({name: python2_pickle(x, y) for name, (x, y) in batches.items()}, RECORDS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cannot be read as a CIFAR-10 batch"),
        (b"\x80\x02}(U", "cannot be read as a CIFAR-10 batch"),
        (pickle.dumps([1, 2]), "must hold a dictionary, got list"),
        (pickle.dumps({b"data": np.zeros((4, 3072), np.uint8)}, 2), "and a list of 4 'labels'"),
        (
            pickle.dumps({b"data": np.zeros((3, 3072), np.uint8), b"labels": [0] * 3}, 2),
            r"'data' of shape \(4, 3072\)",
        ),
        (
            pickle.dumps({b"data": np.zeros((4, 3072), np.float32), b"labels": [0] * 4}, 2),
            "arrays must be of type u1",
        ),
        (
            pickle.dumps({b"data": np.zeros((4, 3072), np.uint8), b"labels": ["a"] * 4}, 2),
            "must be whole numbers",
        ),
    ],
)
def test_a_damaged_or_foreign_pickle_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        from_python(
            dict.fromkeys([f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"], data), RECORDS
        )
