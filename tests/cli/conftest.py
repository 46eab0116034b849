"""Fixtures of all commands: a terminal without surprises, and a function that runs a command."""

import re
import sys

import pytest

from fedcohort import cli

TERMINAL = (
    "COLUMNS",
    "LINES",
    "TERMINAL_WIDTH",
    "FORCE_COLOR",
    "PY_COLORS",
    "GITHUB_ACTIONS",
    "TTY_COMPATIBLE",
    "NO_COLOR",
    "FEDCOHORT_DATA",
)


@pytest.fixture(autouse=True)
def plain(monkeypatch, tmp_path):
    """Run without a terminal, in a folder of one's own."""
    for name in TERMINAL:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fedcohort(monkeypatch, capsys):
    """Return a function that runs the command line: exit code, output and errors."""

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["fedcohort", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def page_words():
    """Return the words of a page: without tags, and without the meanings that words hold."""

    def read(path):
        return re.sub(r'<span class="meaning".*?</span>|<[^>]*>', "", path.read_text())

    return read
