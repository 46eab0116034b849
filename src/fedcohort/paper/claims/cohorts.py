"""The paper's claims about the cohort size k, each as the comparisons that decide it.

A world may act on large cohorts otherwise than on small ones. So a difference between two sizes
has its own spread, and one world decides nothing.
"""

from collections.abc import Iterator
from itertools import pairwise, product

from fedcohort.paper.claims.claim import Check, Claim, compare
from fedcohort.paper.claims.evidence import Evidence
from fedcohort.paper.claims.first_rounds import compare_rounds, first_rounds
from fedcohort.paper.claims.group import Group
from fedcohort.paper.claims.training import BOTH, FINAL, SPEED
from fedcohort.paper.claims.training_checks import MINOR, better, faster
from fedcohort.paper.labels import partition_label
from fedcohort.paper.setting import COHORTS, PAPER
from fedcohort.selection.registry import PAPER_SELECTORS


def larger_cohorts_are_faster(evidence: Evidence, task: str) -> Iterator[Check]:
    """Every scheme is faster with k = 20 than with 10, and with 30 than with 20."""
    neighbours = pairwise(COHORTS)
    for partition, name, (few, many) in product(PAPER["partitions"], PAPER_SELECTORS, neighbours):
        yield compare_rounds(
            f"{name} faster with k={many} than with {few}, {partition_label(partition)}",
            slow=first_rounds(evidence, Group(task, partition, 0.0, few), name),
            fast=first_rounds(evidence, Group(task, partition, 0.0, many), name),
        )


def larger_cohorts_end_higher(evidence: Evidence, task: str) -> Iterator[Check]:
    """Every scheme ends higher with k = 20 than with 10, and with 30 than with 20."""
    neighbours = pairwise(COHORTS)
    for partition, name, (few, many) in product(PAPER["partitions"], PAPER_SELECTORS, neighbours):
        yield compare(
            f"{name} ends higher with k={many} than with {few}, {partition_label(partition)}",
            higher=evidence.trained(Group(task, partition, 0.0, many), name, "final"),
            lower=evidence.trained(Group(task, partition, 0.0, few), name, "final"),
            unit="accuracy",
        )


def e3cs_at_every_k(evidence: Evidence, task: str) -> Iterator[Check]:
    """At every k E3CS with a quota is faster than Random and ends at most a point below it."""
    with_quota = ("e3cs-0.5", "e3cs-0.8", "e3cs-inc")
    for partition, cohort, name in product(PAPER["partitions"], COHORTS, with_quota):
        group = Group(task, partition, 0.0, cohort)
        yield faster(evidence, group, name, "random")
        yield better(evidence, group, name, "random", lead=-MINOR)


SECTION = "Appendix: Varying Selection Cardinality"
NEEDS_COHORTS = {"cifar10": "needs runs with k = 10 and 30 on this network"}
CLAIMS = (
    Claim(
        "larger k faster",
        SECTION,
        "a greater extent of parallelism could indeed boost the training efficiency",
        SPEED,
        larger_cohorts_are_faster,
        without_runs=NEEDS_COHORTS,
    ),
    Claim(
        "larger k ends higher",
        SECTION,
        "the number of selections each round might have a significant effect on … the final "
        "convergence accuracy",
        FINAL,
        larger_cohorts_end_higher,
        without_runs=NEEDS_COHORTS,
    ),
    Claim(
        "E3CS at every k",
        SECTION,
        "accelerated convergence speed of our proposed E3CS solutions, with no (or only minor) "
        "final accuracy loss",
        BOTH,
        e3cs_at_every_k,
        together=2,
    ),
)
