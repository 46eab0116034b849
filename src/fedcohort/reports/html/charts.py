"""The figures of a page that compare schemes, as plain data: what is drawn, what is said of it, what a CSV of it holds."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.html.findings import Findings, Scheme
from fedcohort.reports.html.series import curve, in_words, over_time, plain
from fedcohort.reports.palette import place_of, style_of
from fedcohort.statistics import sd

Series = dict[str, Any]  # name, colour and dash (places in the palette), data by column
BAND = "Lines are means over the seeds that came the furthest, bands one standard deviation."


@dataclass(frozen=True)
class Chart:
    """One figure.

    type: lines, boxes, bars, stack, heat or dots; columns: what each column of the data is called in the CSV; choices: series
    by what a reader chooses (`by`: the kind of run, which the whole page shares, or something of this figure's own).
    summary: the figure in words, by choice, for those who do not see it.
    """

    id: str
    title: str
    caption: str
    type: str
    axes: Mapping[str, str]
    columns: Mapping[str, str]
    choices: Mapping[str, list[Series]]
    summary: Mapping[str, str]
    by: str = "kind"
    more: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        return asdict(self)


def series(name: str, data: Mapping[str, Any], **more: Any) -> Series:
    """Return a series in its scheme's colour and line."""
    return {
        "name": name,
        "colour": place_of(name),
        "dash": style_of(name),
        "data": dict(data),
    } | more


def lines(
    of: Findings,
    id: str,
    title: str,
    caption: str,
    axes: tuple[str, str],
    drawn: Callable[[Scheme], dict[str, list[Any]]],
) -> Chart | None:
    """Return curves with bands, by kind of run; None if nothing was recorded to draw."""
    choices = {}
    for kind, schemes in of.kinds.items():
        curves = {name: drawn(scheme) for name, scheme in schemes.items()}
        if any(data["x"] for data in curves.values()):
            choices[kind] = [series(name, data) for name, data in curves.items() if data["x"]]
    if not choices:
        return None
    summary = {kind: _ends(axes[1], shown) for kind, shown in choices.items()}
    columns = {"x": axes[0], "y": axes[1], "sd": "sd over seeds"}
    several = any(
        len(scheme.successes) > 1 for schemes in of.kinds.values() for scheme in schemes.values()
    )
    return Chart(
        id,
        title,
        f"{caption} {BAND}" if several else caption,
        "lines",
        {"x": axes[0], "y": axes[1]},
        columns,
        choices,
        summary,
    )


def _ends(what: str, shown: list[Series]) -> str:
    """Say where the curves end, the highest first."""
    ends = sorted(((one["data"]["y"][-1] or 0.0, one["name"]) for one in shown), reverse=True)
    return f"In the end, {what}: " + ", ".join(f"{name} {value:.4g}" for value, name in ends) + "."


def accuracy_over_rounds(of: Findings) -> Chart | None:
    """Test accuracy after each round."""
    caption = "Accuracy on the test samples after each round."

    def drawn(scheme: Scheme) -> dict[str, list[Any]]:
        return {"x": []} if scheme.accuracy is None else curve(scheme.accuracy)

    return lines(
        of, "accuracy-rounds", "Accuracy over rounds", caption, ("round", "test accuracy"), drawn
    )


def accuracy_over_time(of: Findings) -> Chart | None:
    """Test accuracy after so much virtual time."""
    caption = (
        "The same over virtual time: a round lasts until its last answer, or until the deadline if one is missing. "
        "A curve ends when its first seed has no more rounds."
    )
    return lines(
        of,
        "accuracy-time",
        "Accuracy over virtual time",
        caption,
        ("virtual seconds", "test accuracy"),
        over_time,
    )


def success_over_rounds(of: Findings) -> Chart | None:
    """The share of updates that were used, so far."""
    caption = "Share of all updates asked for so far that arrived in time and were sound."

    def drawn(scheme: Scheme) -> dict[str, list[Any]]:
        asked = np.maximum(_so_far(scheme.asked), 1)
        return curve(_so_far(scheme.successes) / asked)

    return lines(of, "success", "Success ratio", caption, ("round", "success ratio"), drawn)


def cep_over_rounds(of: Findings) -> Chart | None:
    """Cumulative effective participation."""
    caption = "Cumulative effective participation (CEP): the updates used so far."
    axes = ("round", "updates used so far")
    return lines(
        of,
        "cep",
        "Effective participation (CEP)",
        caption,
        axes,
        lambda scheme: curve(_so_far(scheme.successes)),
    )


def _so_far(values: Floats) -> Floats:
    """Return running sums; rounds that were not played stay nan."""
    return np.cumsum(values, axis=1)


def wasted_work(of: Findings) -> Chart | None:
    """Client-seconds of updates that did not count."""
    choices, summary = {}, {}
    for kind, schemes in of.kinds.items():
        known = {
            name: scheme.wasted for name, scheme in schemes.items() if scheme.wasted is not None
        }
        if known:
            choices[kind] = [
                series(name, {"x": [name], "y": plain([wasted.mean()]), "sd": plain([sd(wasted)])})
                for name, wasted in known.items()
            ]
            summary[kind] = (
                "Wasted client-seconds: "
                + ", ".join(f"{n} {in_words(w, 0)}" for n, w in known.items())
                + "."
            )
    if not choices:
        return None
    caption = "Virtual seconds that clients spent on updates that came too late, never came, or were rejected; mean ± sd over seeds."
    axes = {"x": "scheme", "y": "wasted client-seconds"}
    columns = {"x": "scheme", "y": "wasted client-seconds", "sd": "sd over seeds"}
    return Chart("wasted", "Wasted work", caption, "bars", axes, columns, choices, summary)


def fairness_against_accuracy(of: Findings) -> Chart | None:
    """Jain's index against what was learnt, or against the success ratio where nothing was trained."""
    choices, summary = {}, {}
    trained = any(
        scheme.accuracy is not None for schemes in of.kinds.values() for scheme in schemes.values()
    )
    what = "final accuracy" if trained else "success ratio"
    for kind, schemes in of.kinds.items():
        points = []
        for name, scheme in schemes.items():
            fairness, gained = scheme.fairness, scheme.final if trained else scheme.success
            if fairness is None or gained is None or np.isnan(gained).all():
                continue
            known = gained[~np.isnan(gained)]
            data = {
                "x": [fairness.mean()],
                "y": [known.mean()],
                "sd x": [sd(fairness)],
                "sd y": [sd(known)],
            }
            points.append(series(name, {column: plain(value) for column, value in data.items()}))
        if len(points) > 1:
            choices[kind] = points
            said = [
                f"{p['name']} {p['data']['x'][0]:.3g} and {p['data']['y'][0]:.3g}" for p in points
            ]
            summary[kind] = f"Fairness (Jain's index) and {what}: " + "; ".join(said) + "."
    if not choices:
        return None
    caption = (
        f"Jain's index of the times each client was asked (1: all alike) against {what}; crosses are one standard deviation "
        "over seeds. Up and to the right is better."
    )
    columns = {
        "x": "Jain's index",
        "y": what,
        "sd x": "sd of Jain's index",
        "sd y": f"sd of {what}",
    }
    axes = {"x": "fairness (Jain's index)", "y": what}
    return Chart(
        "fairness",
        f"Fairness against {'accuracy' if trained else 'success'}",
        caption,
        "dots",
        axes,
        columns,
        choices,
        summary,
    )
