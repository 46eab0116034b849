"""The list of the paper's claims, each with the statistic that decides it and the verdict."""

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from fedcohort.paper.claims import cohorts, selection, training
from fedcohort.paper.claims.claim import (
    NOT_REACHED,
    NOT_RUN,
    UNKNOWN,
    Claim,
    Decision,
    decide,
    write_effect,
)
from fedcohort.paper.claims.evidence import (
    Evidence,
    our_evidence,
    paper_evidence,
    without_choosing_worlds,
)
from fedcohort.paper.labels import describe_range
from fedcohort.paper.results import Results
from fedcohort.paper.setting import Overrides
from fedcohort.reports.report import Report

CLAIMS: tuple[Claim, ...] = training.CLAIMS + cohorts.CLAIMS + selection.CLAIMS
NEEDS = {"emnist-letters": "needs EMNIST-Letters", "both tasks": "needs EMNIST-Letters"}
LEGEND = (
    "A claim rests on comparisons, paired by world. A mean over worlds is divided by its standard "
    "error and judged by Student's t, two-sided, with p-values corrected by Holm's method over "
    "the comparisons of the claim. The noise of training is what effects of scheme and world "
    "leave. It is pooled over all schemes but FedCS, groups and cohort sizes of a task. FedCS has "
    "a noise of its own, because its result depends on what its few clients own. (df: degrees of "
    "freedom, Satterthwaite's where two noises add up.) Other statistics, and differences between "
    "cohort sizes, have the spread of their own seeds. Where a run had not reached the target by "
    "its last round, only the order of the two runs is known, and the sign test decides; it needs "
    "six worlds. A comparison *holds* or *fails* at the 5 % level; otherwise it *cannot be told*. "
    "It was *not reached* if runs do not tell which was first, and *not run* if runs are missing "
    "or, where final accuracies are compared, not finished. A claim fails if one of its cases "
    "fails; it holds if one holds and none cannot be told. Cases that were not reached or not run "
    "count neither way. A case is one comparison, or several that the claim needs together. If "
    'the claim says "up to", it holds if one case holds and fails if all cases fail; otherwise '
    "it is what the cases are that do not fail. Smallest effect: the largest over the comparisons "
    "that Student's t decides of what their worlds could have shown as the first of Holm's "
    "steps; a true effect of that size is found half of the time. Worlds that chose nothing: "
    "those in which no reading of the paper was chosen; the verdict of these alone stands beside "
    "it. The last column applies the same statistics to the paper's own tables, without noise; it "
    "counts the cases that have numbers."
)


def report(results: Results, overrides: Overrides) -> Report:
    """Report every claim with its verdict, and all comparisons in numbers."""
    return report_on(our_evidence(results, overrides))


def report_on(evidence: Evidence) -> Report:
    """Report the verdicts that evidence allows, and what speaks against the claims."""
    verdicts = []
    against = []
    numbers = []
    sentences = []
    paper = paper_evidence()
    unchosen = without_choosing_worlds(evidence)
    for claim in CLAIMS:
        for ground in claim.grounds:
            verdict, decisions = judge(claim, ground, evidence)
            alone, unchosen_decisions = judge(claim, ground, unchosen)
            row = {"claim": claim.name, "on": evidence.labels.get(ground, ground)}
            verdicts.append(
                row
                | {"verdict": verdict}
                | count_verdicts(decisions)
                | {
                    "worlds": _count_worlds(decisions, decisions),
                    "chose nothing": _count_worlds(decisions, unchosen_decisions),
                    "verdict of these": alone,
                    "smallest effect": describe_smallest(decisions),
                    "df": _describe_degrees(decisions),
                    "paper's own table": judge_paper(claim, ground, paper),
                }
            )
            if verdict in ("fails", UNKNOWN):
                against.append(row | _decision_row(weakest(decisions)))
            for decision in decisions:
                numbers.append(row | _decision_row(decision))
        sentences.append(
            {
                "claim": claim.name,
                "the paper says": f"“{claim.quote}” ({claim.section})",
                "decided by": claim.statistic,
            }
        )
    tables = {"Verdicts": verdicts, "What speaks most against": against, "Sentences": sentences}
    notes = [LEGEND, *evidence.left_out]
    return Report("claims", "Claims of the paper", tables, notes, {"claims": numbers})


def judge(claim: Claim, ground: str, evidence: Evidence) -> tuple[str, list[Decision]]:
    """Return the verdict on a claim on one ground, and the decisions that it rests on."""
    decisions = decide(list(claim.checks(evidence, ground)))
    verdicts = _judge_cases(decisions, claim.together)
    order = ["fails", UNKNOWN, "holds", NOT_REACHED]
    if claim.up_to:
        # One case is enough, so that only all cases together refute the claim.
        order = ["holds", UNKNOWN, NOT_REACHED]
        if set(verdicts) == {"fails"}:
            order = ["fails"]
    for verdict in order:
        if verdict in verdicts:
            return verdict, decisions
    needs = NOT_RUN
    if ground not in evidence.labels:  # played as in the paper, not on other data
        needs = claim.without_runs.get(ground, NEEDS.get(ground, NOT_RUN))
    return needs, decisions


def _judge_cases(decisions: Sequence[Decision], together: int) -> list[str]:
    """Return the verdict on each case: it fails with one comparison, and holds with all."""
    found = []
    for first in range(0, len(decisions), together):
        verdicts = {decision.verdict for decision in decisions[first : first + together]}
        for verdict in ("fails", NOT_RUN, NOT_REACHED, UNKNOWN, "holds"):
            if verdict in verdicts:
                found.append(verdict)
                break
    return found


def judge_paper(claim: Claim, ground: str, paper: Evidence) -> str:
    """Say in how many cases the paper's own numbers support a claim, taken without noise.

    A case whose comparisons do not all have numbers is left out.
    """
    checks = list(claim.checks(paper, ground))
    least = []
    for first in range(0, len(checks), claim.together):
        means = [check.mean for check in checks[first : first + claim.together]]
        if not np.isnan(means).any():
            least.append(min(means))
    if not least:
        return "-"

    failures = sum(support < 0 for support in least)
    if claim.up_to:
        if failures == len(least):
            return f"fails in all {failures}"
        return f"holds in {len(least) - failures} of {len(least)}"
    ties = sum(support == 0 for support in least)
    words = []
    if failures:
        words.append(f"fails in {failures} of {len(least)}")
    if ties:
        words.append(f"a tie in {ties} of {len(least)}")
    return ", ".join(words) or "holds"


def count_verdicts(decisions: Sequence[Decision]) -> dict[str, int]:
    """Return how many comparisons have which verdict, by the heading of a column."""
    counts = Counter(decision.verdict for decision in decisions)
    return {
        "hold": counts["holds"],
        "fail": counts["fails"],
        UNKNOWN: counts[UNKNOWN],
        NOT_REACHED: counts[NOT_REACHED],
        NOT_RUN: counts[NOT_RUN],
    }


def _count_worlds(decisions: Sequence[Decision], counted: Sequence[Decision]) -> str:
    """Say how many worlds the comparisons have, such as "1 to 3".

    Args:
        decisions: The comparisons; those without any world are not counted.
        counted: The same comparisons with the worlds to count, perhaps without some.
    """
    worlds = {decision.check.description: decision.check.worlds for decision in counted}
    counts = []
    for decision in decisions:
        if decision.check.supports:
            counts.append(worlds.get(decision.check.description, 0))
    return describe_range(counts)


def describe_smallest(decisions: Sequence[Decision]) -> str:
    """Return the largest of the smallest effects, one for each unit of the comparisons."""
    largest: dict[str, float] = {}
    for decision in decisions:
        if decision.check.supports and decision.smallest_effect < inf:
            unit = decision.check.unit
            largest[unit] = max(largest.get(unit, 0.0), decision.smallest_effect)
    return ", ".join(write_effect(size, unit) for unit, size in largest.items()) or "-"


def _describe_degrees(decisions: Sequence[Decision]) -> str:
    """Say how many degrees of freedom Student's t has; comparisons by signs have none."""
    degrees = []
    for decision in decisions:
        check = decision.check
        if check.supports and not check.by_signs:
            degrees.append(check.error_and_degrees[1])
    return describe_range(degrees)


def weakest(decisions: Sequence[Decision]) -> Decision:
    """Return the decision that speaks most against a claim: the lowest mean per error."""
    were_run = [decision for decision in decisions if decision.check.supports]
    return min(were_run, key=lambda decision: decision.check.ratio)


def _decision_row(decision: Decision) -> dict[str, Any]:
    check = decision.check
    error, degrees = check.error_and_degrees
    return {
        "comparison": check.description,
        "worlds": check.worlds,
        "decided by": "signs" if check.by_signs else "t",
        "support": _rounded(check.mean),
        "in words": write_effect(check.mean, check.unit),
        "standard error": _rounded(error),
        "df": _rounded(degrees),
        "corrected p": _rounded(decision.p_value),
        "smallest effect": write_effect(decision.smallest_effect, check.unit),
        "verdict": decision.verdict,
    }


def _rounded(value: float) -> float:
    """Return a number without its last digits, which depend on the machine's linear algebra."""
    return float(f"{value:.9g}")
