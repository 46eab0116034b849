"""Tables in Markdown and LaTeX, from rows of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any

from fedcohort.reports.words import shown

LATEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "−": "$-$", "@": "@", "…": r"\dots{}", "→": r"$\to$", "×": r"$\times$"}
LATEX |= {"<": "$<$", ">": "$>$", "|": "$|$", "“": "``", "”": "''"}
LATEX |= {mark: f"\\{mark}" for mark in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table with the keys of the first row as header; no rows, nothing."""
    if not rows:
        return ""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([shown(row.get(key)) for key in rows[0]] for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def as_latex(rows: Sequence[Mapping[str, Any]], caption: str) -> str:
    """Return a LaTeX table, to be used with the package booktabs; no rows, nothing."""
    if not rows:
        return ""
    head, *body = [list(rows[0]), *([shown(row.get(key)) for key in rows[0]] for row in rows)]
    text = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
    ]
    text += [r"\toprule", _line(head), r"\midrule", *map(_line, body), r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(text) + "\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(_latex(cell) for cell in cells) + r" \\"


def _latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)
