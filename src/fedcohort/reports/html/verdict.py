"""What a run found, in words: who got there first, who got furthest, what it cost; and whether the seeds allow saying so."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.findings import Findings, Scheme
from fedcohort.reports.words import mean_with_sd
from fedcohort.statistics import estimate

Values = Mapping[str, Mapping[int, float]]  # by scheme and seed, where it is known


def verdict(of: Findings) -> tuple[list[str], dict[str, list[str]]]:
    """Return the sentences that are the same for all of several kinds of run, and those of each kind."""
    said = {
        kind: about(schemes, sorted(of.targets.get(kind, ()))) for kind, schemes in of.kinds.items()
    }
    first, *others = said.values() if len(said) > 1 else [[]]
    shared = [sentence for sentence in first if all(sentence in other for other in others)]
    own = {
        kind: [sentence for sentence in sentences if sentence not in shared]
        for kind, sentences in said.items()
    }
    return shared, {kind: sentences for kind, sentences in own.items() if sentences}


def about(schemes: Mapping[str, Scheme], targets: Sequence[float] = ()) -> list[str]:
    """Return what can be said of the schemes of one kind of run; of a single one, what it came to."""
    said = []
    finals = _values(schemes, lambda scheme: scheme.final_accuracy)
    if finals:
        said += [_first(schemes, targets), _furthest(finals)]
    said.append(_success(_values(schemes, lambda scheme: scheme.success)))
    fair = _values(schemes, lambda scheme: scheme.fairness)
    if fair:
        said.append(_fairness(fair))
    return [sentence for sentence in said if sentence]


def _values(
    schemes: Mapping[str, Scheme], what: Callable[[Scheme], Floats | None]
) -> dict[str, dict[int, float]]:
    found = {}
    for name, scheme in schemes.items():
        values = what(scheme)
        pairs = zip(scheme.seeds, values.tolist(), strict=True) if values is not None else ()
        if known := {seed: value for seed, value in pairs if not isnan(value)}:
            found[name] = known
    return found


def _mean(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values)


def _words(values: Mapping[int, float], digits: int = 3) -> str:
    return mean_with_sd(np.array(list(values.values())), digits)


def _first(schemes: Mapping[str, Scheme], targets: Sequence[float]) -> str:
    """Say who reached the highest target that any scheme reached in all seeds, and who was next."""
    for target in reversed(targets):
        rounds = _values(schemes, lambda scheme, target=target: scheme.rounds_to(target))  # type: ignore[misc]
        reached = {
            name: found for name, found in rounds.items() if len(found) == len(schemes[name].seeds)
        }
        if reached:
            never = [
                name
                for name, scheme in schemes.items()
                if name not in reached and scheme.accuracy is not None
            ]
            order = sorted(reached, key=lambda name: _mean(reached[name]))
            alike = [name for name in order if reached[name] == reached[order[0]]]
            best, rest = order[0], [name for name in order if name not in alike]
            who = (
                f"{', '.join(alike[:-1])} and {alike[-1]}, alike in every run,"
                if len(alike) > 1
                else best
            )
            text = f"{who} reached {target:.0%} accuracy first, after {_words(reached[best], 1)} rounds"
            if rest:
                later = reached[rest[0]]
                text += f"; next came {rest[0]}, after {_words(later, 1)} ({_compared(later, reached[best])})"
            if never:
                text += f"; not in every run within the rounds played: {', '.join(never)}"
            return text + "."
    return f"No scheme reached {targets[0]:.0%} accuracy in every run." if targets else ""


def _furthest(finals: Values) -> str:
    order = sorted(finals, key=lambda name: -_mean(finals[name]))
    best = order[0]
    if len(order) > 1 and _alike(finals):
        return f"Every scheme ends at the same accuracy, {_words(finals[best])}."
    text = f"The highest final accuracy is {best}'s, {_words(finals[best])}"
    if len(order) > 1:
        second = order[1]
        text += f"; {second} follows with {_words(finals[second])} ({_compared(finals[best], finals[second])})"
        several = [name for name in order[2:] if len(_differences(finals[best], finals[name])) > 1]
        close = [name for name in several if not _clear(finals[best], finals[name])]
        if close and not _clear(finals[best], finals[second]):
            text += f"; nor can the seeds tell it from {', '.join(close)}"
    return text + "."


def _success(success: Values) -> str:
    order = sorted(success, key=lambda name: -_mean(success[name]))
    best, worst = order[0], order[-1]
    if len(order) == 1:
        return f"{best}: a success ratio of {_words(success[best])}."
    if _alike(success):
        return f"Under every scheme alike, the success ratio is {_words(success[best])}."
    text = f"Most updates counted under {best}: a success ratio of {_words(success[best])}"
    if "random" in success and best != "random":
        return f"{text}, where random asking gives {_words(success['random'])}."
    return f"{text}; fewest under {worst}: {_words(success[worst])}."


def _fairness(fair: Values) -> str:
    order = sorted(fair, key=lambda name: -_mean(fair[name]))
    if len(order) == 1:
        return f"Fairness (Jain's index, 1 when all are asked alike): {_words(fair[order[0]])}."
    if _alike(fair):
        return f"Fairness (Jain's index, 1 when all are asked alike) is the same under every scheme: {_words(fair[order[0]])}."
    return (
        f"The price is fairness (Jain's index, 1 when all are asked alike): from {_words(fair[order[0]])} under {order[0]} "
        f"down to {_words(fair[order[-1]])} under {order[-1]}."
    )


def _alike(values: Values) -> bool:
    """Return whether all schemes have the same value in every run."""
    first, *rest = values.values()
    return all(first == other for other in rest)


def _differences(more: Mapping[int, float], less: Mapping[int, float]) -> list[float]:
    """Return the difference of two schemes in each world that both met."""
    return [more[seed] - less[seed] for seed in more if seed in less]


def _compared(more: Mapping[int, float], less: Mapping[int, float]) -> str:
    """Say whether the difference of two schemes, seed by seed in the same worlds, stands out of the spread over seeds."""
    found = estimate(_differences(more, less))
    if not found.runs:
        return "not over the same seeds, so not compared"
    if found.runs < 2:
        return "one seed: how much of this is chance is not known"
    if not found.error:
        return "the same difference in every run" if found.mean else "the same in every run"
    return (
        "a difference beyond the spread over seeds"
        if _clear(more, less)
        else "a difference within the spread over seeds"
    )


def _clear(more: Mapping[int, float], less: Mapping[int, float]) -> bool:
    """Return whether the paired difference lies beyond its one-sided 95 % limit; seeds that agree exactly show no spread."""
    found = estimate(_differences(more, less))
    return found.error > 0 and abs(found.mean) > found.margin(0.0)
