"""A folder that one process uses is refused to the others, whatever they do at the same moment."""

import os
import sys
from contextlib import ExitStack
from threading import Event, Thread

import pytest

from fedcohort.files import locked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
IN_USE = "out must not be in use by another process"


def test_a_folder_that_goes_before_it_is_locked_is_made_and_locked_anew(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    first = ExitStack()
    first.enter_context(locked(folder))
    open_folder = os.open

    def open_late(*args):
        descriptor = open_folder(*args)
        first.close()  # The first process writes nothing, so it removes the folder.
        return descriptor

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_late)
        second = ExitStack()
        second.enter_context(locked(folder))
    with second:
        assert folder.exists()
        with pytest.raises(ValueError, match=IN_USE), locked(folder):
            pass
    assert not folder.exists()


def test_a_process_that_is_refused_leaves_the_folder_of_the_other(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    first = ExitStack()
    open_folder = os.open

    def open_late(*args):
        monkeypatch.setattr(os, "open", open_folder)
        first.enter_context(locked(folder))  # Both saw no folder; the first process locks it.
        return open_folder(*args)

    monkeypatch.setattr(os, "open", open_late)
    with pytest.raises(ValueError, match=IN_USE), locked(folder):
        pass
    assert folder.exists()
    first.close()


def test_a_process_that_waits_gets_the_folder_when_the_other_is_done(tmp_path):
    is_locked = Event()

    def wait():
        with locked(tmp_path, waits=True):
            is_locked.set()

    with locked(tmp_path):
        waiting = Thread(target=wait)
        waiting.start()
        assert not is_locked.wait(timeout=0.1)
    waiting.join(timeout=60)
    assert is_locked.is_set()
