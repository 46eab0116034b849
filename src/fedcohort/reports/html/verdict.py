"""What a run found, in sentences: which scheme was first, which was best, at what cost.

A sentence says when the seeds do not allow a conclusion.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.metrics import gap
from fedcohort.reports.candidates import known_by_seed, paired_differences
from fedcohort.reports.findings import Findings, SchemeResults
from fedcohort.reports.html.seed_values import (
    ByScheme,
    all_equal,
    by_scheme,
    compare,
    highest_first,
    in_words,
    seed_mean,
    told_apart,
)
from fedcohort.reports.words import exact_percent, listed, percent
from fedcohort.statistics import BySeed, mean_of_known

FAIRNESS = "Fairness (Jain's index, 1 if all clients are asked equally often)"


def verdict(findings: Findings) -> tuple[list[str], dict[str, list[str]]]:
    """Return what was found.

    Args:
        findings: The schemes and the targets, by kind of run.

    Returns:
        The sentences that are true of every kind of run, if there are several kinds. Then the
        other sentences, by kind of run.
    """
    by_kind = {}
    for kind, schemes in findings.kinds.items():
        targets = sorted(findings.targets.get(kind, ()))
        by_kind[kind] = describe_schemes(schemes, targets, findings.class_rates)

    shared: list[str] = []
    if len(by_kind) > 1:
        first, *others = by_kind.values()
        for sentence in first:
            if all(sentence in other for other in others):
                shared.append(sentence)

    own = {}
    for kind, sentences in by_kind.items():
        remaining = [sentence for sentence in sentences if sentence not in shared]
        if remaining:
            own[kind] = remaining
    return shared, own


def left_out(findings: Findings) -> list[str]:
    """Return who is left out: a sentence for each kind of run that recorded it.

    Args:
        findings: The schemes by kind of run, and the classes of clients.
    """
    sentences = []
    for kind, schemes in findings.kinds.items():
        sentence = _left_out(schemes, findings.class_rates)
        if sentence:
            sentences.append(f"{kind}: {sentence}" if len(findings.kinds) > 1 else sentence)
    return sentences


def describe_schemes(
    schemes: Mapping[str, SchemeResults],
    targets: Sequence[float] = (),
    class_rates: Sequence[float] = (),
) -> list[str]:
    """Return what can be said about the schemes of one kind of run.

    Args:
        schemes: Schemes by name.
        targets: Accuracies to reach, the lowest first.
        class_rates: How often the clients of each class answer.
    """
    sentences = []
    final_accuracy = by_scheme(schemes, lambda scheme: scheme.final_accuracy)
    if final_accuracy:
        sentences += [_first_at_target(schemes, targets), _highest_accuracy(final_accuracy)]
    sentences.append(_left_out(schemes, class_rates))
    sentences.append(_success(by_scheme(schemes, lambda scheme: scheme.success)))
    fairness = by_scheme(schemes, lambda scheme: scheme.fairness)
    if fairness:
        sentences.append(_fairness(fairness))
    return [sentence for sentence in sentences if sentence]


def _first_at_target(schemes: Mapping[str, SchemeResults], targets: Sequence[float]) -> str:
    """Say which scheme was first at the highest target that a scheme reached in all its runs."""
    if not targets:
        return ""
    for target in reversed(targets):
        reached = _rounds_to_target(schemes, target)
        if reached:
            break
    else:
        return f"No scheme reached {exact_percent(targets[0])} accuracy in every run."

    order = sorted(reached, key=lambda name: seed_mean(reached[name]))
    best = order[0]
    winners = [name for name in order if reached[name] == reached[best]]
    followers = [name for name in order if name not in winners]
    failed = []
    for name, scheme in schemes.items():
        if scheme.accuracy is not None and name not in reached:
            failed.append(name)

    rounds = in_words(reached[best], digits=1)
    who = listed(winners)
    if len(winners) > 1:
        who += ", equal in every run,"
    text = f"{who} reached {exact_percent(target)} accuracy"
    if len(schemes) == 1:
        return f"{text} after {rounds} rounds."
    text += f" first, after {rounds} rounds."
    if followers:
        later = reached[followers[0]]
        rounds = in_words(later, digits=1)
        apart = told_apart(best, {name: reached[name] for name in (best, *followers)})
        comparison = compare(later, reached[best], followers[0] in apart)
        text += f" {followers[0]} was next, after {rounds} rounds ({comparison})."
    if failed:
        text += f" Not every run of {listed(failed)} reached it."
    return text


def _rounds_to_target(schemes: Mapping[str, SchemeResults], target: float) -> dict[str, BySeed]:
    """Return the rounds to a target, for the schemes that reached it in all their runs."""
    rounds = by_scheme(schemes, lambda scheme: scheme.rounds_to(target))
    reached = {}
    for name, by_seed in rounds.items():
        if len(by_seed) == len(schemes[name].seeds):
            reached[name] = by_seed
    return reached


def _highest_accuracy(final_accuracy: ByScheme) -> str:
    best, *others = highest_first(final_accuracy)
    highest = final_accuracy[best]
    if others and all_equal(final_accuracy):
        return f"Every scheme ends at the same accuracy, {in_words(highest)}."

    if not others:
        return f"The final accuracy of {best} is {in_words(highest)}."

    text = f"{best} has the highest final accuracy, {in_words(highest)}."
    second = final_accuracy[others[0]]
    apart = told_apart(best, final_accuracy)
    comparison = compare(highest, second, others[0] in apart)
    text += f" {others[0]} follows with {in_words(second)} ({comparison})."
    if others[0] not in apart:
        also_close = []
        for name in others[1:]:
            several_seeds = len(paired_differences(highest, final_accuracy[name])) > 1
            if several_seeds and name not in apart:
                also_close.append(name)
        if also_close:
            text += f" The seeds cannot tell {best} from {listed(also_close, 'or')} either."
    return text


def _left_out(schemes: Mapping[str, SchemeResults], class_rates: Sequence[float]) -> str:
    """Say which class of clients and which label are served worst, and under which scheme."""
    sentences = []
    if len(class_rates) > 1:
        names = [f"clients that answer {percent(rate)} of the time" for rate in class_rates]
        accuracies = {name: scheme.class_accuracy for name, scheme in schemes.items()}
        sentences.append(_worst_served(schemes, accuracies, "class", names))
    accuracies = {name: scheme.label_accuracy for name, scheme in schemes.items()}
    sentences.append(_worst_served(schemes, accuracies, "label"))
    return " ".join(sentence for sentence in sentences if sentence)


def _worst_served(
    schemes: Mapping[str, SchemeResults],
    accuracies: Mapping[str, Floats | None],
    part: str,
    names: Sequence[str] | None = None,
) -> str:
    """Say which part is served worst; the worst of a scheme has the lowest mean over seeds.

    Args:
        schemes: The schemes by name.
        accuracies: Accuracy of each seed and part [S, parts] by scheme; None if not recorded.
        part: What a part is called: "class" or "label".
        names: Names of the parts; by default their numbers.
    """
    place: dict[str, int] = {}
    means: dict[str, Floats] = {}
    lowest_by_seed: dict[str, BySeed] = {}
    for name, accuracy in accuracies.items():
        if accuracy is None or np.isnan(accuracy).all():
            continue
        means[name] = mean_of_known(accuracy)
        place[name] = int(np.nanargmin(means[name]))
        lowest_by_seed[name] = known_by_seed(schemes[name], accuracy[:, place[name]])
    if not lowest_by_seed:
        return ""

    *others, lowest = highest_first(lowest_by_seed)
    points = 100 * float(gap(means[lowest]))
    which = str(place[lowest]) if names is None else names[place[lowest]]
    text = (
        f"{lowest} leaves its worst {part}, {which}, at {in_words(lowest_by_seed[lowest])} "
        f"accuracy, {points:.1f} points behind its best {part}."
    )
    if not others:
        return text
    other = "random" if "random" in others else others[0]
    apart = told_apart(lowest, lowest_by_seed)
    comparison = compare(lowest_by_seed[other], lowest_by_seed[lowest], other in apart)
    accuracy_in_words = in_words(lowest_by_seed[other])
    return f"{text} The worst {part} of {other} is at {accuracy_in_words} ({comparison})."


def _success(success: ByScheme) -> str:
    best, *others = highest_first(success)
    highest = in_words(success[best])
    if not others:
        return f"The success ratio of {best} is {highest}."
    if all_equal(success):
        return f"The success ratio is the same under every scheme: {highest}."

    text = f"{best} has the highest success ratio, {highest}."
    if "random" in others:
        return f"{text} Random selection has {in_words(success['random'])}."
    return f"{text} {others[-1]} has the lowest, {in_words(success[others[-1]])}."


def _fairness(fairness: ByScheme) -> str:
    best, *others = highest_first(fairness)
    highest = in_words(fairness[best])
    if not others:
        return f"{FAIRNESS} is {highest}."
    if all_equal(fairness):
        return f"{FAIRNESS} is the same under every scheme: {highest}."
    worst = others[-1]
    lowest = in_words(fairness[worst])
    return f"{FAIRNESS} is highest under {best}, {highest}, and lowest under {worst}, {lowest}."
