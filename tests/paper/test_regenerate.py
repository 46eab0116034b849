"""Every report in `results` is printed again from the committed records, and compared."""

import re
import sys
from pathlib import Path

import pytest

from fedcohort import cli
from fedcohort.reports import figures
from fedcohort.study import runs

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import draw_results

ROOT = draw_results.ROOT
IMAGE = re.compile(r"\n?!\[[\w-]+\]\([\w-]+\.svg\)\n")


def reports():
    """Return the committed reports: tables and numbers that commands write."""
    found = set()
    for path in (ROOT / "results").rglob("*"):
        inside = path.relative_to(ROOT / "results").parts
        is_report = len(inside) > 1 and inside[0] not in ("records", "explorations")
        is_record = path.name in (runs.MEASURES, runs.CURVES)
        if is_report and not is_record and path.suffix in (".md", ".csv"):
            found.add(path.relative_to(ROOT / "results"))
    return found


def test_the_commands_of_the_page_print_every_report_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)
    for command in draw_results.commands():
        if "--out" in command:
            place = command.index("--out") + 1
            command[place] = str(tmp_path / Path(command[place]).relative_to("results"))
        else:
            command += ["--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["fedcohort", *command])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 0
    capsys.readouterr()
    different = []
    for path in sorted(reports()):
        committed = (ROOT / "results" / path).read_text(encoding="utf-8")
        printed = tmp_path / path
        if not printed.exists() or IMAGE.sub("", committed) != printed.read_text(encoding="utf-8"):
            different.append(str(path))
    assert different == []
