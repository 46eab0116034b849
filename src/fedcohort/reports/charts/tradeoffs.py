"""Charts of one value per scheme: wasted work, fairness against accuracy."""

import numpy as np

from fedcohort.reports.charts.seeds import SPREAD, Groups, with_spread
from fedcohort.reports.charts.specification import Axis, Bar, Chart, Dot, Panel
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.palette import scheme_style
from fedcohort.reports.words import mean_with_sd
from fedcohort.statistics import sd


def wasted_work(groups: Groups) -> Chart:
    """Return bars of the client-seconds spent on updates that did not count.

    Args:
        groups: Schemes by kind of run. Schemes without that record are left out.
    """
    panels = {}
    for kind, schemes in groups.items():
        bars = []
        words = []
        for name, scheme in schemes.items():
            wasted = scheme.wasted
            if wasted is None:
                continue
            bars.append(Bar(name, scheme_style(name), float(wasted.mean()), sd(wasted)))
            words.append(f"{name} {mean_with_sd(wasted, digits=0)}")
        if bars:
            panels[kind] = Panel(bars, f"Wasted client-seconds: {', '.join(words)}.")
    return Chart(
        id="wasted",
        title="Wasted work",
        caption=with_spread(
            "Virtual seconds that clients spent on updates that arrived too late, never arrived, "
            "or were rejected.",
            groups,
            SPREAD,
        ),
        x=Axis("scheme"),
        y=Axis("wasted client-seconds"),
        panels=panels,
    )


def fairness_against_accuracy(groups: Groups) -> Chart:
    """Return dots of Jain's index against final accuracy.

    The success ratio takes the place of accuracy where nothing was trained.

    Args:
        groups: Schemes by kind of run. A kind with fewer than two schemes has no panel.
    """
    trained = any(
        scheme.accuracy is not None for schemes in groups.values() for scheme in schemes.values()
    )
    title = "Fairness against success"
    quantity = "success ratio"
    if trained:
        title = "Fairness against accuracy"
        quantity = "final accuracy"

    panels = {}
    for kind, schemes in groups.items():
        dots = []
        for name, scheme in schemes.items():
            dot = _fairness_dot(name, scheme, trained)
            if dot is not None:
                dots.append(dot)
        if len(dots) > 1:
            words = "; ".join(f"{dot.name} {dot.x:.3g} and {dot.y:.3g}" for dot in dots)
            panels[kind] = Panel(dots, f"Fairness (Jain's index) and {quantity}: {words}.")
    return Chart(
        id="fairness",
        title=title,
        caption=with_spread(
            "Jain's index of the times each client was asked (1 if all were asked equally often) "
            f"against {quantity}. Up and to the right is better.",
            groups,
            "Crosses are one standard deviation over seeds.",
        ),
        x=Axis("fairness (Jain's index)", column="Jain's index"),
        y=Axis(quantity),
        panels=panels,
    )


def _fairness_dot(name: str, scheme: SchemeResults, trained: bool) -> Dot | None:
    """Return the dot of a scheme, None where one of its two values is not known."""
    fairness = scheme.fairness
    gain = scheme.final_accuracy if trained else scheme.success
    if fairness is None or gain is None or np.isnan(gain).all():
        return None
    gain = gain[~np.isnan(gain)]
    return Dot(
        name,
        scheme_style(name),
        x=float(fairness.mean()),
        y=float(gain.mean()),
        sd_x=sd(fairness),
        sd_y=sd(gain),
    )
