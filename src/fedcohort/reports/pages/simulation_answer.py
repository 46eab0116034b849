"""The answer of a simulation: who gets the most answers, and at what price in fairness."""

from collections.abc import Mapping
from dataclasses import replace

from fedcohort.reports.answer import BEST, Answer, MarkedTable
from fedcohort.reports.charts.tradeoffs import fairness_against_accuracy
from fedcohort.reports.findings import Scheme
from fedcohort.reports.words import mean_with_sd, percent


def simulation_answer(schemes: Mapping[str, Scheme], uniform: str) -> Answer:
    """Return the answer of runs that trained nothing.

    Args:
        schemes: Schemes by name, at least one.
        uniform: Name of uniform selection, empty if it was not played.
    """
    order = sorted(schemes, key=lambda name: -float(schemes[name].success.mean()))
    best = order[0]
    sentence = (
        f"{best} gets the most answers, {percent(schemes[best].success.mean())} of those asked for"
    )
    if uniform in schemes and uniform != best:
        sentence += f" against {percent(schemes[uniform].success.mean())} with uniform selection"
    fairness = schemes[best].fairness
    if fairness is not None:
        sentence += f", with a Jain's index of {fairness.mean():.2f}"
    rows = []
    for name in order:
        scheme = schemes[name]
        row = {"scheme": name, "success ratio": mean_with_sd(scheme.success)}
        if scheme.fairness is not None:
            row["Jain's index"] = mean_with_sd(scheme.fairness)
        row["CEP"] = f"{scheme.participation[:, -1].mean():,.0f}"
        rows.append(row)
    highlighted = list(dict.fromkeys([best, *([uniform] if uniform in schemes else [])]))
    picture = fairness_against_accuracy({"selection only": schemes})
    note = (
        "Most answers first. Means over seeds, ± one standard deviation. ★ marks the most answers."
    )
    return Answer(
        sentence=f"{sentence}; nothing was trained, so accuracy is not known.",
        picture=replace(picture, id="answer", panels_by="all", highlighted=highlighted),
        table=MarkedTable("All schemes", rows, {0: BEST}, note),
        highlighted=highlighted,
    )
