"""A report: a title, tables, notes and figures; written as Markdown, LaTeX, CSV and images."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcohort.files import atomic_write, save_csv
from fedcohort.reports.figures import Figure, available, save_figures
from fedcohort.reports.markup import as_latex, as_latex_note, as_markdown

Rows = Sequence[Mapping[str, Any]]
NO_FIGURES = "No figures: they need pip install 'fedcohort[plots]'"


@dataclass(frozen=True, eq=False)
class Report:
    """What is shown of an artefact.

    tables: for people, by title; numbers: their numbers for machines, by file name; figures are drawn when they are saved.
    """

    name: str
    title: str
    tables: Mapping[str, Rows]
    notes: Sequence[str] = ()
    numbers: Mapping[str, Rows] = field(default_factory=dict)
    figures: Callable[[], dict[str, Figure]] | None = None


def write(report: Report, folder: Path) -> str:
    """Write all files of a report into a folder; return what to say of its figures."""
    for name, rows in report.numbers.items():
        save_csv(folder / f"{name}.csv", rows)
    drawn = report.figures() if report.figures and available() else {}
    pictures = save_figures(drawn, folder)
    text = f"# {report.title}\n"
    for title, rows in report.tables.items():
        text += f"\n## {title}\n\n{as_markdown(rows)}"
    text += "".join(f"\n{note}\n" for note in report.notes)
    text += "".join(
        f"\n![{path.stem}]({path.name})\n" for path in pictures if path.suffix == ".svg"
    )
    with atomic_write(folder / f"{report.name}.md") as draft:
        draft.write_text(text, encoding="utf-8")
    latex = "\n".join(
        as_latex(rows, f"{report.title}: {title}") for title, rows in report.tables.items()
    )
    latex += "".join(f"\n{as_latex_note(note)}" for note in report.notes)
    with atomic_write(folder / f"{report.name}.tex") as draft:
        draft.write_text(latex, encoding="utf-8")
    if pictures:
        return f"Figures: {', '.join(path.name for path in pictures)}"
    return NO_FIGURES if report.figures and not available() else ""
