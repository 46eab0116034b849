"""What a run found, in words: who got there first, who got furthest, what it cost; and whether the seeds allow saying so."""

from collections.abc import Mapping, Sequence
from math import isnan

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.html.findings import Findings, Scheme
from fedcohort.reports.html.series import in_words
from fedcohort.statistics import estimate

Values = Mapping[str, Floats]  # by scheme, one per seed, the same seeds in the same order


def verdict(of: Findings) -> tuple[list[str], dict[str, list[str]]]:
    """Return the sentences that are the same for all of several kinds of run, and those of each kind."""
    said = {kind: about(schemes, sorted(of.targets)) for kind, schemes in of.kinds.items()}
    first, *others = said.values() if len(said) > 1 else [[]]
    shared = [sentence for sentence in first if all(sentence in other for other in others)]
    own = {kind: [sentence for sentence in sentences if sentence not in shared] for kind, sentences in said.items()}
    return shared, {kind: sentences for kind, sentences in own.items() if sentences}


def about(schemes: Mapping[str, Scheme], targets: Sequence[float] = ()) -> list[str]:
    """Return what can be said of the schemes of one kind of run; of a single one, what it came to."""
    said = []
    finals = _known({name: scheme.final for name, scheme in schemes.items()})
    if finals:
        said += [_first(schemes, targets), _furthest(finals)]
    said.append(_success({name: scheme.success for name, scheme in schemes.items()}))
    fair = _known({name: scheme.fairness for name, scheme in schemes.items()})
    if fair:
        said.append(_fairness(fair))
    return [sentence for sentence in said if sentence]


def _known(values: Mapping[str, Floats | None]) -> dict[str, Floats]:
    return {name: value for name, value in values.items() if value is not None and not np.isnan(value).any()}


def _first(schemes: Mapping[str, Scheme], targets: Sequence[float]) -> str:
    """Say who reached the highest target that any scheme reached in all seeds, and who was next."""
    for target in reversed(targets):
        rounds = {name: scheme.rounds_to(target) for name, scheme in schemes.items()}
        reached = _known(rounds)
        if reached:
            never = [name for name in rounds if name not in reached]
            order = sorted(reached, key=lambda name: float(reached[name].mean()))
            alike = [name for name in order if np.array_equal(reached[name], reached[order[0]])]
            best, rest = order[0], [name for name in order if name not in alike]
            who = f"{', '.join(alike[:-1])} and {alike[-1]}, alike in every run," if len(alike) > 1 else best
            text = f"{who} reached {target:.0%} accuracy first, after {in_words(reached[best], 1)} rounds"
            if rest:
                later = reached[rest[0]]
                text += f"; next came {rest[0]}, after {in_words(later, 1)} ({_compared(later, reached[best])})"
            if never:
                text += f"; not in every run within the rounds played: {', '.join(never)}"
            return text + "."
    return f"No scheme reached {targets[0]:.0%} accuracy in every run." if targets else ""


def _furthest(finals: Values) -> str:
    order = sorted(finals, key=lambda name: -float(finals[name].mean()))
    best = order[0]
    if len(order) > 1 and _alike(finals):
        return f"Every scheme ends at the same accuracy, {in_words(finals[best])}."
    text = f"The highest final accuracy is {best}'s, {in_words(finals[best])}"
    if len(order) > 1:
        second = order[1]
        text += f"; {second} follows with {in_words(finals[second])} ({_compared(finals[best], finals[second])})"
        close = [
            name for name in order[2:] if finals[best].size == finals[name].size > 1 and not _clear(finals[best], finals[name])
        ]
        if close and not _clear(finals[best], finals[second]):
            text += f"; nor can the seeds tell it from {', '.join(close)}"
    return text + "."


def _success(success: Values) -> str:
    order = sorted(success, key=lambda name: -float(success[name].mean()))
    best, worst = order[0], order[-1]
    if len(order) == 1:
        return f"{best}: a success ratio of {in_words(success[best])}."
    if _alike(success):
        return f"Under every scheme alike, the success ratio is {in_words(success[best])}."
    text = f"Most updates counted under {best}: a success ratio of {in_words(success[best])}"
    if "random" in success and best != "random":
        return f"{text}, where random asking gives {in_words(success['random'])}."
    return f"{text}; fewest under {worst}: {in_words(success[worst])}."


def _fairness(fair: Values) -> str:
    order = sorted(fair, key=lambda name: -float(fair[name].mean()))
    if len(order) == 1:
        return f"Fairness (Jain's index, 1 when all are asked alike): {in_words(fair[order[0]])}."
    if _alike(fair):
        return (
            f"Fairness (Jain's index, 1 when all are asked alike) is the same under every scheme: {in_words(fair[order[0]])}."
        )
    return (
        f"The price is fairness (Jain's index, 1 when all are asked alike): from {in_words(fair[order[0]])} under {order[0]} "
        f"down to {in_words(fair[order[-1]])} under {order[-1]}."
    )


def _alike(values: Values) -> bool:
    """Return whether all schemes have the same value in every run."""
    first, *rest = values.values()
    return all(np.array_equal(first, other) for other in rest)


def _compared(more: Floats, less: Floats) -> str:
    """Say whether the difference of two schemes, seed by seed in the same worlds, stands out of the spread over seeds."""
    if more.size != less.size:
        return "not over the same seeds, so not compared"
    if more.size < 2:
        return "one seed: how much of this is chance is not known"
    if not (more - less).any():
        return "the same in every run"
    return "a difference beyond the spread over seeds" if _clear(more, less) else "a difference within the spread over seeds"


def _clear(more: Floats, less: Floats) -> bool:
    """Return whether the paired difference lies beyond its one-sided 95 % limit."""
    if more.size != less.size:
        return False
    found = estimate((more - less).tolist())
    return not isnan(found.error) and abs(found.mean) > found.margin(0.0)
