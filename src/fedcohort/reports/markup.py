"""Tables in Markdown and LaTeX, from rows of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any

from fedcohort.reports.words import format_value

WORDY = 40  # characters from which a column is wrapped
LATEX = {
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "−": "$-$",
    "@": "@",
    "…": r"\dots{}",
    "→": r"$\to$",
    "×": r"$\times$",
}
LATEX |= {"<": "$<$", ">": "$>$", "|": "$|$", "“": "``", "”": "''"}
LATEX |= {mark: f"\\{mark}" for mark in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table with the keys of the first row as header; no rows, nothing."""
    if not rows:
        return ""
    lines = [
        list(rows[0]),
        ["---"] * len(rows[0]),
        *([format_value(row.get(key)) for key in rows[0]] for row in rows),
    ]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def as_latex(rows: Sequence[Mapping[str, Any]], caption: str) -> str:
    """Return a LaTeX table, to be used with the package booktabs; no rows, nothing."""
    if not rows:
        return ""
    head, *body = [
        list(rows[0]),
        *([format_value(row.get(key)) for key in rows[0]] for row in rows),
    ]
    long = [max(len(line[place]) for line in body) > WORDY for place in range(len(head))]
    wide = rf"p{{{0.8 / max(1, sum(long)):.2f}\linewidth}}"
    columns = "".join(
        wide if is_long else "r" if place else "l" for place, is_long in enumerate(long)
    )
    text = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(caption)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
    ]
    text += [
        r"\toprule",
        _line(head),
        r"\midrule",
        *map(_line, body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(text) + "\n"


def as_latex_note(note: str) -> str:
    """Return a paragraph in small print."""
    return rf"{{\footnotesize {_latex(note)}\par}}" + "\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(_latex(cell) for cell in cells) + r" \\"


def _latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)
