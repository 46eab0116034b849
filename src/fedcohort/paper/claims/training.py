"""The paper's sentences about training, each as the comparisons that decide it: pure functions of the evidence.

Speed is the first round at the task's lowest target, in logs; final is the accuracy in the last round.
"""

from collections.abc import Iterator
from itertools import pairwise, product

from fedcohort.paper.claims.evidence import NOISE, BySeed, Check, Evidence, log_rounds, paired
from fedcohort.paper.setting import COHORTS, PAPER, TASKS
from fedcohort.paper.tabulate import label, update
from fedcohort.selection.registry import PAPER_SELECTORS

MINOR = 0.01  # "no (or only minor) final accuracy loss", "does not suffer an undesirable drop": one point
GROUPS = tuple(product(PAPER["partitions"], PAPER["mus"]))


def rounds(
    of: Evidence, task: str, selector: str, partition: str, mu: float, cohort: int = 20
) -> BySeed:
    """Return log first rounds at the lowest target."""
    target = TASKS[task]["targets"][0]
    return log_rounds(of.trained(task, selector, partition, mu, cohort, target), of.rounds[task])


def faster(
    of: Evidence, task: str, quick: str, slow: str, partition: str, mu: float, cohort: int = 20
) -> Check:
    """Return the check that one scheme reaches the lowest target before another."""
    what = f"{quick} before {slow}, {label(partition)}, {update(mu)}" + (
        f", k={cohort}" if cohort != 20 else ""
    )
    pair = (rounds(of, task, name, partition, mu, cohort) for name in (slow, quick))
    return paired(what, pair, NOISE["rounds"])


def better(
    of: Evidence,
    task: str,
    high: str,
    low: str,
    partition: str,
    mu: float,
    lead: float = 0.0,
    cohort: int = 20,
) -> Check:
    """Return the check that one scheme ends above another by more than a lead (negative: not far below)."""
    word = "ends above" if not lead else f"ends at most {-100 * lead:g} point below"
    what = f"{high} {word} {low}, {label(partition)}, {update(mu)}" + (
        f", k={cohort}" if cohort != 20 else ""
    )
    pair = (of.trained(task, name, partition, mu, cohort, "final") for name in (high, low))
    return paired(what, pair, NOISE["accuracy"], lead)


def fedcs_is_fastest(of: Evidence, task: str) -> Iterator[Check]:
    """FedCS reaches the lowest target first."""
    for (partition, mu), other in product(GROUPS, PAPER_SELECTORS):
        if other != "fedcs":
            yield faster(of, task, "fedcs", other, partition, mu)


def followed_by(of: Evidence, task: str) -> Iterator[Check]:
    """E3CS-0 and E3CS-inc come before the fairer schemes."""
    for (partition, mu), quick, slow in product(
        GROUPS, ("e3cs-0", "e3cs-inc"), ("e3cs-0.5", "e3cs-0.8", "random", "pow-d")
    ):
        yield faster(of, task, quick, slow, partition, mu)


def accelerated(of: Evidence, task: str) -> Iterator[Check]:
    """E3CS-0, E3CS-inc and FedCS are faster than Random."""
    for (partition, mu), quick in product(GROUPS, ("e3cs-0", "e3cs-inc", "fedcs")):
        yield faster(of, task, quick, "random", partition, mu)


def powd_is_slow(of: Evidence, task: str) -> Iterator[Check]:
    """Random is faster than pow-d."""
    for partition, mu in GROUPS:
        yield faster(of, task, "random", "pow-d", partition, mu)


def gap(of: Evidence, task: str, partition: str, mu: float) -> BySeed:
    """Return the log of pow-d's rounds over FedCS's: the slowest over the fastest, in the paper's words."""
    slow, quick = (rounds(of, task, name, partition, mu) for name in ("pow-d", "fedcs"))
    return {seed: slow[seed] - quick[seed] for seed in slow if seed in quick}


def wider_in_noniid(of: Evidence, task: str) -> Iterator[Check]:
    """The gap between fastest and slowest is wider with non-iid data."""
    for mu in PAPER["mus"]:
        pair = (gap(of, task, partition, mu) for partition in ("primary-label", "iid"))
        yield paired(f"pow-d/FedCS wider in non-iid, {update(mu)}", pair, NOISE["rounds"])


def wider_in_cifar(of: Evidence, ground: str) -> Iterator[Check]:
    """The gap is wider on CIFAR-10 than on EMNIST-Letter; if one data set was played for both, there is nothing to compare."""
    if len(set(of.datasets.values())) == 1:
        return
    for partition, mu in GROUPS:
        pair = (gap(of, task, partition, mu) for task in ("cifar10", "emnist-letters"))
        yield paired(
            f"pow-d/FedCS wider on CIFAR-10, {label(partition)}, {update(mu)}",
            pair,
            NOISE["rounds"],
        )


def random_overtakes(of: Evidence, task: str) -> Iterator[Check]:
    """Random ends above FedCS."""
    for partition, mu in GROUPS:
        yield better(of, task, "random", "fedcs", partition, mu)


def fedcs_is_lowest(of: Evidence, task: str) -> Iterator[Check]:
    """Every scheme ends above FedCS."""
    for (partition, mu), other in product(GROUPS, PAPER_SELECTORS):
        if other != "fedcs":
            yield better(of, task, other, "fedcs", partition, mu)


def e3cs_0_is_second_lowest(of: Evidence, task: str) -> Iterator[Check]:
    """Every scheme but FedCS ends above E3CS-0."""
    for (partition, mu), other in product(GROUPS, PAPER_SELECTORS):
        if other not in ("fedcs", "e3cs-0"):
            yield better(of, task, other, "e3cs-0", partition, mu)


def inc_has_both(of: Evidence, task: str) -> Iterator[Check]:
    """E3CS-inc is faster than Random and ends at most a point below it."""
    for partition, mu in GROUPS:
        yield faster(of, task, "e3cs-inc", "random", partition, mu)
        yield better(of, task, "e3cs-inc", "random", partition, mu, lead=-MINOR)


def larger_cohorts_are_faster(of: Evidence, task: str) -> Iterator[Check]:
    """Every scheme is faster with k = 20 than with 10, and with 30 than with 20."""
    for partition, name, (few, many) in product(
        PAPER["partitions"], PAPER_SELECTORS, pairwise(COHORTS)
    ):
        pair = (rounds(of, task, name, partition, 0.0, cohort) for cohort in (few, many))
        yield paired(
            f"{name} faster with k={many} than with {few}, {label(partition)}",
            pair,
            NOISE["rounds"],
        )


def e3cs_at_every_k(of: Evidence, task: str) -> Iterator[Check]:
    """At every k the E3CS schemes with a quota are faster than Random and end at most a point below it."""
    for partition, k, name in product(
        PAPER["partitions"], COHORTS, ("e3cs-0.5", "e3cs-0.8", "e3cs-inc")
    ):
        yield faster(of, task, name, "random", partition, 0.0, k)
        yield better(of, task, name, "random", partition, 0.0, -MINOR, k)
