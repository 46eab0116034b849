"""Fill the tables of hand-written pages from reports that commands print from records.

A page says which table it shows, and this script copies it:

    <!-- table: figure3/figure3.md | Summary | selector; CEP | selector=random -->
    <!-- end -->

The parts are a report, relative to the page, the heading of a table in it, the columns to show
("all" for all; "CEP=updates" gives one another heading and leaves out brackets and marks) and, if
not all rows, a column with the value that rows must have. `python scripts/fill_pages.py` fills
all pages; a test checks that nothing changes.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "DEVIATIONS.md", *sorted((ROOT / "results").glob("*.md"))]
QUOTING = [ROOT / "README.md", ROOT / "docs/concepts/when-selection-matters.md"]
MARKS = re.compile(r" \([^)]*\)|[?*]")
BLOCK = re.compile(r"<!-- table: (?P<what>[^>]+?) -->\n(?P<rows>.*?)<!-- end -->", re.DOTALL)

Rows = list[list[str]]


def read_table(path: Path, title: str) -> Rows:
    """Return the rows of a report's table, the heading row first.

    Raises:
        ValueError: If the report has no such table.
    """
    heading = f"## {title}\n"
    text = path.read_text(encoding="utf-8")
    if heading not in text:
        raise ValueError(f"{path} must have a table called {title!r}")
    rows: Rows = []
    for line in text.split(heading, 1)[1].splitlines():
        if line.startswith("## "):
            break
        if line.startswith("|") and not line.startswith("| ---"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def choose(rows: Rows, columns: str, condition: str) -> Rows:
    """Return some columns and rows of a table.

    Raises:
        ValueError: If the table has no such column, or no row is left.
    """
    head = rows[0]
    headings = {name: name for name in head}
    if columns != "all":
        headings = {}
        for column in columns.split(";"):
            name, _, heading = column.strip().partition("=")
            headings[name] = heading or name
    for name in headings:
        if name not in head:
            raise ValueError(f"columns must be some of {head}, got {name!r}")
    chosen = []
    for row in rows[1:]:
        values = dict(zip(head, row, strict=True))
        column, _, wanted = condition.partition("=")
        if not condition or values[column] == wanted:
            chosen.append([_cell(values[name], name != headings[name]) for name in headings])
    if not chosen:
        raise ValueError(f"a condition must leave rows, got {condition!r}")
    return [list(headings.values()), *chosen]


def _cell(text: str, is_plain: bool) -> str:
    """Return the text of a cell, without brackets and marks if it is to be plain."""
    if is_plain:
        return MARKS.sub("", text)
    return text


def write_table(rows: Rows) -> str:
    """Return rows as a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def fill(page: Path) -> str:
    """Return the text of a page with all its tables as the reports have them."""

    def filled(match: re.Match[str]) -> str:
        parts = [part.strip() for part in match["what"].split(" | ")]
        source, title, columns = parts[:3]
        condition = parts[3] if len(parts) > 3 else ""
        rows = choose(read_table(page.parent / source, title), columns, condition)
        return f"<!-- table: {match['what']} -->\n{write_table(rows)}<!-- end -->"

    return BLOCK.sub(filled, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for path in (*PAGES, *QUOTING):
        path.write_text(fill(path), encoding="utf-8")
