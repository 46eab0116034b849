"""Tables in Markdown and LaTeX, from rows of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any

from fedcohort.reports.words import format_value

WRAP_FROM = 40  # characters from which a column of a LaTeX table is wrapped
LATEX_CHARACTERS = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "→": r"$\to$",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
}


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table.

    Args:
        rows: The rows. The keys of the first one are the header.

    Returns:
        The table. Empty text for no rows.
    """
    if not rows:
        return ""
    header, *body = _cells(rows)
    lines = [header, ["---"] * len(header), *body]
    text = ""
    for line in lines:
        cells = [cell.replace("|", "\\|") for cell in line]
        text += f"| {' | '.join(cells)} |\n"
    return text


def as_latex(rows: Sequence[Mapping[str, Any]], caption: str) -> str:
    """Return a LaTeX table, for use with the package booktabs.

    Args:
        rows: The rows. The keys of the first one are the header.
        caption: Caption of the table.

    Returns:
        The table. Empty text for no rows.
    """
    if not rows:
        return ""
    header, *body = _cells(rows)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape_latex(caption)}}}",
        rf"\begin{{tabular}}{{{_latex_columns(body)}}}",
        r"\toprule",
        _latex_line(header),
        r"\midrule",
        *map(_latex_line, body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def as_latex_note(note: str) -> str:
    """Return a paragraph in small print.

    Args:
        note: Its text.
    """
    return rf"{{\footnotesize {_escape_latex(note)}\par}}" + "\n"


def _cells(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the header and the rows as text."""
    keys = list(rows[0])
    cells = [keys]
    for row in rows:
        cells.append([format_value(row.get(key)) for key in keys])
    return cells


def _latex_columns(body: Sequence[Sequence[str]]) -> str:
    """Return how columns are set: the first to the left, the others right, long ones wrapped."""
    is_long = []
    for column in zip(*body, strict=True):
        is_long.append(max(len(cell) for cell in column) > WRAP_FROM)
    width = 0.8 / max(1, sum(is_long))

    columns = ""
    for place, wrapped in enumerate(is_long):
        if wrapped:
            columns += rf"p{{{width:.2f}\linewidth}}"
        elif place == 0:
            columns += "l"
        else:
            columns += "r"
    return columns


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(_escape_latex(cell) for cell in cells) + r" \\"


def _escape_latex(text: str) -> str:
    return "".join(LATEX_CHARACTERS.get(character, character) for character in text)
