"""Drafts of killed processes are removed at the next write, those of living ones are not."""

import os
import subprocess
import sys

import pytest

from fedcohort.files import atomic_write

WRITER = """
import sys, time
from pathlib import Path
from fedcohort.files import atomic_write
with atomic_write(Path(sys.argv[1])) as draft:
    draft.write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")


@pytest.fixture
def writer(tmp_path):
    """Start a process that is in the middle of writing a figure."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "accuracy.svg"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "writing\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, text):
    with atomic_write(path) as draft:
        draft.write_text(text)


def test_a_draft_of_a_killed_process_goes_at_the_next_write(tmp_path, writer):
    draft = f".accuracy.svg.{writer.pid}.svg"
    assert names(tmp_path) == [draft]
    writer.kill()
    writer.wait()
    assert names(tmp_path) == [draft]
    write(tmp_path / "accuracy.svg", "whole")
    assert names(tmp_path) == ["accuracy.svg"]


def test_a_draft_of_a_living_process_stays(tmp_path, writer):
    write(tmp_path / "accuracy.svg", "whole")
    assert names(tmp_path) == [f".accuracy.svg.{writer.pid}.svg", "accuracy.svg"]


def test_files_that_are_no_drafts_of_this_file_stay(tmp_path):
    others = [".accuracy.png.1.png", ".accuracy.svg.1.png", ".accuracy.svg", ".accuracy.svg.x.svg"]
    for name in others:
        (tmp_path / name).write_text("mine")
    write(tmp_path / "accuracy.svg", "whole")
    assert names(tmp_path) == sorted([*others, "accuracy.svg"])


def test_the_file_that_is_replaced_is_kept_under_another_name(tmp_path):
    path = tmp_path / "state"
    for text in ("one", "two", "three"):
        with atomic_write(path, tmp_path / "before") as draft:
            draft.write_text(text)
    assert path.read_text() == "three"
    assert (tmp_path / "before").read_text() == "two"
    assert names(tmp_path) == ["before", "state"]


def test_a_file_is_there_at_every_moment_while_it_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "state"
    path.write_text("one")
    moments = []
    replace = os.replace

    def watching(source, target):
        moments.append(path.read_text())
        replace(source, target)
        moments.append(path.read_text())

    monkeypatch.setattr(os, "replace", watching)
    with atomic_write(path, tmp_path / "before") as draft:
        draft.write_text("two")
    assert moments == ["one", "one", "one", "two"]


def test_where_files_have_no_second_names_the_file_is_copied(tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "state").write_text("one")
    with atomic_write(tmp_path / "state", tmp_path / "before") as draft:
        draft.write_text("two")
    assert (tmp_path / "before").read_text() == "one"
