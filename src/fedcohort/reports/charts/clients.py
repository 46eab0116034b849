"""Charts of single clients: how often they were asked, how likely, with what result."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.lab.recorder import Allocations
from fedcohort.reports.charts.groups import number_equal
from fedcohort.reports.charts.seeds import evenly_spread
from fedcohort.reports.charts.specification import (
    Axis,
    Boxes,
    Chart,
    HeatMap,
    Layout,
    Panel,
    Stack,
)
from fedcohort.reports.palette import Style, scheme_style
from fedcohort.reports.words import percent

MAX_CLIENTS = 120  # drawn one by one on a page
MAX_BARS = 600  # of the chart of outcomes: more would be thinner than a pixel

# Colours of the outcomes that we know. Others share one colour.
OUTCOME_STYLES = {
    "arrived": Style(2),
    "stopped": Style(1),
    "rejected": Style(3),
    "failed": Style(4),
    "lost": Style(6),
}
OTHER_OUTCOME = Style(7)


def selections_per_class(
    counts: Mapping[str, Mapping[str, Ints]], classes: Ints, rates: Sequence[float]
) -> Chart:
    """Return box plots of how often the clients of each class were asked.

    Args:
        counts: Times that each client was asked [S, K], by kind of run and scheme.
        classes: [K] class of each client.
        rates: Success rate of each class.
    """
    labels = number_equal([f"{rate:.3g}" for rate in rates])
    panels = {}
    for kind, schemes in counts.items():
        series = []
        medians = []
        for name, times in schemes.items():
            by_class = [times[..., classes == index].ravel() for index in range(len(rates))]
            series.append(Boxes(name, scheme_style(name), labels, by_class))
            middle = "/".join(f"{np.median(values):.4g}" for values in by_class)
            medians.append(f"{name} {middle}")
        if series:
            words = (
                f"Median times asked, by class of success rate {'/'.join(labels)}: "
                f"{'; '.join(medians)}."
            )
            panels[kind] = Panel(series, words)
    return Chart(
        id="selections",
        title="Who is asked",
        caption=(
            "Times each client was asked, by the success rate of its class, all seeds pooled. "
            "The box holds the middle half, the line is the median, and the whiskers reach from "
            "the least to the most."
        ),
        x=Axis("success rate of the class", column="success rate"),
        y=Axis("times asked"),
        panels=panels,
        layout=Layout(columns=3, width=2.3, height=2.0),
    )


def inclusion_probabilities(
    allocations: Mapping[str, Allocations],
    client_names: Sequence[str] = (),
    *,
    ordered_by_class: bool = False,
    is_first_seed: bool = False,
) -> Chart:
    """Return heat maps of the probability of being asked, client by round.

    Args:
        allocations: Recorded probabilities by scheme.
        client_names: Names of the clients. Their numbers are shown unless given.
        ordered_by_class: Whether clients of one class stand together.
        is_first_seed: Whether the caption says that these are the first seed's.
    """
    panels = {}
    num_clients = 0
    for name, recorded in allocations.items():
        num_clients = recorded.inclusion.shape[1]
        clients = evenly_spread(num_clients, MAX_CLIENTS)
        labels: list[str] | list[int] = clients.tolist()
        if client_names:
            labels = [client_names[client] for client in clients]
        heat_map = HeatMap(
            name,
            rounds=recorded.rounds + 1,
            clients=labels,
            probabilities=recorded.inclusion[:, clients].T,
            marked=recorded.capped[:, clients].T,
        )
        panels[name] = Panel([heat_map], _range_of_probabilities(name, recorded))

    seed = " of the first seed" if is_first_seed else ""
    caption = (
        f"Probability of being asked, for every client, in some rounds{seed}. Marks are the "
        "capped set: clients whose weight is above the cap, so that they are certain to be asked."
    )
    if ordered_by_class:
        caption += " Clients are ordered by class, in the order of the rates in the settings."
    return Chart(
        id="probabilities",
        title="How likely each client was to be asked",
        caption=caption + _left_out(num_clients, MAX_CLIENTS),
        x=Axis("round"),
        y=Axis("client"),
        panels=panels,
        panels_by="scheme",
    )


def labels_per_client(owners: Mapping[str, Ints], *, max_clients: int | None = None) -> Chart:
    """Return stacked bars of the samples of each label that each client owns.

    Args:
        owners: Number of samples [K, C] of each client and label, by partition.
        max_clients: Draw at most so many clients, evenly spread. All of them unless given.
    """
    panels = {}
    num_clients = 0
    for partition, counts in owners.items():
        num_clients = len(counts)
        clients = evenly_spread(num_clients, max_clients or num_clients)
        layers = []
        for label, samples in enumerate(counts[clients].T):
            layers.append(Stack(str(label), clients.tolist(), samples))
        panels[partition] = Panel(layers, _samples_in_words(partition, counts))
    return Chart(
        id="owners",
        title="Who owns which labels",
        caption=(
            "Training samples of each label that each client owns, first seed."
            + _left_out(num_clients, max_clients or num_clients)
        ),
        x=Axis("client"),
        y=Axis("samples"),
        panels=panels,
        panels_by="partition",
        legend="label",
        layout=Layout(columns=1, width=6.5),
    )


def outcomes_per_client(outcomes: Mapping[str, Mapping[str, int]]) -> Chart:
    """Return stacked bars of what came of asking each client.

    Args:
        outcomes: Number of times for each outcome, by client and outcome.
    """
    names = list(outcomes)
    clients = [names[place] for place in evenly_spread(len(names), MAX_BARS)]
    totals: dict[str, int] = dict.fromkeys(OUTCOME_STYLES, 0)
    for times in outcomes.values():
        for outcome, count in times.items():
            totals[outcome] = totals.get(outcome, 0) + count

    layers = []
    words = []
    for outcome, total in totals.items():
        if not any(outcome in times for times in outcomes.values()):
            continue
        heights = np.array([outcomes[client].get(outcome, 0) for client in clients])
        style = OUTCOME_STYLES.get(outcome, OTHER_OUTCOME)
        layers.append(Stack(outcome, clients, heights, style))
        words.append(f"{outcome} {total}")

    panels = {}
    if layers:
        panels["all"] = Panel(layers, f"{len(names)} clients, in all: {', '.join(words)}.")
    return Chart(
        id="fates",
        title="Who was asked and what came of it",
        caption=(
            "How often each client was asked, and the outcome. Arrived: its update was used. "
            "Stopped: it was still at work at the deadline. Rejected: its update was not valid. "
            "Failed: it reported an error. Lost: it did not answer."
            + _left_out(len(names), MAX_BARS)
        ),
        x=Axis("client"),
        y=Axis("times asked", column="times"),
        panels=panels,
        panels_by="all",
        layout=Layout(columns=1, width=6.5),
    )


def _range_of_probabilities(name: str, recorded: Allocations) -> str:
    first = recorded.inclusion[0]
    last = recorded.inclusion[-1]
    last_round = recorded.rounds[-1] + 1
    capped = int(recorded.capped[-1].sum())
    return (
        f"{name}: between {first.min():.2g} and {first.max():.2g} in the first round, between "
        f"{last.min():.2g} and {last.max():.2g} in round {last_round}, when {capped} of "
        f"{last.size} clients are capped."
    )


def _samples_in_words(partition: str, counts: Ints) -> str:
    samples = counts.sum(axis=1)
    share = counts.max(axis=1) / np.maximum(samples, 1)
    return (
        f"{partition}: {len(counts)} clients own {samples.min()} to {samples.max()} samples. For "
        f"the median client, {percent(float(np.median(share)))} of them have its most "
        "frequent label."
    )


def _left_out(count: int, limit: int) -> str:
    """Say how many clients are drawn, if it is not all of them."""
    if count <= limit:
        return ""
    return f" {limit} of {count:,} clients, evenly spread."
