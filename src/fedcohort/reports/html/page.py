"""Writes the page of a run: one HTML file that needs no network and no other file.

It begins with the answer: a sentence, a picture, a table, and who is left out. Everything else is
folded below. The charts are drawn here as SVG, and a short script adds what needs a reader's hand.
plotly was left because every page would carry its large script, which draws nothing without
JavaScript and cannot label lines at their ends. A page with drawings of our own is smaller, shows
everything without a script and needs no package that is not installed.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from string import Template

from fedcohort.files import atomic_write
from fedcohort.lab import folder as run_folder
from fedcohort.reports.answer import Answer, LeftOut
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.clients import (
    MAX_CLIENTS,
    inclusion_probabilities,
    labels_per_client,
    outcomes_per_client,
    selections_per_class,
)
from fedcohort.reports.charts.curves import (
    accuracy_over_rounds,
    accuracy_over_time,
    effective_participation,
    success_ratio,
)
from fedcohort.reports.charts.groups import accuracy_per_class, accuracy_per_label
from fedcohort.reports.charts.tradeoffs import fairness_against_accuracy, wasted_work
from fedcohort.reports.findings import Findings, Rows
from fedcohort.reports.html import elements
from fedcohort.reports.html.chart_csv import chart_csv, compressed
from fedcohort.reports.html.figures import controls, figure
from fedcohort.reports.html.terms import Marker
from fedcohort.reports.html.verdict import verdict
from fedcohort.reports.palette import COLOURS, COLOURS_ON_DARK
from fedcohort.reports.svg.draw import highlight

FILE_NAME = run_folder.REPORT_PAGE
MAX_BYTES = 3_000_000
MAX_ROWS = 5_000  # of a folded table


def page_charts(findings: Findings) -> list[Chart]:
    """Return the folded charts of a page in their order, without those that have no data.

    Args:
        findings: What the page shows.
    """
    charts = [
        accuracy_over_rounds(findings.collect(lambda scheme: scheme.accuracy)),
        accuracy_over_time(findings.kinds),
        accuracy_per_class(findings.kinds, findings.class_rates),
        accuracy_per_label(findings.kinds),
        success_ratio(findings.collect(lambda scheme: scheme.success_so_far)),
        effective_participation(findings.collect(lambda scheme: scheme.participation)),
    ]
    if findings.classes is not None:
        counts = findings.collect(lambda scheme: scheme.counts)
        charts.append(selections_per_class(counts, findings.classes, findings.rates))
    charts += [
        inclusion_probabilities(
            findings.allocations,
            findings.client_names,
            ordered_by_class=findings.classes is not None,
            is_first_seed=bool(findings.seeds),
        ),
        outcomes_per_client(findings.outcomes),
        labels_per_client(findings.owners, max_clients=MAX_CLIENTS),
        wasted_work(findings.kinds),
        fairness_against_accuracy(findings.kinds),
    ]
    highlighted = first_screen(findings).highlighted
    return [replace(chart, highlighted=highlighted) for chart in charts if chart.panels]


def first_screen(findings: Findings) -> Answer:
    """Return the answer of a run, or the first sentence about it where it has none.

    Args:
        findings: What the page shows.
    """
    if findings.answer is not None:
        return findings.answer
    shared, by_kind = verdict(findings)
    sentences = [*findings.lead, *shared, *(one for kind in by_kind.values() for one in kind)]
    return Answer(sentence=sentences[0] if sentences else findings.title)


def write_page(findings: Findings, folder: Path) -> Path:
    """Write the page of a run into its folder. An old page stays if that fails.

    Args:
        findings: What the page shows.
        folder: Where the page goes.

    Returns:
        The path of the page.
    """
    path = folder / FILE_NAME
    with atomic_write(path) as draft:
        draft.write_text(page(findings), encoding="utf-8")
    return path


def page(findings: Findings) -> str:
    """Return the text of the page; a large one draws fewer kinds of run.

    Args:
        findings: What the page shows.
    """
    num_kinds = len(findings.kinds)
    text = _page(findings, num_kinds)
    while num_kinds > 1 and len(text.encode()) > MAX_BYTES:
        num_kinds = -(-num_kinds // 2)
        text = _page(findings, num_kinds)
    return text


def _page(findings: Findings, num_kinds: int) -> str:
    """Return the text of the page, with figures of the first so many kinds of run."""
    marker = Marker()
    answer = first_screen(findings)
    drawn = replace(findings, kinds=dict(list(findings.kinds.items())[:num_kinds]))
    folded_charts = page_charts(drawn)
    left_out = answer.left_out or LeftOut()
    charts = [
        chart
        for chart in (answer.picture, left_out.picture, *folded_charts)
        if chart is not None and chart.panels
    ]
    figures = _figures(drawn, folded_charts, marker, out_of=len(findings.kinds))
    parts = {
        "title": elements.text(findings.title),
        "sentence": marker.mark(answer.sentence),
        "first": _first(findings, answer, marker),
        "rest": _rest(findings, figures, marker),
        "data": _as_json({chart.id: compressed(chart_csv(chart)) for chart in charts}),
        "colours": _colours(),
        "style": _read_resource("page.css"),
        "script": _read_resource("page.js"),
    }
    return Template(_read_resource("page.html")).substitute(parts)


def _first(findings: Findings, answer: Answer, marker: Marker) -> str:
    """Return what stands below the sentence and is not folded."""
    basis = [*answer.basis, *(one for one in findings.lead if one != answer.sentence)]
    html = elements.paragraphs(basis, marker, "basis")
    slots: dict[str, int] = {}
    if answer.picture is not None and answer.picture.panels:
        for panel in answer.picture.panels.values():
            slots |= highlight(answer.picture, panel)
        html += figure(answer.picture, marker, level=2, for_phones=True)
    if answer.table is not None:
        inside = elements.marked_table(answer.table, marker, slots)
        html += f'<section id="ranking"><h2>In numbers</h2>{inside}</section>'
    if answer.left_out is not None:
        html += _left_out(answer.left_out, marker, slots)
    if answer.to_paste:
        blocks = "".join(elements.code(*block) for block in answer.to_paste.items())
        html += f'<section id="paste"><h2>Settings to paste</h2>{blocks}</section>'
    return html


def _left_out(left_out: LeftOut, marker: Marker, slots: dict[str, int]) -> str:
    inside = elements.paragraphs(left_out.sentences, marker)
    if left_out.picture is not None and left_out.picture.panels:
        inside += figure(left_out.picture, marker, level=3, for_phones=True)
    if left_out.table is not None:
        inside += elements.marked_table(left_out.table, marker, slots)
    title = elements.text(left_out.title)
    return f'<section id="who"><h2>{title}</h2>{inside}</section>'


def _figures(drawn: Findings, charts: Sequence[Chart], marker: Marker, out_of: int) -> str:
    """Return the folded figures with their controls, or nothing without charts.

    Args:
        drawn: What they show.
        charts: The charts.
        marker: Marks the words of the glossary.
        out_of: Number of all kinds of run, of which `drawn` may have fewer.
    """
    if not charts:
        return ""
    html = controls(drawn.kinds, first_screen(drawn).highlighted)
    if len(drawn.kinds) < out_of:
        which = f"{len(drawn.kinds)} of {out_of} kinds of run are drawn, the hardest first."
        html += elements.paragraphs([which], marker, "note")
    html += "".join(figure(chart, marker, level=4) for chart in charts)
    return elements.folded("figures", f"All figures ({len(charts)})", html)


def _rest(findings: Findings, figures: str, marker: Marker) -> str:
    """Return the folded parts: sentences, figures, tables, settings and the words."""
    tables = [_table(*one, marker) for one in findings.tables.items() if one[1]]
    notes = elements.paragraphs(findings.notes, marker, "note")
    origin = dict(findings.environment)
    if findings.seeds:
        origin = {"seeds": findings.seeds} | origin
    source = elements.definitions("Settings", findings.settings)
    source += elements.definitions("Seeds and versions", origin)

    html = elements.folded(
        "sentences", "Everything that was found, in sentences", _said(findings, marker)
    )
    html += figures
    if tables:
        inside = "".join(tables) + notes
        html += elements.folded("tables", f"All tables ({len(tables)})", inside)
    html += elements.folded("origin", "Settings, seeds and versions", source)
    meanings = {term.word: term.meaning for term in marker.used.values()}
    words = elements.definitions("", dict(sorted(meanings.items(), key=lambda one: one[0].lower())))
    return html + elements.folded("words", "Words and what they mean", words)


def _table(title: str, rows: Rows, marker: Marker) -> str:
    """Return a table whose last rows are left out if they are too many for a page."""
    html = elements.rows_table(title, rows[:MAX_ROWS], marker)
    if len(rows) > MAX_ROWS:
        html += elements.paragraphs([f"{MAX_ROWS:,} of {len(rows):,} rows."], marker, "note")
    return html


def _said(findings: Findings, marker: Marker) -> str:
    """Return the verdict: shared sentences first, then a list per kind of run."""
    shared, by_kind = verdict(findings)
    html = ""
    for topic, sentences in findings.said.items():
        html += f"<h4>{elements.text(topic)}</h4>{elements.bullets(sentences, marker)}"
    html += elements.paragraphs(shared, marker)
    for kind, sentences in by_kind.items():
        if len(findings.kinds) > 1:
            html += f"<h4>{elements.text(kind)}</h4>"
        html += elements.bullets(sentences, marker)
    return html


def _colours() -> str:
    """Return the palette as variables of the style sheet, for light and for dark pages."""
    light = "".join(f"--c{place}:{colour};" for place, colour in enumerate(COLOURS))
    dark = "".join(f"--c{place}:{colour};" for place, colour in enumerate(COLOURS_ON_DARK))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def _as_json(data: dict[str, str]) -> str:
    """Return JSON that cannot end the script element around it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _read_resource(name: str) -> str:
    return files("fedcohort.reports.html").joinpath(name).read_text(encoding="utf-8")
