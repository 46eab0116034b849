"""Figures a person would put in a paper: one colour per scheme everywhere, safe for the colour-blind, PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats, Ints
from fedcohort.files import atomic_write
from fedcohort.reports.palette import PALETTE, colour_of, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure
else:
    Figure = Any  # matplotlib is loaded when a figure is drawn, not before

P = ParamSpec("P")
STYLE: Any = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "fedcohort",
}
POINTS = 400  # per curve: more than a page can show, and the file stays small
STYLES = ("-", "--", "-.", ":")


def _styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw with this module's fonts and lines, whatever the user's settings are."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with _style():
            return draw(*args, **kwargs)

    return drawn


@contextmanager
def _style() -> Iterator[None]:
    from matplotlib import rc_context, rcdefaults

    with rc_context():
        rcdefaults()
        with rc_context(STYLE):
            yield


def available() -> bool:
    """Return whether matplotlib is installed: it comes with the extra `plots`."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def save_figures(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write every figure as PNG and SVG; return the paths."""
    paths = [folder / f"{name}.{kind}" for name in figures for kind in ("png", "svg")]
    for path in paths:
        with atomic_write(path) as draft, _style():
            figures[path.stem].savefig(
                draft, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None
            )
    return paths


@_styled
def selections_per_class(
    counts: Mapping[str, Ints], classes: Ints, rates: Sequence[float]
) -> Figure:
    """Draw box plots of the times each client was asked, one panel per scheme, one box per class, equal scales."""
    figure, panels = _grid(len(counts), 3, 2.3, 2.0)
    highest = max(int(times.max()) for times in counts.values())
    for panel, (name, times) in zip(panels, counts.items(), strict=True):
        boxes = panel.boxplot(
            [times[..., classes == c].ravel() for c in range(len(rates))],
            tick_labels=[f"{rate:g}" for rate in rates],
            widths=0.6,
            patch_artist=True,
            flierprops={"marker": ".", "markersize": 2, "alpha": 0.4, "markeredgecolor": "0.4"},
            medianprops={"color": "black", "linewidth": 1.2},
        )
        for box in boxes["boxes"]:
            box.set(facecolor=colour_of(name), alpha=0.75)
        panel.set_title(name)
        panel.set_ylim(-0.03 * highest, 1.05 * highest)
    figure.supxlabel("success rate of the class", fontsize=9)
    figure.supylabel("times asked", fontsize=9)
    return figure


@_styled
def over_rounds(panels: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> Figure:
    """Draw curves [S, T] over rounds, one panel per quantity: the mean over seeds and a band of one sd."""
    figure, axes = _grid(len(panels), 2, 3.6, 3.0)
    for panel, (quantity, curves) in zip(axes, panels.items(), strict=True):
        for name, values in curves.items():
            _band(panel, name, values)
        panel.set_title(quantity)
        panel.set_xlabel("round")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


@_styled
def regret_and_bounds(
    panels: Mapping[str, Mapping[str, Floats]], bounds: Mapping[str, Mapping[str, Floats]]
) -> Figure:
    """Draw regret [S, T] over rounds beside the curves [T] that should bound it, one panel per case."""
    figure, axes = _grid(len(panels), 3, 2.6, 2.5)
    for panel, (case, curves) in zip(axes, panels.items(), strict=True):
        for place, (name, values) in enumerate(curves.items()):
            _band(panel, name, values, PALETTE[place])
        for place, (name, values) in enumerate(bounds[case].items()):
            panel.plot(
                np.arange(1, values.size + 1),
                values,
                label=name,
                color="0.35",
                linestyle=STYLES[1 + place % 3],
                linewidth=1.0,
            )
        panel.set_title(case)
        panel.set_xlabel("round")
        panel.legend(fontsize=6)
    axes[0].set_ylabel("regret")
    return figure


@_styled
def accuracy_over_rounds(
    panels: Mapping[str, Mapping[str, Floats]],
    marks: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]] | None = None,
    columns: int = 2,
) -> Figure:
    """Draw test accuracy [S, T] over rounds, one panel per kind of run; rounds that were not evaluated are left out.

    marks: published points (round, accuracy) by panel and scheme, drawn as circles. Panels of a row have equal scales.
    """
    figure, axes = _grid(len(panels), columns, 3.6, 2.6, share="row")
    legend: dict[str, Any] = {}
    for panel, (title, curves) in zip(axes, panels.items(), strict=True):
        for name, values in curves.items():
            seen = ~np.isnan(values).all(axis=0)
            if seen.any():
                _band(panel, name, values[:, seen], rounds=np.flatnonzero(seen) + 1)
            for at in (marks or {}).get(title, {}).get(name, ()):
                panel.plot(
                    *at,
                    "o",
                    color=colour_of(name),
                    markersize=4,
                    markeredgecolor="black",
                    markeredgewidth=0.5,
                )
        panel.set_title(title)
        panel.set_xlabel("round")
        lines, names = panel.get_legend_handles_labels()
        legend |= dict(zip(names, lines, strict=True))
    for panel in axes[::columns]:
        panel.set_ylabel("test accuracy")
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=4)
    return figure


@_styled
def labels_per_client(counts: Ints) -> Figure:
    """Draw who owns what: the samples of each label [K, C] as stacked bars, one bar per client."""
    from matplotlib import colormaps

    figure, (panel,) = _grid(1, 1, 6.5, 2.6)
    bottom = np.zeros(len(counts))
    for label, column in enumerate(counts.T):
        panel.bar(
            np.arange(len(counts)),
            column,
            bottom=bottom,
            width=0.9,
            label=str(label),
            color=colormaps["turbo"]((label + 0.5) / counts.shape[1]),
        )
        bottom = bottom + column
    panel.set(xlabel="client", ylabel="samples", xlim=(-0.6, len(counts) - 0.4))
    panel.grid(visible=False)
    figure.legend(
        loc="outside right upper", title="label", fontsize=7, ncols=1 + counts.shape[1] // 14
    )
    return figure


def _band(
    panel: Axes,
    name: str,
    values: npt.NDArray[Any],
    colour: str | None = None,
    rounds: Ints | None = None,
) -> None:
    at = np.unique(np.linspace(0, values.shape[1] - 1, min(values.shape[1], POINTS)).astype(int))
    rounds, values = (at + 1 if rounds is None else rounds[at]), values[:, at]
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1) if len(values) > 1 else 0.0
    colour = colour or colour_of(name)
    panel.plot(
        rounds, mean, label=name, color=colour, linestyle=STYLES[style_of(name)], linewidth=1.3
    )
    panel.fill_between(rounds, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)


def _grid(
    count: int, columns: int, width: float, height: float, share: Literal["none", "row"] = "none"
) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels in rows of at most `columns`; share: "row" for equal scales along rows."""
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share).ravel())
    for panel in panels[count:]:
        panel.remove()
    return figure, panels[:count]
