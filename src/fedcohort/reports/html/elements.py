"""Small parts of the page as HTML. All text from outside is escaped here or by the marker."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from fedcohort.reports.answer import BEST, HIGHEST, TIED, MarkedTable
from fedcohort.reports.findings import Rows
from fedcohort.reports.html.terms import MAX_WHOLE, Marker
from fedcohort.reports.words import format_value

WRAP_FROM = 36  # characters of a cell from which its column is wrapped
MARKS = {BEST: ("★", "best choice: "), TIED: ("≈", "tied: ")}


def text(value: str) -> str:
    """Return text that shows as it is, also inside an attribute.

    Args:
        value: Text from outside, which may hold markup.
    """
    return escape(value)


def paragraphs(sentences: Iterable[str], marker: Marker, kind: str = "") -> str:
    """Return one paragraph per sentence.

    Args:
        sentences: Their texts.
        marker: Marks the words of the glossary.
        kind: Class of the paragraphs.
    """
    start = f'<p class="{kind}">' if kind else "<p>"
    return "".join(f"{start}{marker.mark(sentence)}</p>" for sentence in sentences)


def bullets(sentences: Iterable[str], marker: Marker) -> str:
    """Return a list with one item per sentence."""
    items = "".join(f"<li>{marker.mark(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>"


def marked_table(table: MarkedTable, marker: Marker, slots: Mapping[str, int]) -> str:
    """Return a table with its marks, the colours of highlighted rows, and its note.

    Args:
        table: The table. Its first column names the rows.
        marker: Marks the words of the glossary in the header and in the note.
        slots: Number of the colour of each highlighted name.
    """
    note = paragraphs([table.note], marker, "note") if table.note else ""
    return rows_table(table.title, table.rows, marker, marks=table.marks, slots=slots) + note


def rows_table(
    title: str,
    rows: Rows,
    marker: Marker,
    *,
    marks: Mapping[int, str] | None = None,
    slots: Mapping[str, int] | None = None,
) -> str:
    """Return a table with scoped headers, in a region that scrolls, or nothing for no rows.

    Args:
        title: Caption of the table.
        rows: The rows. The keys of the first one are the header.
        marker: Marks the words of the glossary in the header.
        marks: `BEST`, `TIED` or `HIGHEST`, by place of the row.
        slots: Number of the colour of each highlighted name.
    """
    if not rows:
        return ""
    keys = list(rows[0])
    classes = {key: _column_class(rows, key) for key in keys}
    known: set[str] = set()
    head = ""
    for key in keys:
        head += f'<th scope="col"{_class(classes[key])}>{marker.mark(key, known)}</th>'
    body = ""
    for place, row in enumerate(rows):
        mark = (marks or {}).get(place, "")
        name = format_value(row.get(keys[0]))
        marker.define(name)
        sign = _mark(mark) if marks else ""
        sign += _dot((slots or {}).get(name))
        body += f'<tr class="{mark}">' if mark else "<tr>"
        body += f'<th scope="row"{_class(classes[keys[0]])}>{sign}{_name(name)}{_tag(mark)}</th>'
        for key in keys[1:]:
            value = text(format_value(row.get(key)))
            body += f"<td{_class(classes[key])}>{value}</td>"
        body += "</tr>"

    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(title)}">'
        f"<table><caption>{marker.mark(title, known)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def code(title: str, content: str) -> str:
    """Return text to copy, with a button that copies it."""
    return (
        f'<div class="code"><div class="code-title"><h3>{text(title)}</h3>'
        f'<button type="button" class="copy" aria-label="Copy {text(title)}">Copy</button></div>'
        f'<pre tabindex="0" aria-label="{text(title)}"><code>{text(content)}</code></pre></div>'
    )


def definitions(title: str, values: Mapping[str, Any]) -> str:
    """Return a list of names and values with a heading, or nothing for no values.

    Args:
        title: The heading. Empty for none.
        values: Values by name.
    """
    if not values:
        return ""
    items = ""
    for name, value in values.items():
        items += f"<dt>{text(str(name))}</dt><dd>{text(_setting(value))}</dd>"
    heading = f"<h4>{text(title)}</h4>" if title else ""
    return f"{heading}<dl>{items}</dl>"


def folded(name: str, title: str, inside: str) -> str:
    """Return a part that is closed until the reader opens it, or nothing if it is empty.

    Args:
        name: Its id.
        title: What the reader sees while it is closed.
        inside: Its content as HTML.
    """
    if not inside:
        return ""
    return (
        f'<details id="{name}"><summary><h3>{text(title)}</h3></summary>'
        f'<div class="folded">{inside}</div></details>'
    )


def options(names: Iterable[str]) -> str:
    """Return the options of a menu."""
    return "".join(f"<option>{text(name)}</option>" for name in names)


def _mark(mark: str) -> str:
    if mark not in MARKS:
        return '<span class="mark"></span>'
    sign, words = MARKS[mark]
    return f'<span class="mark" aria-hidden="true">{sign}</span><span class="unseen">{words}</span>'


def _name(name: str) -> str:
    """Return the name of a row, whose words are not broken at their hyphens unless very long."""
    words = []
    for word in name.split(" "):
        shown = text(word)
        if "-" in word and len(word) <= MAX_WHOLE:
            shown = f'<span class="whole">{shown}</span>'
        words.append(shown)
    return " ".join(words)


def _tag(mark: str) -> str:
    return f' <span class="tag">{mark}</span>' if mark == HIGHEST else ""


def _dot(slot: int | None) -> str:
    return "" if slot is None else f'<span class="dot h{slot}" aria-hidden="true"></span>'


def _column_class(rows: Rows, key: str) -> str:
    """Return the class of a column: "wordy" for long text, "words" for short text, or none."""
    cells = [format_value(row.get(key)) for row in rows]
    if any(len(cell) > WRAP_FROM for cell in cells):
        return "wordy"
    num_words = sum(cell[:1].isalpha() for cell in cells)
    return "words" if 2 * num_words > len(cells) else ""


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _setting(value: Any) -> str:
    """Return the value of a setting as a settings file spells it."""
    if isinstance(value, list | tuple):
        return ", ".join(_setting(part) for part in value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
