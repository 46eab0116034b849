"""The paper's claims about training, each as the comparisons that decide it.

Speed is the log of the first round at the task's lowest target accuracy. The final accuracy is
that of the last round.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from fedcohort.paper.claims.claim import NOISE, Check, Claim, compare, log_rounds
from fedcohort.paper.claims.evidence import Evidence
from fedcohort.paper.labels import partition_label, update_label
from fedcohort.paper.setting import PAPER, TASKS
from fedcohort.selection.registry import PAPER_SELECTORS

# "does not suffer an undesirable drop" and "no (or only minor) final accuracy loss": one point
MINOR = 0.01
GROUPS = tuple(product(PAPER["partitions"], PAPER["mus"]))  # (partition, mu)


def speed(
    evidence: Evidence, task: str, selector: str, partition: str, mu: float, cohort: int = 20
) -> dict[int, float]:
    """Return the log of the first round at the lowest target, by seed."""
    target = TASKS[task]["targets"][0]
    first_rounds = evidence.trained(task, selector, partition, mu, cohort, target)
    return log_rounds(first_rounds, evidence.rounds[task])


def faster(
    evidence: Evidence,
    task: str,
    fast: str,
    slow: str,
    partition: str,
    mu: float,
    cohort: int = 20,
) -> Check:
    """Check that one scheme reaches the lowest target before another."""
    return compare(
        f"{fast} before {slow}, {describe_group(partition, mu, cohort)}",
        higher=speed(evidence, task, slow, partition, mu, cohort),
        lower=speed(evidence, task, fast, partition, mu, cohort),
        noise=NOISE["rounds"],
    )


def better(
    evidence: Evidence,
    task: str,
    high: str,
    low: str,
    partition: str,
    mu: float,
    lead: float = 0.0,
    cohort: int = 20,
) -> Check:
    """Check that one scheme ends above another by more than a lead.

    A negative lead means: at most so far below.
    """
    relation = "ends above"
    if lead:
        relation = f"ends at most {-100 * lead:g} point below"
    return compare(
        f"{high} {relation} {low}, {describe_group(partition, mu, cohort)}",
        higher=evidence.trained(task, high, partition, mu, cohort, "final"),
        lower=evidence.trained(task, low, partition, mu, cohort, "final"),
        noise=NOISE["accuracy"],
        lead=lead,
    )


def describe_group(partition: str, mu: float, cohort: int) -> str:
    """Return a group of runs in words."""
    words = f"{partition_label(partition)}, {update_label(mu)}"
    if cohort != 20:
        words += f", k={cohort}"
    return words


def fedcs_is_fastest(evidence: Evidence, task: str) -> Iterator[Check]:
    """FedCS reaches the lowest target first."""
    for (partition, mu), other in product(GROUPS, PAPER_SELECTORS):
        if other != "fedcs":
            yield faster(evidence, task, "fedcs", other, partition, mu)


def followed_by_e3cs(evidence: Evidence, task: str) -> Iterator[Check]:
    """E3CS-0 and E3CS-inc come before the fairer schemes."""
    followers = ("e3cs-0", "e3cs-inc")
    fairer = ("e3cs-0.5", "e3cs-0.8", "random", "pow-d")
    for (partition, mu), fast, slow in product(GROUPS, followers, fairer):
        yield faster(evidence, task, fast, slow, partition, mu)


def faster_than_random(evidence: Evidence, task: str) -> Iterator[Check]:
    """E3CS-0, E3CS-inc and FedCS are faster than Random."""
    for (partition, mu), fast in product(GROUPS, ("e3cs-0", "e3cs-inc", "fedcs")):
        yield faster(evidence, task, fast, "random", partition, mu)


def powd_is_slow(evidence: Evidence, task: str) -> Iterator[Check]:
    """Random is faster than pow-d."""
    for partition, mu in GROUPS:
        yield faster(evidence, task, "random", "pow-d", partition, mu)


def speed_gap(evidence: Evidence, task: str, partition: str, mu: float) -> Mapping[int, float]:
    """Return the log of pow-d's rounds over FedCS's: the slowest over the fastest."""
    slow = speed(evidence, task, "pow-d", partition, mu)
    fast = speed(evidence, task, "fedcs", partition, mu)
    return {seed: slow[seed] - fast[seed] for seed in slow if seed in fast}


def wider_gap_in_noniid(evidence: Evidence, task: str) -> Iterator[Check]:
    """The gap between fastest and slowest is wider with non-iid data."""
    for mu in PAPER["mus"]:
        yield compare(
            f"pow-d/FedCS wider in non-iid, {update_label(mu)}",
            higher=speed_gap(evidence, task, "primary-label", mu),
            lower=speed_gap(evidence, task, "iid", mu),
            noise=NOISE["rounds"],
        )


def wider_gap_on_cifar(evidence: Evidence, ground: str) -> Iterator[Check]:
    """The gap is wider on CIFAR-10 than on EMNIST-Letter.

    If one data set was played for both tasks, there is nothing to compare.
    """
    if len(set(evidence.datasets.values())) == 1:
        return
    for partition, mu in GROUPS:
        yield compare(
            f"pow-d/FedCS wider on CIFAR-10, {partition_label(partition)}, {update_label(mu)}",
            higher=speed_gap(evidence, "cifar10", partition, mu),
            lower=speed_gap(evidence, "emnist-letters", partition, mu),
            noise=NOISE["rounds"],
        )


def random_overtakes(evidence: Evidence, task: str) -> Iterator[Check]:
    """Random ends above FedCS."""
    for partition, mu in GROUPS:
        yield better(evidence, task, "random", "fedcs", partition, mu)


def fedcs_is_lowest(evidence: Evidence, task: str) -> Iterator[Check]:
    """Every scheme ends above FedCS."""
    for (partition, mu), other in product(GROUPS, PAPER_SELECTORS):
        if other != "fedcs":
            yield better(evidence, task, other, "fedcs", partition, mu)


def e3cs_0_is_second_lowest(evidence: Evidence, task: str) -> Iterator[Check]:
    """Every scheme but FedCS ends above E3CS-0."""
    for (partition, mu), other in product(GROUPS, PAPER_SELECTORS):
        if other not in ("fedcs", "e3cs-0"):
            yield better(evidence, task, other, "e3cs-0", partition, mu)


def inc_has_both(evidence: Evidence, task: str) -> Iterator[Check]:
    """E3CS-inc is faster than Random and ends at most a point below it."""
    for partition, mu in GROUPS:
        yield faster(evidence, task, "e3cs-inc", "random", partition, mu)
        yield better(evidence, task, "e3cs-inc", "random", partition, mu, lead=-MINOR)


SECTION = "Real Training on Public Dataset"
SPEED = "first round at the lowest target"
GAP = "pow-d's over FedCS's first round"
FINAL = "final accuracy"
BOTH = "first round, and final accuracy less one point"
CLAIMS = (
    Claim(
        "FedCS fastest",
        SECTION,
        "FedCS(A) … obtains the fastest growth of accuracy during the first stage",
        SPEED,
        fedcs_is_fastest,
    ),
    Claim(
        "E3CS-0, -inc next",
        SECTION,
        "It is followed closely by E3CS-0(A) and E3CS-inc(A)",
        SPEED,
        followed_by_e3cs,
    ),
    Claim(
        "faster than Random",
        SECTION,
        "E3CS-0(A), E3CS-inc(A), and FedCS(A) all has been accelerated … compared with … Random",
        SPEED,
        faster_than_random,
    ),
    Claim(
        "pow-d slow",
        SECTION,
        "pow-d … does not promise us a commensurate convergence speed in our … volatile context",
        SPEED,
        powd_is_slow,
    ),
    Claim(
        "wider gap in non-iid",
        SECTION,
        "the impact on convergence speed seems to grow more significant in non-iid scenarios",
        GAP,
        wider_gap_in_noniid,
    ),
    Claim(
        "wider gap on CIFAR-10",
        SECTION,
        "the impact of CEP … is more significant for training on the CIFAR-10 dataset",
        GAP,
        wider_gap_on_cifar,
        ("both tasks",),
    ),
    Claim(
        "Random overtakes FedCS",
        SECTION,
        "Random(A) … gradually emulates FedCS(A) and eventually dominates it",
        FINAL,
        random_overtakes,
    ),
    Claim(
        "FedCS lowest",
        SECTION,
        "For all the experimental groups … the final test accuracy of … FedCS, is the lowest",
        FINAL,
        fedcs_is_lowest,
    ),
    Claim(
        "E3CS-0 second lowest",
        SECTION,
        "The method with the second-lowest accuracy is E3CS-0",
        FINAL,
        e3cs_0_is_second_lowest,
    ),
    Claim(
        "E3CS-inc has both",
        SECTION,
        "E3CS-inc … very promising convergence speed in the first stage while its final test "
        "accuracy does not suffer",
        BOTH,
        inc_has_both,
    ),
)
