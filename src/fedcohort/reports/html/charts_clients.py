"""The figures of a page that show clients: how often and how likely they were asked, what they own, what came of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.lab.recorder import Allocations
from fedcohort.reports.html.charts import Chart, series
from fedcohort.reports.html.findings import Findings
from fedcohort.reports.html.series import plain

ROWS = 120  # clients in a picture of single clients: of more, as many, evenly spread
FATES = {"arrived": 2, "stopped": 1, "rejected": 3, "failed": 4, "lost": 6}  # places in the palette


def selections_per_class(of: Findings) -> Chart | None:
    """Box plots of the times each client was asked, by class of success rate."""
    if of.classes is None:
        return None
    choices, summary = {}, {}
    for kind, schemes in of.kinds.items():
        boxes = [
            series(name, _boxes(scheme.counts, of.classes, of.rates))
            for name, scheme in schemes.items()
            if scheme.counts is not None
        ]
        if boxes:
            choices[kind] = boxes
            said = [
                f"{one['name']} {'/'.join(f'{m:.4g}' for m in one['data']['median'])}"
                for one in boxes
            ]
            rates = "/".join(f"{rate:g}" for rate in of.rates)
            summary[kind] = (
                f"Median times asked, by class of success rate {rates}: " + "; ".join(said) + "."
            )
    if not choices:
        return None
    caption = (
        "Times each client was asked, by the success rate of its class, all seeds pooled: the box holds the middle half, the "
        "line is the median, whiskers reach from the least to the most."
    )
    axes = {"x": "success rate of the class", "y": "times asked"}
    columns = {
        "x": "success rate",
        "low": "least",
        "q1": "q1",
        "median": "median",
        "q3": "q3",
        "high": "most",
    }
    return Chart("selections", "Who is asked", caption, "boxes", axes, columns, choices, summary)


def _boxes(counts: Ints, classes: Ints, rates: Any) -> dict[str, list[Any]]:
    of_class = np.array(
        [np.percentile(counts[:, classes == c], [0, 25, 50, 75, 100]) for c in range(len(rates))]
    )
    names = ("low", "q1", "median", "q3", "high")
    return {"x": [f"{rate:g}" for rate in rates]} | {
        name: plain(column) for name, column in zip(names, of_class.T, strict=True)
    }


def probabilities(of: Findings) -> Chart | None:
    """Heat map of the probability of being asked, client by round, and who was capped."""
    if not of.allocations:
        return None
    choices, summary = {}, {}
    for name, seen in of.allocations.items():
        choices[name], summary[name] = [_heat(name, seen, of.names)], _heat_words(name, seen)
    total = next(iter(of.allocations.values())).inclusion.shape[1]
    caption = (
        f"Probability of being asked, of every client, in some rounds{' of the first seed' if of.seeds else ''}; circles mark "
        "the capped set, clients whose weight is above the cap and who are asked for certain."
    )
    if of.classes is not None:
        caption += " Clients are ordered by class of success rate, the lowest first."
    if total > ROWS:
        caption += f" {ROWS} of {total:,} clients, evenly spread."
    axes, columns = (
        {"x": "round", "y": "client"},
        {"x": "round", "y": "client", "z": "probability", "capped": "capped"},
    )
    return Chart(
        "probabilities",
        "How likely each client was to be asked",
        caption,
        "heat",
        axes,
        columns,
        choices,
        summary,
        "scheme",
    )


def _heat(name: str, seen: Allocations, names: Any) -> dict[str, Any]:
    clients = _spread(seen.inclusion.shape[1])
    shown, capped = seen.inclusion[:, clients].T, seen.capped[:, clients].T
    labels = [names[client] for client in clients] if len(names) else clients.tolist()
    z = [[round(value, 3) for value in row] for row in shown.astype(np.float64).tolist()]
    return series(
        name,
        {
            "x": (seen.rounds + 1).tolist(),
            "y": labels,
            "z": z,
            "capped": [np.flatnonzero(row).tolist() for row in capped],
        },
    )


def _heat_words(name: str, seen: Allocations) -> str:
    last = seen.inclusion[-1]
    capped = int(seen.capped[-1].sum())
    return (
        f"{name}: from between {seen.inclusion[0].min():.2g} and {seen.inclusion[0].max():.2g} in the first round to between "
        f"{last.min():.2g} and {last.max():.2g} in round {seen.rounds[-1] + 1}; {capped} of {last.size} are capped then."
    )


def owners(of: Findings) -> Chart | None:
    """Stacked bars of the samples of each label that each client owns, by partition."""
    if not of.owners:
        return None
    choices, summary = {}, {}
    for partition, counts in of.owners.items():
        clients = _spread(len(counts))
        choices[partition] = [
            {
                "name": f"label {label}",
                "shade": label / max(1, counts.shape[1] - 1),
                "data": {"x": clients.tolist(), "y": plain(column)},
            }
            for label, column in enumerate(counts[clients].T)
        ]
        share = counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)
        summary[partition] = (
            f"{partition}: {len(counts)} clients own {counts.sum(axis=1).min()} to {counts.sum(axis=1).max()} samples; "
            f"the most frequent label makes up {np.median(share):.0%} of a client's samples in the median."
        )
    caption = "Training samples of each label that each client owns, first seed."
    if (total := len(next(iter(of.owners.values())))) > ROWS:
        caption += f" {ROWS} of {total:,} clients, evenly spread."
    axes, columns = {"x": "client", "y": "samples"}, {"x": "client", "y": "samples"}
    return Chart(
        "owners",
        "Who owns which labels",
        caption,
        "stack",
        axes,
        columns,
        choices,
        summary,
        "partition",
    )


def fates(of: Findings) -> Chart | None:
    """Stacked bars of what came of asking each client."""
    if not of.fates:
        return None
    names = list(of.fates)
    words = list(dict.fromkeys([*FATES, *(word for came in of.fates.values() for word in came)]))
    shown = [
        _fate(word, names, of.fates)
        for word in words
        if any(word in came for came in of.fates.values())
    ]
    totals = {one["name"]: sum(one["data"]["y"]) for one in shown}
    summary = (
        f"{len(names)} clients; in all: "
        + ", ".join(f"{word} {total}" for word, total in totals.items())
        + "."
    )
    caption = (
        "How often each client was asked and what came of it: arrived; stopped at the deadline; rejected as not sound; "
        "failed by its own word; lost, when nothing was heard of it."
    )
    axes, columns = {"x": "client", "y": "times asked"}, {"x": "client", "y": "times"}
    return Chart(
        "fates",
        "Who was asked and what came of it",
        caption,
        "stack",
        axes,
        columns,
        {"all": shown},
        {"all": summary},
        "all",
    )


def _fate(word: str, names: list[str], came: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    place = FATES.get(word, 7)
    return {
        "name": word,
        "colour": place,
        "dash": 0,
        "data": {"x": names, "y": [came[name].get(word, 0) for name in names]},
    }


def _spread(count: int) -> Ints:
    """Return the clients that a picture has room for, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, ROWS)).astype(np.int64))
