"""The answer of a simulation: who gets the most answers, and at what price in fairness."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.reports.answer import BEST, TIED, Answer, LeftOut, MarkedTable
from fedcohort.reports.candidates import (
    LEVEL,
    Difference,
    differences_from_first,
    known_by_seed,
    num_pairs,
)
from fedcohort.reports.charts.tradeoffs import fairness_against_accuracy
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.words import counted, mean_with_sd, percent

NOT_TRAINED = "nothing was trained, so accuracy is not known"
NO_SPREAD = "one seed shows no spread"


def simulation_answer(schemes: Mapping[str, SchemeResults], uniform: str) -> Answer:
    """Return the answer of runs that trained nothing.

    Args:
        schemes: Schemes by name, at least one.
        uniform: Name of uniform selection, empty if it was not played.
    """
    order = sorted(schemes, key=lambda name: -float(schemes[name].success.mean()))
    best = order[0]
    behind = _behind(schemes, order)
    highlighted = [best]
    if uniform in behind:
        highlighted.append(uniform)
    picture = fairness_against_accuracy({"selection only": schemes})
    return Answer(
        sentence=_sentence(schemes, order, behind, uniform),
        picture=replace(picture, id="answer", panels_by="all", highlighted=highlighted),
        table=_table(schemes, order, behind),
        left_out=_left_out({name: schemes[name] for name in highlighted}),
        highlighted=highlighted,
    )


def _behind(schemes: Mapping[str, SchemeResults], order: Sequence[str]) -> dict[str, Difference]:
    """Return how far the first is ahead of each of the others in its success ratio, by name."""
    success = {name: known_by_seed(schemes[name], schemes[name].success) for name in order}
    return differences_from_first(order[0], success)


def _sentence(
    schemes: Mapping[str, SchemeResults],
    order: Sequence[str],
    behind: Mapping[str, Difference],
    uniform: str,
) -> str:
    """Say who gets the most answers, how that compares with uniform selection, and how fair."""
    best, *others = order
    share = percent(schemes[best].success.mean())
    if others and all(difference.mean == 0 for difference in behind.values()):
        return f"Every scheme gets {share} of the answers asked for; {NOT_TRAINED}."

    text = f"{best} gets {share} of the answers asked for"
    if others:
        text = f"{best} gets the most answers, {share} of those asked for"
    if uniform in behind:
        text += f" against {percent(schemes[uniform].success.mean())} with uniform selection"
    fairness = schemes[best].fairness
    if fairness is not None:
        text += f", with a Jain's index of {fairness.mean():.2f}"
    if not others:
        return f"{text}; {NOT_TRAINED}."

    lead = behind[uniform if uniform in behind else others[0]]
    if lead.seeds < 2:
        return f"{text}; {NO_SPREAD}, and {NOT_TRAINED}."
    if lead.p_value >= LEVEL:
        seeds = counted(lead.seeds, "seed")
        return f"{text}; {seeds} cannot tell that lead from chance, and {NOT_TRAINED}."
    return f"{text}; {NOT_TRAINED}."


def _table(
    schemes: Mapping[str, SchemeResults], order: Sequence[str], behind: Mapping[str, Difference]
) -> MarkedTable:
    rows = []
    marks = {0: BEST}
    for place, name in enumerate(order):
        scheme = schemes[name]
        row = {"scheme": name, "success ratio": mean_with_sd(scheme.success)}
        if scheme.fairness is not None:
            row["Jain's index"] = mean_with_sd(scheme.fairness)
        row["CEP"] = f"{scheme.participation[:, -1].mean():,.0f}"
        rows.append(row)
        if place > 0 and behind[name].seeds > 1 and behind[name].p_value >= LEVEL:
            marks[place] = TIED
    return MarkedTable("All schemes", rows, marks, _note(len(schemes[order[0]].seeds), behind))


def _note(num_seeds: int, behind: Mapping[str, Difference]) -> str:
    """Say what the order and the marks mean."""
    if num_seeds == 1:
        return f"Most answers first. ★ marks the most answers; {NO_SPREAD}."
    note = (
        "Most answers first. Means over seeds, ± one standard deviation. ★ marks the most answers"
    )
    if behind:
        note += (
            f", ≈ those that cannot be told from it: paired differences over {num_seeds} seeds, "
            "two-sided Student's t at 5\u00a0% with the noise of all schemes, corrected by "
            f"Holm's method for {counted(num_pairs(len(behind) + 1), 'pair')}"
        )
    return f"{note}."


def _left_out(schemes: Mapping[str, SchemeResults]) -> LeftOut | None:
    """Say how many clients were never asked, and how little the half got that was asked least."""
    sentences = []
    for name, scheme in schemes.items():
        if scheme.counts is not None and scheme.counts.any():
            sentences.append(f"{name} {_least_asked(scheme.counts)}")
    return LeftOut(sentences=sentences) if sentences else None


def _least_asked(counts: Ints) -> str:
    """Return the same of the times [S, K] that clients were asked, without its subject."""
    in_order = np.sort(counts, axis=1)
    half = in_order[:, : counts.shape[1] // 2].sum() / counts.sum()
    text = "asked every client"
    if not counts.all():
        text = f"never asked {percent(float((counts == 0).mean()))} of the clients"
    return f"{text}; the half that it asked least got {percent(float(half))} of its requests."
