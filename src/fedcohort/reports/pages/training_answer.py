"""The answer of runs that trained: which scheme to use, at what cost, and who is left out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.metrics import gap, worst
from fedcohort.reports.answer import BEST, HIGHEST, TIED, Answer, LeftOut, MarkedTable
from fedcohort.reports.candidates import Candidate, Cases, Difference, num_pairs
from fedcohort.reports.charts.cost import SECONDS, accuracy_against_cost, cost_unit
from fedcohort.reports.charts.groups import accuracy_per_class, class_labels
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.recommendation import (
    Recommendation,
    basis_sentences,
    recommend,
    recommendation_sentence,
)
from fedcohort.reports.words import counted, mean_with_sd, percent, signed, three_digits
from fedcohort.selection.registry import PAPER_SELECTORS
from fedcohort.statistics import mean_of_known

UNIFORM = "random"
PAPERS = tuple(name for name in PAPER_SELECTORS if name.startswith("e3cs"))


def training_answer(cases: Cases, class_rates: Sequence[float] = ()) -> Answer | None:
    """Return the answer of runs that trained, None if none of them has a final accuracy.

    Args:
        cases: Candidates by case, such as the partition of the data.
        class_rates: How often the clients of each class answer.
    """
    found = recommend(cases)
    if found is None:
        return None
    names = [one.name for one in found.highlighted]
    schemes = {one.name: one.scheme for one in found.ranked}
    selectors = list(dict.fromkeys(one.selector for one in found.highlighted))
    return Answer(
        sentence=recommendation_sentence(found),
        basis=basis_sentences(found),
        picture=accuracy_against_cost(found.case, schemes, names),
        table=_table(found, schemes),
        left_out=_left_out(found, class_rates),
        highlighted=selectors,
    )


def order_kinds(
    kinds: Mapping[str, Mapping[str, SchemeResults]], cases: Cases
) -> dict[str, Mapping[str, SchemeResults]]:
    """Return the kinds of run in the order that a reader should see them, the hardest first.

    Within the hardest case, the kind of the recommended scheme comes first.

    Args:
        kinds: Schemes by kind of run.
        cases: Candidates by case.
    """
    found = recommend(cases)
    if found is None:
        return dict(kinds)
    first = [found.chosen.kind]
    for case in sorted(found.case_accuracy, key=lambda name: _last_if_nan(found, name)):
        first += [one.kind for one in cases[case]]
    ordered = list(dict.fromkeys([*first, *kinds]))
    return {kind: kinds[kind] for kind in ordered}


def _last_if_nan(found: Recommendation, case: str) -> tuple[bool, bool, float]:
    accuracy = found.case_accuracy[case]
    return case != found.case, isnan(accuracy), accuracy


def _table(found: Recommendation, schemes: Mapping[str, SchemeResults]) -> MarkedTable:
    unit = cost_unit(schemes)
    rows = [_row(found, one, unit) for one in found.ranked]
    highest = found.ranked[0].name
    marks = {}
    for place, one in enumerate(found.ranked):
        if one.name == found.chosen.name:
            marks[place] = BEST
        elif one.name == highest:
            marks[place] = HIGHEST
        elif one.name in found.tied:
            marks[place] = TIED
    return MarkedTable(f"All schemes on {found.case}", rows, marks, _note(found))


def _row(found: Recommendation, one: Candidate, unit: str) -> dict[str, Any]:
    scheme = one.scheme
    final = scheme.final_accuracy
    assert final is not None
    row: dict[str, Any] = {"scheme": one.name, "final accuracy": mean_with_sd(final)}
    if found.uniform is not None:
        row["against uniform"] = _against(found.against_uniform.get(one.name))
    if scheme.class_accuracy is not None and scheme.class_accuracy.shape[1] > 1:
        row["worst class"] = three_digits(float(worst(scheme.class_means)))
        row["gap"] = _gap_in_points(scheme.class_means)
    row["success ratio"] = f"{scheme.success.mean():.3f}"
    if scheme.fairness is not None:
        row["Jain's index"] = f"{scheme.fairness.mean():.3f}"
    row["seconds" if unit == SECONDS else "asked"] = f"{_total_cost(scheme, unit):,.0f}"
    return row


def _against(difference: Difference | None) -> str:
    """Return a difference in points with its interval, a dash if there is none."""
    if difference is None or isnan(difference.mean):
        return "-"
    text = signed(100 * difference.mean)
    return f"{text} ({difference.interval})" if difference.interval else text


def _total_cost(scheme: SchemeResults, unit: str) -> float:
    """Return the cost of a whole run, mean over the seeds that have a final accuracy."""
    values = scheme.seconds if unit == SECONDS else scheme.asked
    if values is None or scheme.final_accuracy is None:
        return nan
    finished = ~np.isnan(scheme.final_accuracy)
    return float(np.nansum(values[finished], axis=1).mean())


def _note(found: Recommendation) -> str:
    """Say what the order, the marks and the columns mean."""
    sentences = ["Highest final accuracy first, which is that of the last round"]
    marks = "★ marks the highest" if found.uniform is None else "★ marks the recommended"
    if found.chosen is not found.ranked[0]:
        marks += ", which need not be the highest"
    seeds = [difference.seeds for difference in found.behind.values()]
    if seeds and max(seeds) > 1:
        marks += (
            ", ≈ those that cannot be told from the highest: paired differences over "
            f"{_range(seeds)}, two-sided Student's t at 5\u00a0% with the noise of all "
            f"schemes, corrected by Holm's method for {counted(num_pairs(len(seeds) + 1), 'pair')}"
        )
    sentences.append(marks)
    if seeds and max(seeds) < 2:
        sentences.append("One seed shows no spread, so nothing can be told from chance (≈)")
    if found.uniform is not None and found.against_uniform:
        sentences += _about_uniform(found.uniform.name, list(found.against_uniform.values()))
    return f"{'. '.join(sentences)}."


def _about_uniform(name: str, against: Sequence[Difference]) -> list[str]:
    """Say what the differences to uniform selection are, and when they recommend a scheme."""
    column = f"Against uniform: points of accuracy beyond {name}"
    if any(difference.interval for difference in against):
        column += (
            ", with a 95\u00a0% interval from the noise of all schemes, not corrected for their "
            "number"
        )
    rule = (
        "To be recommended, a scheme must be ahead of uniform after Holm's method for "
        f"{counted(len(against), 'comparison')}"
    )
    return [column, rule]


def _range(seeds: Sequence[int]) -> str:
    """Return how many seeds pairs share, if need be from the fewest to the most."""
    fewest = min(seeds)
    most = counted(max(seeds), "seed")
    return most if fewest == max(seeds) else f"{fewest} to {most}"


def _left_out(found: Recommendation, class_rates: Sequence[float]) -> LeftOut | None:
    """Return how the highlighted schemes serve each class of clients."""
    shown = []
    for one in found.highlighted:
        by_class = one.scheme.class_accuracy
        if by_class is not None and not np.isnan(by_class).all():
            shown.append(one)
    if len(class_rates) < 2 or not shown:
        return None
    labels = class_labels(class_rates)
    rows = []
    sentences = []
    for one in shown:
        means = one.scheme.class_means
        row: dict[str, Any] = {"scheme": one.name}
        for label, mean in zip(labels, means, strict=True):
            row[f"answers {label}"] = three_digits(mean)
        row["gap"] = _gap_in_points(means)
        if one.scheme.label_accuracy is not None:
            row["worst label"] = _worst_label(mean_of_known(one.scheme.label_accuracy))
        rows.append(row)
        if one.name == found.chosen.name:
            sentences.append(_worst_class(one.name, means, class_rates))
    chart = accuracy_per_class(
        {found.case: {one.name: one.scheme for one in found.ranked}},
        class_rates,
        highlighted=[one.name for one in found.highlighted],
    )
    note = (
        "Final accuracy on the test samples of the clients that answer so often. Gap: points "
        "between the best and the worst class. Chance makes a gap too: compare with uniform "
        "selection, not with zero."
    )
    table = MarkedTable("The same in numbers", rows, note=note)
    # The chart of all kinds of run has the id of this one, and is folded.
    picture = replace(chart, id="worst", title="Accuracy by class of clients", panels_by="case")
    return LeftOut(sentences=sentences, picture=picture, table=table)


def _worst_class(name: str, means: Floats, class_rates: Sequence[float]) -> str:
    place = int(np.nanargmin(means))
    return (
        f"Under {name}, clients that answer {percent(class_rates[place])} of the time are served "
        f"worst: {means[place]:.3f} accuracy, {_gap_in_points(means)} points behind the best class."
    )


def _worst_label(means: Floats) -> str:
    """Return the lowest accuracy of a label and which label it is, a dash if none is known."""
    if np.isnan(means).all():
        return "-"
    return f"{float(worst(means)):.3f} (label {np.nanargmin(means)})"


def _gap_in_points(means: Floats) -> str:
    """Return how far the worst class is behind the best, a dash if no class is known."""
    points = 100 * float(gap(means))
    return "-" if isnan(points) else f"{points:.1f}"
