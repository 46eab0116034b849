"""Figures of the page: drawings of a chart, its caption, and buttons to save it."""

from collections.abc import Mapping, Sequence

from fedcohort.reports.charts import Chart, Panel, Stack
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.html.elements import options, text
from fedcohort.reports.html.terms import Marker
from fedcohort.reports.svg.bars import stack_colours
from fedcohort.reports.svg.draw import MAX_HIGHLIGHTED, draw_panel
from fedcohort.reports.svg.frame import NARROW

DOWNLOADS = ("svg", "png", "csv")


def figure(chart: Chart, marker: Marker, level: int, *, for_phones: bool = False) -> str:
    """Return a chart with one drawing per panel, its caption and its buttons.

    Without the script all panels are seen. The script shows one of them at a time.

    Args:
        chart: A chart with at least one panel.
        marker: Marks the words of the glossary in the caption.
        level: Level of its heading.
        for_phones: Whether phones get a drawing of their own. They scroll a wide one otherwise.
    """
    title = text(chart.title)
    select = ""
    if chart.panels_by != "kind" and len(chart.panels) > 1:
        label = text(chart.panels_by.capitalize())
        menu = f'<select class="own">{options(chart.panels)}</select>'
        select = f'<p class="choice"><label>{label} {menu}</label></p>'
    panels = ""
    for place, (name, panel) in enumerate(chart.panels.items()):
        panels += _panel(chart, name, panel, f"{chart.id}-{place}", for_phones)
    buttons = ""
    for ending in DOWNLOADS:
        name = ending.upper()
        label = f"{title}: download as {name}"
        buttons += f'<button type="button" data-as="{ending}" aria-label="{label}">{name}</button>'
    heading = f"<h{level}>{title}</h{level}>"
    return (
        f'<figure id="{chart.id}" data-by="{text(chart.panels_by)}">'
        f'<div class="figure-head">{heading}<p class="downloads">{buttons}</p></div>'
        f"{select}{panels}"
        f"<figcaption>{marker.mark(chart.caption)}</figcaption></figure>"
    )


def controls(kinds: Mapping[str, Mapping[str, SchemeResults]], highlighted: Sequence[str]) -> str:
    """Return the controls of all folded figures: the kind of run, and who is highlighted.

    Controls without a choice are left out.

    Args:
        kinds: The schemes of each kind of run that is drawn.
        highlighted: The schemes that are highlighted at first.
    """
    html = ""
    if len(kinds) > 1:
        menu = f'<select id="kind">{options(kinds)}</select>'
        html += f"<label>Kind of run {menu}</label>"

    names: dict[str, None] = {}
    for schemes in kinds.values():
        names |= dict.fromkeys(schemes)
    if len(names) > MAX_HIGHLIGHTED:
        boxes = ""
        for name in names:
            state = " checked" if name in highlighted else ""
            box = f'<input type="checkbox"{state} value="{text(name)}">'
            boxes += f"<label>{box} {text(name)}</label>"
        legend = f"Highlight up to {MAX_HIGHLIGHTED}"
        html += f'<fieldset id="schemes"><legend>{legend}</legend>{boxes}</fieldset>'

    if not html:
        return ""
    return f'<form class="controls" aria-label="What the figures show">{html}</form>'


def _panel(chart: Chart, name: str, panel: Panel, key: str, for_phones: bool) -> str:
    heading = f'<p class="panel-title">{text(name)}</p>' if len(chart.panels) > 1 else ""
    drawings = draw_panel(chart, panel, key, kind="wide" if for_phones else "")
    if for_phones:
        drawings += draw_panel(chart, panel, f"{key}-narrow", NARROW, kind="narrow")
    else:
        drawings = f'<div class="scroll">{drawings}</div>'
    return (
        f'<div class="panel" data-panel="{text(name)}">{heading}{_legend(chart, panel)}{drawings}'
        '<p class="readout" aria-hidden="true"></p></div>'
    )


def _legend(chart: Chart, panel: Panel) -> str:
    """Return what the colours of stacked bars mean. Other series have labels in the drawing."""
    if not isinstance(panel.series[0], Stack):
        return ""
    items = ""
    for layer, colour in zip(panel.series, stack_colours(panel), strict=True):
        name = text(f"{chart.legend} {layer.name}".strip())
        items += f'<li><span class="swatch" style="background:{colour}"></span>{name}</li>'
    return f'<ul class="legend">{items}</ul>'
