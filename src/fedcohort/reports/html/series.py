"""Curves fit for a page: few points, few digits, mean and spread over seeds."""

from typing import Any

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.reports.html.findings import Scheme

POINTS = 150  # per curve: about what a screen can show apart
DIGITS = 5


def plain(values: Any, digits: int = DIGITS) -> list[Any]:
    """Return numbers with few digits, as JSON takes them: None where there is none."""
    return [_plain(value, digits) for value in np.asarray(values).tolist()]


def _plain(value: Any, digits: int) -> Any:
    if not isinstance(value, float):
        return value
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short == int(short) else short


def thinned(rounds: Ints) -> Ints:
    """Return at most so many of the rounds, evenly spread, the first and the last among them."""
    return np.asarray(
        rounds[np.unique(np.linspace(0, len(rounds) - 1, min(len(rounds), POINTS)).astype(int))]
    )


def over_seeds(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation [n] over the seeds [S, n] that have a value; a spread needs two of them."""
    have = (~np.isnan(values)).sum(axis=0)
    filled = np.where(np.isnan(values), 0.0, values)
    mean = np.divide(filled.sum(axis=0), have, out=np.full(have.shape, np.nan), where=have > 0)
    off = np.where(np.isnan(values), 0.0, values - mean) ** 2
    return mean, np.sqrt(
        np.divide(off.sum(axis=0), have - 1, out=np.full(have.shape, np.nan), where=have > 1)
    )


def curve(values: Floats) -> dict[str, list[Any]]:
    """Return a curve [S, T] over rounds, thinned: of the seeds that came the furthest, so that a mean keeps its company."""
    known = ~np.isnan(values)
    last = np.where(known.any(axis=1), values.shape[1] - np.argmax(known[:, ::-1], axis=1), 0)
    values = values[last == last.max()]
    rounds = thinned(np.flatnonzero(~np.isnan(values).all(axis=0)))
    mean, spread = over_seeds(values[:, rounds])
    return {"x": plain(rounds + 1), "y": plain(mean), "sd": plain(spread, 4)}


def over_time(scheme: Scheme) -> dict[str, list[Any]]:
    """Return accuracy over seconds: at each moment the last one tested, until the first seed has no more rounds."""
    accuracy, seconds = scheme.accuracy, scheme.seconds
    if accuracy is None or seconds is None:
        return {"x": [], "y": [], "sd": []}
    tested = [
        (np.cumsum(took)[~np.isnan(run)], run[~np.isnan(run)])
        for run, took in zip(accuracy, seconds, strict=True)
    ]
    if any(len(at) == 0 for at, _ in tested):
        return {"x": [], "y": [], "sd": []}
    first, last = max(at[0] for at, _ in tested), min(at[-1] for at, _ in tested)
    moments = np.linspace(first, max(first, last), min(POINTS, accuracy.shape[1]))
    known = np.stack(
        [
            run[np.maximum(np.searchsorted(at, moments * (1 + 1e-12), side="right") - 1, 0)]
            for at, run in tested
        ]
    )
    mean, spread = over_seeds(known)
    return {"x": plain(moments), "y": plain(mean), "sd": plain(spread, 4)}


def in_words(values: Floats, digits: int = 3) -> str:
    """Return mean ± standard deviation of one value per seed; the mean alone for one seed."""
    known = values[~np.isnan(values)]
    if not known.size:
        return "-"
    return f"{known.mean():.{digits}f}" + (
        f" ± {known.std(ddof=1):.{digits}f}" if known.size > 1 else ""
    )
