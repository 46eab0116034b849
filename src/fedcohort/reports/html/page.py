"""From findings to one HTML file that needs nothing else: no network, no other file, no program but a browser."""

import json
from collections.abc import Container, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from fedcohort.files import atomic_write
from fedcohort.reports.html import charts, charts_clients
from fedcohort.reports.html.charts import Chart
from fedcohort.reports.html.findings import Findings, Rows
from fedcohort.reports.html.verdict import verdict
from fedcohort.reports.palette import ON_DARK, PALETTE
from fedcohort.reports.words import shown

NAME = "report.html"
NO_PAGE = "No report: it needs pip install 'fedcohort[plots]'"
WORDY = 36  # characters from which a column is wrapped
CHARTS = (
    charts.accuracy_over_rounds,
    charts.accuracy_over_time,
    charts.success_over_rounds,
    charts.cep_over_rounds,
    charts_clients.selections_per_class,
    charts_clients.probabilities,
    charts_clients.fates,
    charts_clients.owners,
    charts.wasted_work,
    charts.fairness_against_accuracy,
)


def available() -> bool:
    """Return whether plotly is installed: it comes with the extra `plots`."""
    from importlib.util import find_spec

    try:
        return find_spec("plotly") is not None
    except ValueError:  # put out of reach, as a test does
        return False


def write_page(of: Findings, folder: Path) -> Path | None:
    """Write the page of a run into its folder, whole or not at all; None where plotly is not installed."""
    if not available():
        return None
    with atomic_write(folder / NAME) as draft:
        draft.write_text(page(of), encoding="utf-8")
    return folder / NAME


def page(of: Findings) -> str:
    """Return the whole page."""
    from plotly.offline import get_plotlyjs

    drawn = [chart for draw in CHARTS if (chart := draw(of))]
    kinds = list(of.kinds)
    data = {
        "palette": {"light": PALETTE, "dark": ON_DARK},
        "kinds": kinds,
        "charts": [chart.as_dict() for chart in drawn],
    }
    parts = {
        "title": escape(of.title),
        "verdict": _verdict(of),
        "tables": "".join(_table(title, rows) for title, rows in of.tables.items()),
        "notes": "".join(f"<p>{escape(note)}</p>" for note in of.notes),
        "controls": _controls(of),
        "figures": "".join(_figure(chart) for chart in drawn),
        "settings": _pairs("Settings", of.settings),
        "environment": _pairs(
            "Seeds and versions", ({"seeds": of.seeds} if of.seeds else {}) | dict(of.environment)
        ),
        "data": _json(data),
        "plotly": get_plotlyjs().replace("</script", "<\\/script"),
        "style": _resource("page.css"),
        "script": _resource("page.js"),
    }
    return Template(_resource("page.html")).substitute(parts)


def _resource(name: str) -> str:
    return files("fedcohort.reports.html").joinpath(name).read_text(encoding="utf-8")


def _json(data: Any) -> str:
    """Return JSON that can stand inside a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _verdict(of: Findings) -> str:
    shared, own = verdict(of)
    html = "".join(f"<p>{escape(sentence)}</p>" for sentence in (*of.lead, *shared))
    for kind, sentences in own.items():
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
        html += (f"<h3>{escape(kind)}</h3>" if len(of.kinds) > 1 else "") + f"<ul>{items}</ul>"
    return html


def _table(title: str, rows: Rows) -> str:
    """Return a table with a caption and scoped headers, in a region that scrolls, by keyboard too; no rows, nothing."""
    if not rows:
        return ""
    wordy = {key for row in rows for key, value in row.items() if len(shown(value)) > WORDY}
    head = "".join(f'<th scope="col"{_class(key, wordy)}>{escape(key)}</th>' for key in rows[0])
    body = "".join(
        f"<tr>{_cells({key: row.get(key) for key in rows[0]}, wordy)}</tr>" for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(title)}"><table><caption>{escape(title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(row: Mapping[str, Any], wordy: Container[str]) -> str:
    (key, first), *rest = row.items()
    cells = "".join(f"<td{_class(name, wordy)}>{escape(shown(value))}</td>" for name, value in rest)
    return f'<th scope="row"{_class(key, wordy)}>{escape(shown(first))}</th>{cells}'


def _class(key: str, wordy: Container[str]) -> str:
    return ' class="wordy"' if key in wordy else ""


def _controls(of: Findings) -> str:
    """Return what decides what all figures show: the kind of run, and which schemes."""
    names = list(dict.fromkeys(name for schemes in of.kinds.values() for name in schemes))
    html = ""
    if len(of.kinds) > 1:
        html += f'<label>Kind of run <select id="kind">{_choices(list(of.kinds))}</select></label>'
    if len(names) > 1:
        boxes = "".join(
            f'<label><input type="checkbox" checked value="{escape(name)}"> {escape(name)}</label>'
            for name in names
        )
        html += f'<fieldset id="schemes"><legend>Schemes shown</legend>{boxes}</fieldset>'
    return (
        f'<form class="controls" aria-label="What the figures show">{html}</form>' if html else ""
    )


def _choices(names: Sequence[str]) -> str:
    return "".join(f"<option>{escape(name)}</option>" for name in names)


def _figure(chart: Chart) -> str:
    title, own = escape(chart.title), ""
    if chart.by != "kind" and len(chart.choices) > 1:
        own = f'<label>{escape(chart.by.capitalize())} <select class="own">{_choices(list(chart.choices))}</select></label>'
    buttons = "".join(
        f'<button type="button" data-as="{kind}" aria-label="{title}: download as {kind.upper()}">{kind.upper()}</button>'
        for kind in ("svg", "png", "csv")
    )
    first = escape(next(iter(chart.summary.values())))
    return (
        f'<section aria-labelledby="title-{chart.id}"><h3 id="title-{chart.id}">{title}</h3><figure id="{chart.id}">{own}'
        f'<div class="plot" role="img" aria-label="{title}: {first}"></div><figcaption>{escape(chart.caption)} '
        f'<span class="summary" aria-live="polite">{first}</span></figcaption>'
        f'<p class="downloads">Download {buttons}</p></figure></section>'
    )


def _pairs(title: str, values: Mapping[str, Any]) -> str:
    """Return a list of names and values; none, nothing."""
    if not values:
        return ""
    rows = "".join(
        f"<dt>{escape(str(name))}</dt><dd>{escape(_value(value))}</dd>"
        for name, value in values.items()
    )
    return f"<h3>{escape(title)}</h3><dl>{rows}</dl>"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(part) for part in value)
    return (
        "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )
