"""Writes the page of a run: one HTML file that needs no network and no other file.

plotly, whose JavaScript draws the charts, comes with the extra `plots`. It is imported when a
page is written, not before.
"""

import json
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from fedcohort.files import atomic_write
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
from fedcohort.reports.charts.groups import accuracy_per_class
from fedcohort.reports.charts.tradeoffs import fairness_against_accuracy, wasted_work
from fedcohort.reports.findings import Findings
from fedcohort.reports.html import elements
from fedcohort.reports.html.plots import as_plain
from fedcohort.reports.palette import COLOURS, COLOURS_ON_DARK

FILE_NAME = "report.html"
NO_PAGE = "No report: it needs pip install 'fedcohort[plots]'"


def page_charts(findings: Findings) -> list[Chart]:
    """Return the charts of a page in their order, without those that have no data.

    Args:
        findings: What the page shows.
    """
    charts = [
        accuracy_over_rounds(findings.collect(lambda scheme: scheme.accuracy)),
        accuracy_over_time(findings.kinds),
        accuracy_per_class(findings.kinds, findings.class_rates),
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
    return [chart for chart in charts if chart.panels]


def has_plotly() -> bool:
    """Return whether plotly is installed."""
    return find_spec("plotly") is not None


def write_page(findings: Findings, folder: Path) -> Path | None:
    """Write the page of a run into its folder. An old page stays if that fails.

    Args:
        findings: What the page shows.
        folder: Where the page goes.

    Returns:
        The path of the page, None if plotly is not installed.
    """
    if not has_plotly():
        return None
    path = folder / FILE_NAME
    with atomic_write(path) as draft:
        draft.write_text(page(findings), encoding="utf-8")
    return path


def page(findings: Findings) -> str:
    """Return the text of the page.

    Args:
        findings: What the page shows.
    """
    from plotly.offline import get_plotlyjs

    charts = page_charts(findings)
    origin = dict(findings.environment)
    if findings.seeds:
        origin = {"seeds": findings.seeds} | origin

    parts = {
        "title": elements.text(findings.title),
        "verdict": elements.verdict_section(findings),
        "tables": "".join(elements.table(*table) for table in findings.tables.items()),
        "notes": elements.paragraphs(findings.notes),
        "controls": elements.controls(findings),
        "figures": "".join(elements.figure(chart) for chart in charts),
        "settings": elements.definitions("Settings", findings.settings),
        "environment": elements.definitions("Seeds and versions", origin),
        "data": _as_json(_script_data(findings, charts)),
        "plotly": get_plotlyjs().replace("</script", "<\\/script"),
        "style": _read_resource("page.css"),
        "script": _read_resource("page.js"),
    }
    return Template(_read_resource("page.html")).substitute(parts)


def _script_data(findings: Findings, charts: Sequence[Chart]) -> dict[str, Any]:
    """Return what `page.js` reads."""
    return {
        "palette": {"light": COLOURS, "dark": COLOURS_ON_DARK},
        "kinds": list(findings.kinds),
        "charts": [as_plain(chart) for chart in charts],
    }


def _as_json(data: Any) -> str:
    """Return JSON that cannot end the script element around it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in ("<", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _read_resource(name: str) -> str:
    return files("fedcohort.reports.html").joinpath(name).read_text(encoding="utf-8")
