import hashlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from published import cifar_batches, cifar_binary, idx_files, put, tar, zipped

from fedcohort.data.cifar10 import cifar10_source
from fedcohort.data.directories import find_or_download
from fedcohort.data.download import DataNotFound, fetch
from fedcohort.data.mnist import EMNIST_LETTERS, MNIST
from fedcohort.data.source import FileForm, RemoteFile, Source

CONTENT = np.random.default_rng(0).bytes(1_000_000)


def md5(data):
    return f"md5:{hashlib.md5(data).hexdigest()}"


class Server(ThreadingHTTPServer):
    """Serves `files` and remembers in `asked` what it was asked for.

    It cuts each of the first `cuts` answers half-way, and may ignore ranges or hide lengths.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.cuts = 0
        self.ranges = True
        self.lengths = True
        self.asked = []

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.asked.append((self.path, wanted))
        content = server.files.get(self.path[1:])
        if content is None:
            self.send_error(404)
            return
        start = 0
        if wanted and server.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        body = content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if server.lengths:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.cuts:
            server.cuts -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    server.files["file"] = CONTENT
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def files_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_file_arrives_whole_and_progress_is_told(server, tmp_path):
    reports = []
    path = fetch(
        server.url("file"),
        tmp_path / "new" / "file",
        checksum=md5(CONTENT),
        on_progress=lambda *n: reports.append(n),
    )
    assert path.read_bytes() == CONTENT
    assert reports[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert files_in(tmp_path / "new") == ["file"]


def test_sha256_is_checked_too_and_a_server_may_not_tell_the_length(server, tmp_path):
    server.lengths = False
    reports = []
    sha = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    fetch(
        server.url("file"),
        tmp_path / "file",
        checksum=sha,
        on_progress=lambda *n: reports.append(n),
    )
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert reports[-1] == (len(CONTENT), None)


def test_a_file_that_is_there_is_not_fetched_again(server, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    fetch(server.url("file"), tmp_path / "file", checksum=md5(CONTENT))
    assert (tmp_path / "file").read_bytes() == b"mine"
    assert server.asked == []


def test_a_connection_cut_half_way_is_taken_up_where_it_stopped(server, tmp_path):
    server.cuts = 2
    reports = []
    fetch(
        server.url("file"),
        tmp_path / "file",
        checksum=md5(CONTENT),
        on_progress=lambda *n: reports.append(n),
    )
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == [None, "bytes=500000-", "bytes=750000-"]
    assert {total for _, total in reports} == {len(CONTENT)}


def test_a_server_that_ignores_ranges_is_read_from_the_start(server, tmp_path):
    server.cuts = 1
    server.ranges = False
    fetch(server.url("file"), tmp_path / "file", checksum=md5(CONTENT))
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_what_an_earlier_attempt_left_is_kept_and_used(server, tmp_path):
    server.cuts = 100
    with pytest.raises(
        DataNotFound,
        match=r"was cut after \d+ of 1000000 bytes .* is kept in file\.part.* put the file as file",
    ):
        fetch(server.url("file"), tmp_path / "file", checksum=md5(CONTENT))
    kept = (tmp_path / "file.part").stat().st_size
    assert 900_000 < kept < len(CONTENT)
    assert files_in(tmp_path) == ["file.part"]
    server.cuts = 0
    fetch(server.url("file"), tmp_path / "file", checksum=md5(CONTENT))
    assert server.asked[-1][1] == f"bytes={kept}-"
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert files_in(tmp_path) == ["file"]


@pytest.mark.parametrize("earlier", [CONTENT, CONTENT + b"too much"])
def test_a_part_that_is_whole_is_used_and_one_too_long_is_fetched_anew(server, tmp_path, earlier):
    (tmp_path / "file.part").write_bytes(earlier)
    fetch(server.url("file"), tmp_path / "file", checksum=md5(CONTENT))
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_wrong_file_is_discarded_with_both_sums_and_the_next_attempt_succeeds(server, tmp_path):
    server.files["file"] = b"<html>log in first</html>"
    expected = md5(CONTENT)[4:]
    found = md5(server.files["file"])[4:]
    with pytest.raises(ValueError, match=f"must have the md5 checksum {expected}, got {found}"):
        fetch(server.url("file"), tmp_path / "file", checksum=md5(CONTENT))
    assert files_in(tmp_path) == []
    server.files["file"] = CONTENT
    assert (
        fetch(server.url("file"), tmp_path / "file", checksum=md5(CONTENT)).read_bytes() == CONTENT
    )


def test_two_at_once_share_one_download(server, tmp_path):
    jobs = [
        threading.Thread(
            target=fetch,
            args=(server.url("file"), tmp_path / "file"),
            kwargs={"checksum": md5(CONTENT)},
        )
        for _ in range(4)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert len(server.asked) == 1


def test_without_a_network_the_message_says_which_file_to_put_where(server, tmp_path):
    with pytest.raises(
        DataNotFound,
        match=r"/none could not be downloaded: HTTP Error 404.*; "
        r"download http://\S+/none elsewhere",
    ):
        fetch(server.url("none"), tmp_path / "none", checksum=md5(CONTENT))
    with pytest.raises(DataNotFound) as caught:
        fetch("http://127.0.0.1:9/a/file.gz", tmp_path / "file.gz", checksum=md5(CONTENT))
    assert str(caught.value).endswith(
        "download http://127.0.0.1:9/a/file.gz elsewhere "
        f"and put the file as file.gz into the directory {tmp_path}"
    )


def test_a_directory_that_cannot_be_made_is_said_so(server, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataNotFound, match="could not be downloaded"):
        fetch(server.url("file"), tmp_path / "file" / "below", checksum=md5(CONTENT))


def from_server(server, published, *names):
    """Return the same source, published by the test's server."""
    remotes = tuple(RemoteFile(server.url(name), md5(server.files[name])) for name in names)
    return Source(published.name, published.folders, published.forms, remotes)


def test_cifar10_is_downloaded_and_unpacked_once(server, tmp_path):
    batches = cifar_batches(4)
    tar(tmp_path / "made.tar.gz", cifar_binary(batches), "cifar-10-batches-bin")
    server.files["cifar-10-binary.tar.gz"] = (tmp_path / "made.tar.gz").read_bytes()
    server.cuts = 1
    cifar10 = from_server(server, cifar10_source(4), "cifar-10-binary.tar.gz")
    home = tmp_path / "data"
    data = find_or_download(cifar10, home, True, None)
    np.testing.assert_array_equal(data.test_y, batches["test_batch"][1])
    assert files_in(home / "cifar10") == sorted(cifar_binary(batches))
    asked = len(server.asked)
    np.testing.assert_array_equal(find_or_download(cifar10, home, True, None).x, data.x)
    assert len(server.asked) == asked


def test_emnist_is_downloaded_and_only_the_letters_are_kept(server, tmp_path):
    files, (_, y, _, _) = idx_files("emnist-letters-", "test", low=1, high=26)
    zipped(tmp_path / "made.zip", {**files, "emnist-digits-test-labels-idx1-ubyte": b"?"}, "gzip")
    server.files["gzip.zip"] = (tmp_path / "made.zip").read_bytes()
    emnist = from_server(server, EMNIST_LETTERS, "gzip.zip")
    for _ in range(2):  # downloaded, then found
        np.testing.assert_array_equal(
            find_or_download(emnist, tmp_path / "data", True, None).y + 1, y
        )
    assert files_in(tmp_path / "data" / "emnist-letters") == sorted(f"{name}.gz" for name in files)
    assert len(server.asked) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_unpacked_files_have_the_rights_of_other_files_so_that_a_group_can_share_them(
    server, tmp_path
):
    tar(tmp_path / "made.tar.gz", cifar_binary(cifar_batches(4)), "cifar-10-batches-bin")
    server.files["cifar-10-binary.tar.gz"] = (tmp_path / "made.tar.gz").read_bytes()
    cifar10 = from_server(server, cifar10_source(4), "cifar-10-binary.tar.gz")
    find_or_download(cifar10, tmp_path / "data", True, None)
    rights = (tmp_path / "made.tar.gz").stat().st_mode
    for path in (tmp_path / "data" / "cifar10").iterdir():
        assert path.stat().st_mode == rights


def test_of_four_files_only_the_missing_are_fetched_and_all_missing_are_named(server, tmp_path):
    files, (_, y, _, _) = idx_files("", "t10k")
    put(tmp_path / "made", files, gzipped=True)
    server.files = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    names = [f"{name}.gz" for name in files]
    mnist = from_server(server, MNIST, *names)
    put(tmp_path / "mnist", {"train-images-idx3-ubyte": files["train-images-idx3-ubyte"]})
    all_files = server.files
    server.files = {names[1]: all_files[names[1]]}
    with pytest.raises(
        DataNotFound,
        match=rf"put the file as {names[2]} into .*mnist; download .* put the file as {names[3]}",
    ):
        find_or_download(mnist, tmp_path, True, None)
    server.files = all_files
    np.testing.assert_array_equal(find_or_download(mnist, tmp_path, True, None).y, y)
    assert [path for path, _ in server.asked] == [
        f"/{name}" for name in (names[1], names[2], names[2], names[3])
    ]


def test_an_archive_that_cannot_be_used_is_kept_and_nothing_is_unpacked(server, tmp_path):
    tar(tmp_path / "made.tar.gz", {"data_batch_1.bin": b"short"}, "cifar-10-batches-bin")
    server.files["cifar-10-binary.tar.gz"] = (tmp_path / "made.tar.gz").read_bytes()
    with pytest.raises(ValueError, match=r"lacks data_batch_2\.bin"):
        find_or_download(
            from_server(server, cifar10_source(4), "cifar-10-binary.tar.gz"),
            tmp_path / "data",
            True,
            None,
        )
    assert files_in(tmp_path / "data" / "cifar10") == ["cifar-10-binary.tar.gz"]


def test_a_source_whose_files_are_not_its_own_is_said_so(server, tmp_path):
    odd = Source(
        "odd",
        ("odd",),
        (FileForm(("other",), lambda files: None),),
        (RemoteFile(server.url("file"), md5(CONTENT)),),
    )
    with pytest.raises(DataNotFound, match="must hold other after the download"):
        find_or_download(odd, tmp_path, True, None)
