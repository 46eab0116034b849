"""Which scheme to use: the answer of runs that trained under several schemes.

The recommendation is made in the hardest case, the one in which uniform selection ends with the
lowest accuracy: where every scheme does well, the choice does not matter. A scheme is recommended
if it ends ahead of uniform selection beyond chance. Otherwise uniform selection is kept.

Schemes are compared seed by seed with Student's t, two-sided. Three seeds tell too little of the
spread of one scheme, so the noise is what effects of all schemes and seeds leave. The p-values are
corrected with Holm's method, because the best of many looks better than it is: for the number of
schemes where they are compared with uniform selection, and for all pairs where they are compared
with the highest, which the results themselves chose. They decide; a reader sees the differences
with their 95 % intervals, which are not corrected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from fedcohort.reports.candidates import (
    LEVEL,
    Candidate,
    Cases,
    Difference,
    differences_from_first,
    differences_to,
    paired_differences,
)
from fedcohort.reports.words import counted, listed
from fedcohort.statistics import estimate
from fedcohort.students_t import t_limit

MOST_NAMED = 3  # cases in one sentence


@dataclass(frozen=True, eq=False)
class Recommendation:
    """What the runs of the hardest case recommend.

    Attributes:
        case: Name of the hardest case.
        case_accuracy: Final accuracy of uniform selection in each case, nan where it was not run.
        near: Cases in which uniform selection ends so nearly as low that it may be chance.
        ranked: Candidates with a final accuracy, the highest first.
        chosen: The one to use.
        uniform: Uniform selection with the rule that suits it best, None if it was not run.
        papers_best: The best E3CS of the paper, None if none was run.
        against_uniform: The difference of each other candidate to uniform selection, by name.
        behind: The difference of the highest to each of the others, by name.
    """

    case: str
    case_accuracy: Mapping[str, float]
    near: Sequence[str]
    ranked: Sequence[Candidate]
    chosen: Candidate
    uniform: Candidate | None
    papers_best: Candidate | None
    against_uniform: Mapping[str, Difference]
    behind: Mapping[str, Difference]

    @property
    def tied(self) -> list[str]:
        """Names of those that cannot be told from the highest."""
        return [name for name, found in self.behind.items() if found.p_value >= LEVEL]

    @property
    def highlighted(self) -> list[Candidate]:
        """Whom figures highlight: the chosen, uniform selection, the paper's best, the highest."""
        wanted = (self.chosen, self.uniform, self.papers_best, self.ranked[0])
        return list({one.name: one for one in wanted if one is not None}.values())


def recommend(cases: Cases) -> Recommendation | None:
    """Return what to use in the hardest case, None if no run has a final accuracy.

    Args:
        cases: Candidates by case. Candidates of one case met the same failures.
    """
    difficulty = {}
    for name, candidates in cases.items():
        if any(not isnan(one.accuracy) for one in candidates):
            difficulty[name] = _difficulty(candidates)
    if not difficulty:
        return None
    case = min(difficulty, key=lambda name: difficulty[name])

    known = [one for one in cases[case] if not isnan(one.accuracy)]
    # Of equals uniform selection is first, so that another is not called the highest.
    ranked = sorted(known, key=lambda one: (-one.accuracy, not one.is_uniform))
    uniform = next((one for one in ranked if one.is_uniform), None)
    layout = {one.name: one.by_seed for one in ranked}
    against = {}
    if uniform is not None:
        against = differences_to(uniform.name, layout)
    ahead = []
    for one in ranked:
        difference = against.get(one.name)
        if difference is not None and difference.mean > 0 and difference.p_value < LEVEL:
            ahead.append(one)
    best = ranked[0]
    return Recommendation(
        case=case,
        case_accuracy={name: _uniform_accuracy(cases[name]) for name in difficulty},
        near=[name for name in difficulty if name != case and _is_near(uniform, cases[name])],
        ranked=ranked,
        chosen=next(iter(ahead), uniform or best),
        uniform=uniform,
        papers_best=next((one for one in ranked if one.is_papers), None),
        against_uniform=against,
        behind=differences_from_first(best.name, layout),
    )


def recommendation_sentence(found: Recommendation) -> str:
    """Return the recommendation in one sentence.

    Args:
        found: The recommendation.
    """
    chosen = found.chosen
    where = f"On {found.case}"
    if len(found.case_accuracy) > 1:
        where += ", the hardest case"
    if found.uniform is None:
        return f"{where}, {_without_uniform(found)}, so what selection gains is not known."
    if chosen.is_uniform:
        return f"{where}, keep uniform selection ({chosen.words}): {_why_uniform(found)}."
    difference = found.against_uniform[chosen.name]
    return (
        f"{where}, use {chosen.words}: it ends at {chosen.accuracy:.3f} accuracy, "
        f"{points(difference.mean)} ahead of uniform selection "
        f"({difference.interval}; {counted(difference.seeds, 'seed')})."
    )


def basis_sentences(found: Recommendation) -> list[str]:
    """Return which case is the hardest and by which number, if there are several.

    Args:
        found: The recommendation.
    """
    others = {}
    for name, accuracy in found.case_accuracy.items():
        if name != found.case and not isnan(accuracy):
            others[name] = accuracy
    own = found.case_accuracy[found.case]
    if isnan(own) and len(found.case_accuracy) > 1:
        return [
            f"Uniform selection was not run on {found.case}: it is called the hardest case by the "
            "mean accuracy of its schemes."
        ]
    if not others or isnan(own):
        return []
    sentences = [
        f"The hardest case is the one in which uniform selection ends lowest: {found.case}, "
        f"{own:.3f}, against {_accuracies(others)}."
    ]
    if found.near:
        near = listed(found.near)
        if len(found.near) > MOST_NAMED:
            near = f"{len(found.near)} others"
        sentences.append(
            f"It is hardly harder than {near}: that difference is within the spread over seeds."
        )
    return sentences


def _accuracies(by_case: Mapping[str, float]) -> str:
    """Return the accuracy of each case; of many cases the lowest and the highest."""
    if len(by_case) > MOST_NAMED:
        values = by_case.values()
        return f"{min(values):.3f} to {max(values):.3f} in {len(by_case)} others"
    return listed([f"{accuracy:.3f} on {name}" for name, accuracy in by_case.items()])


def points(difference: float) -> str:
    """Return a difference of accuracies in percentage points.

    Examples:
        >>> points(0.0123), points(-0.01)
        ('1.2 points', '-1.0 points')
    """
    value = f"{100 * difference:.1f}"
    return f"{value} point" if value == "1.0" else f"{value} points"


def _why_uniform(found: Recommendation) -> str:
    """Say how uniform selection ends, and that nothing is ahead of it for certain."""
    assert found.uniform is not None
    own = found.uniform.accuracy
    others = [one for one in found.ranked if not one.is_uniform]
    if not any(one.scheme.successes.any() for one in found.ranked):
        return "no update counted under any scheme, so the model never changed"
    if not others:
        return f"it ends at {own:.3f} accuracy, and no other selector was run"
    best = others[0]
    if best.accuracy <= own:
        next_best = f"{best.words}: {best.accuracy:.3f}"
        return f"no selector ends higher than its {own:.3f} accuracy ({next_best})"
    difference = found.against_uniform[best.name]
    if difference.mean <= 0:
        return (
            f"{best.words} ends at {best.accuracy:.3f} accuracy, above its {own:.3f}, but not with "
            "the seeds that both were played with"
        )
    lead = best.accuracy - own if isnan(difference.mean) else difference.mean
    text = f"{best.words} ends {points(lead)} above its {own:.3f} accuracy"
    if difference.seeds < 2:
        return f"{text}, and {difference.seeds_in_words} cannot tell that from chance"
    if difference.interval:
        text += f" ({difference.interval})"
    seeds = difference.seeds_in_words
    if not difference.holds_zero:
        seeds += f" with {counted(len(found.against_uniform), 'comparison')}"
    return f"{text}, which {seeds} cannot tell from chance"


def _without_uniform(found: Recommendation) -> str:
    """Say which scheme ends highest, from whom it cannot be told, and what was not run."""
    best = found.chosen
    if len(found.ranked) == 1:
        return f"{best.words} ends at {best.accuracy:.3f} accuracy; no other scheme was run"
    text = f"{best.words} ends highest, at {best.accuracy:.3f} accuracy"
    tied = found.tied
    if tied:
        others = tied[0] if len(tied) == 1 else counted(len(tied), "other")
        text += f", which {found.behind[tied[0]].seeds_in_words} cannot tell from {others}"
    return f"{text}; uniform selection was not run"


def _difficulty(candidates: Sequence[Candidate]) -> float:
    """Return the accuracy of uniform selection, or of all schemes if it was not run."""
    uniform = _uniform_accuracy(candidates)
    if not isnan(uniform):
        return uniform
    return float(np.nanmean([one.accuracy for one in candidates]))


def _uniform_accuracy(candidates: Sequence[Candidate]) -> float:
    """Return the accuracy of uniform selection with the rule that suits it best."""
    uniform = _best_uniform(candidates)
    return nan if uniform is None else uniform.accuracy


def _best_uniform(candidates: Sequence[Candidate]) -> Candidate | None:
    known = [one for one in candidates if one.is_uniform and not isnan(one.accuracy)]
    return max(known, key=lambda one: one.accuracy, default=None)


def _is_near(uniform: Candidate | None, others: Sequence[Candidate]) -> bool:
    """Return whether uniform selection ends in another case no higher than seeds spread."""
    other = _best_uniform(others)
    if uniform is None or other is None:
        return False
    gain = estimate(paired_differences(other.by_seed, uniform.by_seed))
    if gain.runs < 2 or not gain.error:
        return False
    return gain.mean <= t_limit(0.05, gain.runs - 1) * gain.error
