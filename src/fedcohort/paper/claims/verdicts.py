"""The list of the paper's claims, each with the statistic that decides it and the verdict."""

from collections import Counter
from math import copysign, inf, nan
from typing import Any

from fedcohort.paper.claims import cohorts, selection, training
from fedcohort.paper.claims.claim import NOISE, Check, Claim
from fedcohort.paper.claims.evidence import Evidence, our_evidence, paper_evidence
from fedcohort.paper.results import Results
from fedcohort.paper.setting import Overrides
from fedcohort.reports.report import Report

CLAIMS: tuple[Claim, ...] = training.CLAIMS + cohorts.CLAIMS + selection.CLAIMS
LEGEND = (
    "A claim rests on comparisons. Each comparison is a mean over seeds, paired by seed where two "
    "runs are compared. It *holds* if the mean is beyond the one-sided 95 % limit of Student's t "
    "in the claim's direction, it *fails* if the mean is beyond the limit in the other direction, "
    "and it is *undecided* in between. One seed decides only what is larger than a noise level. "
    "A pair is left out if one of its runs has not come far enough. A claim fails if one of its "
    "comparisons fails, holds if all that were run hold, and is undecided otherwise. "
    "The last column applies the same statistics to the paper's own tables."
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
    for claim in CLAIMS:
        for ground in claim.grounds:
            verdict, checks = judge(claim, ground, evidence)
            row = {"claim": claim.name, "on": evidence.labels.get(ground, ground)}
            verdicts.append(
                row
                | {
                    "verdict": verdict,
                    "comparisons": count_verdicts(checks),
                    "paper's own table": judge_paper(claim, ground, paper),
                }
            )
            if verdict in ("fails", "undecided"):
                against.append(row | _check_row(weakest(checks)))
            for check in checks:
                numbers.append(row | _check_row(check))
        sentences.append(
            {
                "claim": claim.name,
                "the paper says": f"“{claim.quote}” ({claim.section})",
                "decided by": claim.statistic,
            }
        )

    levels = ", ".join(f"{name} {level:.3g}" for name, level in NOISE.items())
    notes = [LEGEND, f"Noise levels of one seed (rounds in logs): {levels}.", *evidence.left_out]
    tables = {"Verdicts": verdicts, "What speaks most against": against, "Sentences": sentences}
    return Report("claims", "Claims of the paper", tables, notes, {"claims": numbers})


def judge(claim: Claim, ground: str, evidence: Evidence) -> tuple[str, list[Check]]:
    """Return the verdict on a claim on one ground, and the comparisons that it rests on."""
    checks = list(claim.checks(evidence, ground))
    verdicts = {check.verdict for check in checks}
    for verdict in ("fails", "undecided", "holds"):
        if verdict in verdicts:
            return verdict, checks
    return "not run", checks


def judge_paper(claim: Claim, ground: str, paper: Evidence) -> str:
    """Say whether the paper's own numbers support a claim, taken without noise."""
    supports = []
    for check in claim.checks(paper, ground):
        if check.support.runs:
            supports.append(check.support.mean)
    if not supports:
        return "-"
    failures = sum(support < 0 for support in supports)
    ties = sum(support == 0 for support in supports)
    words = []
    if failures:
        words.append(f"fails in {failures} of {len(supports)}")
    if ties:
        words.append(f"a tie in {ties} of {len(supports)}")
    return ", ".join(words) or "holds"


def count_verdicts(checks: list[Check]) -> str:
    """Say how many comparisons have which verdict."""
    counts = Counter(check.verdict for check in checks)
    verbs = {"holds": "hold", "fails": "fail", "undecided": "undecided", "not run": "not run"}
    words = []
    for verdict, verb in verbs.items():
        if counts[verdict]:
            words.append(f"{counts[verdict]} {verb}")
    return ", ".join(words) or "-"


def weakest(checks: list[Check]) -> Check:
    """Return the comparison that speaks most against a claim.

    Rounds and accuracies are compared by how many margins their support is above zero.
    """

    def margins(check: Check) -> float:
        margin = check.support.margin(check.noise)
        if not margin:
            return copysign(inf, check.support.mean)
        return check.support.mean / margin

    were_run = [check for check in checks if check.support.runs]
    return min(were_run, key=margins)


def _check_row(check: Check) -> dict[str, Any]:
    margin = nan
    if check.support.runs:
        margin = check.support.margin(check.noise)
    return {
        "comparison": check.description,
        "seeds": check.support.runs,
        "support": check.support.mean,
        "margin": margin,
        "verdict": check.verdict,
    }
