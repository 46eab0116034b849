import sys

import numpy as np
import pytest

from fedcohort.reports import figures
from fedcohort.reports.charts.curves import over_rounds
from fedcohort.reports.report import NO_FIGURES, Report, write

CHART = over_rounds({"CEP": {"random": np.cumsum(np.ones((2, 5)), axis=-1)}})
ROWS = [{"claim": "a", "value": "1 ± 2", "sentence": "words " * 10}]


def test_latex_wraps_long_columns_and_prints_the_notes(tmp_path):
    write(Report("name", "Title", {"table": ROWS}, ["*: outside 2 % of it."]), tmp_path)
    text = (tmp_path / "name.tex").read_text()
    assert r"\begin{tabular}{lrp{0.80\linewidth}}" in text
    assert text.endswith("{\\footnotesize *: outside 2 \\% of it.\\par}\n")


def test_markdown_has_the_title_the_tables_the_notes_and_the_figures(tmp_path):
    report = Report("name", "Title", {"table": [{"a": 1.5, "b": "x|y"}]}, ["A note."])
    write(report, tmp_path)
    assert (tmp_path / "name.md").read_text() == (
        "# Title\n\n## table\n\n| a | b |\n| --- | --- |\n| 1.5 | x\\|y |\n\nA note.\n"
    )


def test_figures_are_drawn_when_the_report_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    line = write(Report("name", "Title", {}, figures={"cep": CHART}), tmp_path)
    assert line == "Figures: cep.png, cep.svg"
    assert (tmp_path / "name.md").read_text().endswith("\n![cep](cep.svg)\n")
    assert {path.name for path in tmp_path.iterdir()} == {
        "name.md",
        "name.tex",
        "cep.png",
        "cep.svg",
    }


def test_without_matplotlib_the_report_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not figures.has_matplotlib()
    assert write(Report("name", "Title", {}, figures={"cep": CHART}), tmp_path) == NO_FIGURES
    assert write(Report("name", "Title", {}), tmp_path) == ""


def test_numbers_are_written_as_csv(tmp_path):
    write(Report("name", "Title", {}, numbers={"points": [{"a": 1, "b": 2}]}), tmp_path)
    assert (tmp_path / "points.csv").read_text().splitlines() == ["a,b", "1,2"]
