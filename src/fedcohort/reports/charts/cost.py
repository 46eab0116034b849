"""The picture of an answer: accuracy against what it cost."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort.reports.charts.curves import FIRST_SEED_ENDS, last_values, with_band_note
from fedcohort.reports.charts.seeds import (
    NO_CURVE,
    Curve,
    accuracy_over_seconds,
    curve_over_rounds,
    played_furthest,
)
from fedcohort.reports.charts.specification import Axis, Chart, Line, Panel
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.palette import scheme_style

ASKED = "client-trainings asked"
SECONDS = "virtual seconds"


def cost_unit(schemes: Mapping[str, SchemeResults]) -> str:
    """Return what a run costs: seconds where rounds differ in them, else trainings asked for.

    A world that only says who answers gives every round the same length, which says nothing.

    Args:
        schemes: Schemes by name.
    """
    lengths: set[float] = set()
    for scheme in schemes.values():
        if scheme.seconds is None:
            return ASKED
        known = scheme.seconds[~np.isnan(scheme.seconds)]
        lengths |= set(np.unique(known).tolist()[:2])
    return SECONDS if len(lengths) > 1 else ASKED


def accuracy_against_cost(
    case: str, schemes: Mapping[str, SchemeResults], highlighted: Sequence[str]
) -> Chart:
    """Return the chart of accuracy against cost, for one kind of run.

    Args:
        case: Title of its panel.
        schemes: Schemes by name. Those without accuracy are left out.
        highlighted: The schemes that the answer is about.
    """
    unit = cost_unit(schemes)
    curves = {}
    for name, scheme in schemes.items():
        curve = accuracy_over_seconds(scheme) if unit == SECONDS else _over_asked(scheme)
        if curve.x.size:
            curves[name] = curve
    y = Axis("test accuracy")
    lines = []
    for name, curve in curves.items():
        lines.append(Line(name, scheme_style(name), curve.x, curve.mean, curve.sd))
    panels = {}
    if lines:
        panels[case] = Panel(lines, last_values(y, curves))
    caption = f"Accuracy on the test samples against {unit} so far: {case}."
    if unit == SECONDS:
        caption += f" {FIRST_SEED_ENDS}"
    return Chart(
        id="answer",
        title="Accuracy against cost",
        caption=with_band_note(caption, panels),
        x=Axis(unit),
        y=y,
        panels=panels,
        panels_by="case",
        highlighted=tuple(highlighted),
    )


def _over_asked(scheme: SchemeResults) -> Curve:
    """Return accuracy over the trainings asked for so far, mean over the same seeds for both."""
    if scheme.accuracy is None:
        return NO_CURVE
    curve = curve_over_rounds(scheme.accuracy)
    if not curve.x.size:
        return NO_CURVE
    asked_of_seeds = scheme.asked[played_furthest(scheme.accuracy)]
    asked = np.nancumsum(asked_of_seeds, axis=1).mean(axis=0)
    return Curve(asked[np.asarray(curve.x, dtype=np.int64) - 1], curve.mean, curve.sd)
