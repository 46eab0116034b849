import sys
from pathlib import Path

import pytest

from fedcohort import cli
from fedcohort.data import directories
from fedcohort.data.download import DataNotFound
from fedcohort.paper import regret
from fedcohort.reports import figures

sys.path.append(str(Path(__file__).parent))


@pytest.fixture
def scratch(monkeypatch, tmp_path):
    """Work in an empty folder, without a terminal, figures or a network."""
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "PY_COLORS", "FEDCOHORT_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)
    monkeypatch.setattr(directories, "SYSTEM", tmp_path / "system")
    monkeypatch.setattr(directories, "fetch", refuse_download)
    monkeypatch.setattr(regret, "SWITCH_ROUNDS", 40)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refuse_download(url, target, **rest):
    raise DataNotFound(f"{url} could not be downloaded")


@pytest.fixture
def call(scratch, monkeypatch, capsys):
    """Return a function that runs `fedcohort reproduce`: exit code, output and errors."""

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["fedcohort", "reproduce", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code, *capsys.readouterr()

    return run
