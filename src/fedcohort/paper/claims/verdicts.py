"""A machine-checked list of the paper's sentences, each with the statistic that decides it and the verdict.

A claim rests on comparisons. Each is a mean over seeds, paired by seed where two runs are compared; it *holds* beyond the
one-sided 95 % limit of Student's t in the claim's direction, *fails* beyond that in the other, and is *undecided* in between.
One seed decides only what is larger than a noise level; a pair of which one run has not come far enough is left out. A claim
fails if one of its comparisons fails, holds if all that were run hold, and is undecided otherwise. The same statistics of the
paper's own tables stand beside ours.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import copysign, inf
from typing import Any

from fedcohort.paper.claims import selection, training
from fedcohort.paper.claims.evidence import NOISE, Check, Evidence, published
from fedcohort.paper.setting import TASKS
from fedcohort.reports.report import Report

TRAINING, NUMERICAL, COHORTS = (
    "Real Training on Public Dataset",
    "Numerical Simulation",
    "Appendix: Varying Selection Cardinality",
)
SPEED, GAP, FINAL = (
    "first round at the lowest target",
    "pow-d's over FedCS's first round",
    "final accuracy",
)
BOTH = "first round, and final accuracy less one point"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, where it stands, which statistic decides it, its comparisons, and what it speaks of."""

    name: str
    section: str
    quote: str
    statistic: str
    checks: Callable[[Evidence, str], Iterator[Check]]
    grounds: tuple[str, ...] = tuple(TASKS)


CLAIMS = (
    Claim(
        "FedCS fastest",
        TRAINING,
        "FedCS(A) … obtains the fastest growth of accuracy during the first stage",
        SPEED,
        training.fedcs_is_fastest,
    ),
    Claim(
        "E3CS-0, -inc next",
        TRAINING,
        "It is followed closely by E3CS-0(A) and E3CS-inc(A)",
        SPEED,
        training.followed_by,
    ),
    Claim(
        "faster than Random",
        TRAINING,
        "E3CS-0(A), E3CS-inc(A), and FedCS(A) all has been accelerated … compared with … Random",
        SPEED,
        training.accelerated,
    ),
    Claim(
        "pow-d slow",
        TRAINING,
        "pow-d … does not promise us a commensurate convergence speed in our … volatile context",
        SPEED,
        training.powd_is_slow,
    ),
    Claim(
        "wider gap in non-iid",
        TRAINING,
        "the impact on convergence speed seems to grow more significant in non-iid scenarios",
        GAP,
        training.wider_in_noniid,
    ),
    Claim(
        "wider gap on CIFAR-10",
        TRAINING,
        "the impact of CEP … is more significant for training on the CIFAR-10 dataset",
        GAP,
        training.wider_in_cifar,
        ("both tasks",),
    ),
    Claim(
        "Random overtakes FedCS",
        TRAINING,
        "Random(A) … gradually emulates FedCS(A) and eventually dominates it",
        FINAL,
        training.random_overtakes,
    ),
    Claim(
        "FedCS lowest",
        TRAINING,
        "For all the experimental groups … the final test accuracy of … FedCS, is the lowest",
        FINAL,
        training.fedcs_is_lowest,
    ),
    Claim(
        "E3CS-0 second lowest",
        TRAINING,
        "The method with the second-lowest accuracy is E3CS-0",
        FINAL,
        training.e3cs_0_is_second_lowest,
    ),
    Claim(
        "E3CS-inc has both",
        TRAINING,
        "E3CS-inc … very promising convergence speed in the first stage while its final test accuracy does not suffer",
        BOTH,
        training.inc_has_both,
    ),
    Claim(
        "larger k faster",
        COHORTS,
        "a greater extent of parallelism could indeed boost the training efficiency",
        SPEED,
        training.larger_cohorts_are_faster,
    ),
    Claim(
        "E3CS at every k",
        COHORTS,
        "accelerated convergence speed of our proposed E3CS solutions, with no (or only minor) final accuracy loss",
        BOTH,
        training.e3cs_at_every_k,
    ),
    Claim(
        "dozens of wrong choices",
        NUMERICAL,
        "E3CS-0 … only wrongly selects sub-optimal classes of clients dozens of times over … 2500 rounds",
        "100 less the median client's times asked",
        selection.dozens,
        ("selection",),
    ),
    Claim(
        "fair among the best",
        NUMERICAL,
        "E3CS-0 would share the most probability over all the 25 clients in Class 4",
        "Jain's index within the class",
        selection.fair_among_the_best,
        ("selection",),
    ),
    Claim(
        "fairness order",
        NUMERICAL,
        "Random > E3CS-0.8 > pow-d > E3CS-0.5 > E3CS-0 > FedCS",
        "Jain's index by seed",
        selection.fairness_order,
        ("selection",),
    ),
    Claim(
        "success order",
        NUMERICAL,
        "fairness quota has a negative correlation on training success ratio",
        "success ratio by seed",
        selection.success_order,
        ("selection",),
    ),
    Claim(
        "pow-d asks who fails",
        NUMERICAL,
        "pow-d has a very low CEP and success ratio throughout the whole training session",
        "success ratio by seed",
        selection.powd_asks_who_fails,
        ("selection",),
    ),
    Claim(
        "turn at T/4",
        NUMERICAL,
        "E3CS-inc undertakes a significant turn in Round 625",
        "success per round before and after T/4",
        selection.turn_of_inc,
        ("selection",),
    ),
    Claim(
        "E3CS-inc becomes Random",
        NUMERICAL,
        "E3CS-inc will eventually converge to the convergence value of Random",
        "success per round after T/4",
        selection.inc_becomes_random,
        ("selection",),
    ),
    Claim(
        "regret bound",
        "Theorem 1",
        "The regret of E3CS is upper-bounded by …",
        "bound less regret",
        selection.theorem_1,
        ("selection",),
    ),
)


def judge(claim: Claim, ground: str, ours: Evidence) -> tuple[str, list[Check]]:
    """Return the verdict of a claim on one ground, and the comparisons that it rests on."""
    checks = list(claim.checks(ours, ground))
    found = Counter(check.verdict for check in checks)
    if found["fails"]:
        return "fails", checks
    if found["holds"] + found["undecided"] == 0:
        return "not run", checks
    return ("undecided" if found["undecided"] else "holds"), checks


def report(ours: Evidence) -> Report:
    """Return all claims with their verdicts, what speaks against those that do not hold, and every comparison in numbers."""
    verdicts, against, numbers = [], [], []
    paper = published()
    for claim in CLAIMS:
        for ground in claim.grounds:
            verdict, checks = judge(claim, ground, ours)
            row = {"claim": claim.name, "on": ours.labels.get(ground, ground)}
            own = _of_paper(claim, ground, paper)
            verdicts.append(
                row | {"verdict": verdict, "comparisons": counted(checks), "paper's own table": own}
            )
            if verdict in ("fails", "undecided"):
                against.append(row | _numbers(worst(checks)))
            numbers += [row | _numbers(check) for check in checks]
    sentences = [
        {
            "claim": claim.name,
            "the paper says": f"“{claim.quote}” ({claim.section})",
            "decided by": claim.statistic,
        }
        for claim in CLAIMS
    ]
    levels = ", ".join(f"{name} {level:.3g}" for name, level in NOISE.items())
    notes = [
        (__doc__ or "").partition("\n\n")[2].replace("\n", " ").strip(),
        f"Noise levels of one seed (rounds in logs): {levels}.",
        *ours.left_out,
    ]
    tables = {"Verdicts": verdicts, "What speaks most against": against, "Sentences": sentences}
    return Report("claims", "Claims of the paper", tables, notes, {"claims": numbers})


def counted(checks: list[Check]) -> str:
    """Return how many comparisons went which way."""
    found = Counter(check.verdict for check in checks)
    words = {"holds": "hold", "fails": "fail", "undecided": "undecided", "not run": "not run"}
    return (
        ", ".join(f"{found[verdict]} {word}" for verdict, word in words.items() if found[verdict])
        or "-"
    )


def worst(checks: list[Check]) -> Check:
    """Return the comparison that was run and speaks most against a claim: of rounds and accuracies alike, by their margins."""

    def support(of: Check) -> float:
        margin = of.support.margin(of.noise)
        return of.support.mean / margin if margin else copysign(inf, of.support.mean)

    return min((check for check in checks if check.support.runs), key=support)


def _of_paper(claim: Claim, ground: str, paper: Evidence) -> str:
    """Return what the paper's own numbers say, taken as they are: one run, no noise."""
    means = [check.support.mean for check in claim.checks(paper, ground) if check.support.runs]
    odd = {"fails": sum(mean < 0 for mean in means), "a tie": sum(mean == 0 for mean in means)}
    said = ", ".join(f"{word} in {count} of {len(means)}" for word, count in odd.items() if count)
    return said or ("holds" if means else "-")


def _numbers(check: Check) -> dict[str, Any]:
    of = check.support
    margin = of.margin(check.noise) if of.runs else float("nan")
    return {
        "comparison": check.what,
        "seeds": of.runs,
        "support": of.mean,
        "margin": margin,
        "verdict": check.verdict,
    }
