"""A report: tables, notes and figures, written as Markdown, LaTeX, CSV and images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcohort.files import save_csv, write_text
from fedcohort.reports import figures
from fedcohort.reports.charts import Chart
from fedcohort.reports.markup import as_latex, as_latex_note, as_markdown

Rows = Sequence[Mapping[str, Any]]
NO_FIGURES = "No figures: they need pip install 'fedcohort[plots]'"


@dataclass(frozen=True, eq=False)
class Report:
    """Tables, notes and figures about one topic.

    Attributes:
        name: Name of its files.
        title: Heading.
        tables: Rows for people, by title.
        notes: Sentences below the tables.
        numbers: Rows for programs, by name of the CSV file.
        figures: Charts by file name. They are drawn when the report is written.
        preface: Sentences above the tables.
    """

    name: str
    title: str
    tables: Mapping[str, Rows]
    notes: Sequence[str] = ()
    numbers: Mapping[str, Rows] = field(default_factory=dict)
    figures: Mapping[str, Chart] = field(default_factory=dict)
    preface: Sequence[str] = ()


def write(report: Report, folder: Path) -> str:
    """Write all files of a report.

    Args:
        report: What to write.
        folder: Where the files go.

    Returns:
        A line for the user about the figures. Empty if the report has none.
    """
    for name, rows in report.numbers.items():
        save_csv(folder / f"{name}.csv", rows)

    images: list[Path] = []
    if figures.has_matplotlib():
        images = figures.save_figures(report.figures, folder)

    write_text(folder / f"{report.name}.md", _markdown(report, images))
    write_text(folder / f"{report.name}.tex", _latex(report))

    if images:
        return f"Figures: {', '.join(path.name for path in images)}"
    if report.figures:
        return NO_FIGURES
    return ""


def _markdown(report: Report, images: Sequence[Path]) -> str:
    parts = [f"# {report.title}\n"]
    for sentence in report.preface:
        parts.append(f"{sentence}\n")
    for title, rows in report.tables.items():
        parts.append(f"## {title}\n\n{as_markdown(rows)}")
    for note in report.notes:
        parts.append(f"{note}\n")
    for path in images:
        if path.suffix == ".svg":
            parts.append(f"![{path.stem}]({path.name})\n")
    return "\n".join(parts)


def _latex(report: Report) -> str:
    parts = []
    for title, rows in report.tables.items():
        parts.append(as_latex(rows, caption=f"{report.title}: {title}"))
    text = "\n".join(parts)
    for note in report.notes:
        text += f"\n{as_latex_note(note)}"
    return text
