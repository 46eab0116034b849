"""Parts of the page as HTML. All text from outside goes through `text`, which escapes it."""

from collections.abc import Container, Iterable, Mapping
from html import escape
from typing import Any

from fedcohort.reports.charts import Chart
from fedcohort.reports.findings import Findings, Rows
from fedcohort.reports.html.verdict import verdict
from fedcohort.reports.words import format_value

WRAP_FROM = 36  # characters of a cell from which its column is wrapped
DOWNLOADS = ("svg", "png", "csv")


def text(value: str) -> str:
    """Return text that shows as it is, also inside an attribute.

    Args:
        value: Text from outside, which may hold markup.
    """
    return escape(value)


def paragraphs(sentences: Iterable[str]) -> str:
    """Return one paragraph per sentence.

    Args:
        sentences: Their texts.
    """
    return "".join(f"<p>{text(sentence)}</p>" for sentence in sentences)


def verdict_section(findings: Findings) -> str:
    """Return the lead and the verdict: shared sentences first, then a list per kind of run.

    Args:
        findings: What the page shows.
    """
    shared, by_kind = verdict(findings)
    html = paragraphs([*findings.lead, *shared])
    for kind, sentences in by_kind.items():
        if len(findings.kinds) > 1:
            html += f"<h3>{text(kind)}</h3>"
        items = "".join(f"<li>{text(sentence)}</li>" for sentence in sentences)
        html += f"<ul>{items}</ul>"
    return html


def table(title: str, rows: Rows) -> str:
    """Return a table with scoped headers, in a region that scrolls, or nothing for no rows.

    Args:
        title: Caption of the table.
        rows: The rows. The keys of the first one are the header.
    """
    if not rows:
        return ""
    keys = list(rows[0])
    wrapped = _wrapped_columns(rows)

    head = ""
    for key in keys:
        head += f'<th scope="col"{_class(key, wrapped)}>{text(key)}</th>'
    body = ""
    for row in rows:
        body += "<tr>"
        for place, key in enumerate(keys):
            value = text(format_value(row.get(key)))
            if place == 0:
                body += f'<th scope="row"{_class(key, wrapped)}>{value}</th>'
            else:
                body += f"<td{_class(key, wrapped)}>{value}</td>"
        body += "</tr>"

    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(title)}">'
        f"<table><caption>{text(title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def controls(findings: Findings) -> str:
    """Return the controls of all figures: the kind of run, and which schemes are shown.

    Args:
        findings: What the page shows. Controls without a choice are left out.
    """
    html = ""
    if len(findings.kinds) > 1:
        options = _options(findings.kinds)
        html += f'<label>Kind of run <select id="kind">{options}</select></label>'

    names: dict[str, None] = {}
    for schemes in findings.kinds.values():
        names |= dict.fromkeys(schemes)
    if len(names) > 1:
        boxes = ""
        for name in names:
            box = f'<input type="checkbox" checked value="{text(name)}">'
            boxes += f"<label>{box} {text(name)}</label>"
        html += f'<fieldset id="schemes"><legend>Schemes shown</legend>{boxes}</fieldset>'

    if not html:
        return ""
    return f'<form class="controls" aria-label="What the figures show">{html}</form>'


def figure(chart: Chart) -> str:
    """Return the frame of a chart: heading, empty plot, caption and download buttons.

    Args:
        chart: A chart with at least one panel. `page.js` draws it into the plot.
    """
    title = text(chart.title)
    words = text(next(iter(chart.panels.values())).words)

    select = ""
    if chart.panels_by != "kind" and len(chart.panels) > 1:
        label = text(chart.panels_by.capitalize())
        options = _options(chart.panels)
        select = f'<label>{label} <select class="own">{options}</select></label>'

    buttons = ""
    for ending in DOWNLOADS:
        name = ending.upper()
        label = f"{title}: download as {name}"
        buttons += f'<button type="button" data-as="{ending}" aria-label="{label}">{name}</button>'

    return (
        f'<section aria-labelledby="title-{chart.id}">'
        f'<h3 id="title-{chart.id}">{title}</h3>'
        f'<figure id="{chart.id}">{select}'
        f'<div class="plot" role="img" aria-label="{title}: {words}"></div>'
        f"<figcaption>{text(chart.caption)} "
        f'<span class="summary" aria-live="polite">{words}</span></figcaption>'
        f'<p class="downloads">Download {buttons}</p>'
        "</figure></section>"
    )


def definitions(title: str, values: Mapping[str, Any]) -> str:
    """Return a list of names and values with a heading, or nothing for no values.

    Args:
        title: The heading.
        values: Values by name.
    """
    if not values:
        return ""
    items = ""
    for name, value in values.items():
        items += f"<dt>{text(str(name))}</dt><dd>{text(_setting(value))}</dd>"
    return f"<h3>{text(title)}</h3><dl>{items}</dl>"


def _wrapped_columns(rows: Rows) -> set[str]:
    wrapped = set()
    for row in rows:
        for key, value in row.items():
            if len(format_value(value)) > WRAP_FROM:
                wrapped.add(key)
    return wrapped


def _class(key: str, wrapped: Container[str]) -> str:
    return ' class="wordy"' if key in wrapped else ""


def _options(names: Iterable[str]) -> str:
    return "".join(f"<option>{text(name)}</option>" for name in names)


def _setting(value: Any) -> str:
    """Return the value of a setting as a settings file spells it."""
    if isinstance(value, list | tuple):
        return ", ".join(_setting(part) for part in value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
