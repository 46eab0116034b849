"""The picture of a Flower run: how many answers were asked for and how many arrived."""

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.charts.specification import Axis, Chart, Line, Panel
from fedcohort.reports.palette import NEUTRAL, Style

MAX_WINDOWS = 40  # points of a curve: longer runs are averaged over several rounds


def arrivals_over_rounds(rounds: Floats, asked: Floats, arrived: Floats) -> Chart:
    """Return the chart of answers asked for and arrived, over rounds.

    Args:
        rounds: [T] numbers of the rounds.
        asked: [T] answers asked for.
        arrived: [T] answers that were used.
    """
    window = -(-len(rounds) // MAX_WINDOWS)
    x = _means(rounds, window)
    lines = [
        Line("arrived", Style(2), x, _means(arrived, window)),
        Line("asked", Style(NEUTRAL), x, _means(asked, window)),
    ]
    words = f"On average {arrived.mean():.1f} of {asked.mean():.1f} answers asked for arrived."
    caption = "Answers asked for and answers used in each round."
    if window > 1:
        caption += f" Points are means over {window} rounds."
    return Chart(
        id="arrivals",
        title="Answers per round",
        caption=caption,
        x=Axis("round"),
        y=Axis("answers per round", column="answers", from_zero=True),
        panels={"all": Panel(lines, words)},
        panels_by="all",
        highlighted=("arrived", "asked"),
    )


def _means(values: Floats, window: int) -> Floats:
    """Return the means of so many neighbours; the last one may have fewer."""
    starts = np.arange(0, len(values), window)
    counts = np.diff(np.append(starts, len(values)))
    return np.asarray(np.add.reduceat(values.astype(np.float64), starts) / counts)
