"""The comparisons that decide the paper's claims about training.

Speed is the log of the first round at a target accuracy, the lowest unless said otherwise. The
final accuracy is that of the last round.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from math import inf, log

from fedcohort.paper.cells import Quantity
from fedcohort.paper.claims.claim import Check, compare
from fedcohort.paper.claims.evidence import Evidence
from fedcohort.paper.claims.first_rounds import compare_rounds, first_rounds
from fedcohort.paper.claims.noise import BySeed, Noise, RunNoise, estimate_noise
from fedcohort.paper.labels import heading, partition_label, update_label
from fedcohort.paper.setting import COHORTS, PAPER, TASKS
from fedcohort.selection.registry import PAPER_SELECTORS

# "does not suffer an undesirable drop" and "no (or only minor) final accuracy loss": one point
MINOR = 0.01
GROUPS = tuple(product(PAPER["partitions"], PAPER["mus"]))  # (partition, mu)
E3CS = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc")


@lru_cache(maxsize=64)
def noise_of(evidence: Evidence, task: str, quantity: Quantity) -> RunNoise:
    """Return the noise of a quantity, pooled over all groups and cohort sizes of a task.

    Runs that did not reach a target are left out: their rounds are not known.
    """
    layouts = []
    for (partition, mu), cohort in product(GROUPS, COHORTS):
        layout = {}
        for name in PAPER_SELECTORS:
            values = evidence.trained(task, name, partition, mu, cohort, quantity)
            if quantity != "final":
                values = {seed: log(round) for seed, round in values.items() if round < inf}
            layout[name] = values
        if quantity != "final" and _are_one(layout, evidence.rounds[task] // 4):
            del layout["e3cs-inc"]
        layouts.append(layout)
    return estimate_noise(layouts)


def _are_one(layout: Mapping[str, BySeed], turn: int) -> bool:
    """Return whether E3CS-0 and E3CS-inc are one scheme here: they are until E3CS-inc turns."""
    rounds = [*layout["e3cs-0"].values(), *layout["e3cs-inc"].values()]
    return bool(rounds) and max(rounds) <= log(turn)


def faster(
    evidence: Evidence,
    task: str,
    fast: str,
    slow: str,
    partition: str,
    mu: float,
    cohort: int = 20,
    target: int = 0,
    factor: float = 1.0,
) -> Check:
    """Check that one scheme reaches a target before another, in fewer rounds by a factor."""
    accuracy = TASKS[task]["targets"][target]
    relation = "before"
    if factor != 1:
        relation = f"{factor:g} times before"
    words = f"{fast} {relation} {slow}, {describe_group(partition, mu, cohort)}"
    if target:
        words += f", {heading(accuracy)}"
    return compare_rounds(
        words,
        slow=first_rounds(evidence, task, slow, partition, mu, cohort, target),
        fast=first_rounds(evidence, task, fast, partition, mu, cohort, target),
        noise=noise_of(evidence, task, accuracy).of_difference(fast, slow),
        lead=log(factor),
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
        unit="accuracy",
        noise=noise_of(evidence, task, "final").of_difference(high, low),
        lead=lead,
    )


def describe_group(partition: str, mu: float, cohort: int) -> str:
    """Return a group of runs in words."""
    words = f"{partition_label(partition)}, {update_label(mu)}"
    if cohort != 20:
        words += f", k={cohort}"
    return words


def twice_as_fast(baseline: str) -> Callable[[Evidence, str], Iterator[Check]]:
    """Return the comparisons of the abstract against one baseline, two for each candidate.

    A candidate is a kind of E3CS in a group at a target: it needs half of the baseline's rounds,
    and ends at most a point below it.
    """

    def checks(evidence: Evidence, task: str) -> Iterator[Check]:
        targets = range(len(TASKS[task]["targets"]))
        for (partition, mu), name, target in product(GROUPS, E3CS, targets):
            yield faster(evidence, task, name, baseline, partition, mu, target=target, factor=2)
            yield better(evidence, task, name, baseline, partition, mu, lead=-MINOR)

    return checks


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


def faster_at(target: int) -> Callable[[Evidence, str], Iterator[Check]]:
    """Return the comparisons with Random at a higher target."""

    def checks(evidence: Evidence, task: str) -> Iterator[Check]:
        for (partition, mu), fast in product(GROUPS, ("e3cs-0", "e3cs-inc", "fedcs")):
            yield faster(evidence, task, fast, "random", partition, mu, target=target)

    return checks


def lead_shrinks(evidence: Evidence, task: str) -> Iterator[Check]:
    """FedCS's lead over Random, as a ratio of rounds, is smaller at the second target.

    Worlds count in which both reached both targets.
    """
    first, second = (
        noise_of(evidence, task, accuracy).of_difference("random", "fedcs")
        for accuracy in TASKS[task]["targets"][:2]
    )
    # The same runs at two targets are not independent: the fewer degrees count.
    noise = Noise(first.variance + second.variance, min(first.degrees, second.degrees))
    for partition, mu in GROUPS:
        yield compare(
            f"Random/FedCS smaller at the second target, {describe_group(partition, mu, 20)}",
            higher=lead_in_rounds(evidence, task, "random", "fedcs", partition, mu, target=0),
            lower=lead_in_rounds(evidence, task, "random", "fedcs", partition, mu, target=1),
            unit="rounds",
            noise=noise,
            was_run=_were_run(evidence, task, ("random", "fedcs"), partition, mu),
        )


def _were_run(
    evidence: Evidence, task: str, selectors: tuple[str, ...], partition: str, mu: float
) -> bool:
    """Return whether some world has runs of all these schemes, wherever they got."""
    worlds = [set(evidence.played(task, name, partition, mu, 20)) for name in selectors]
    return bool(set.intersection(*worlds))


def lead_in_rounds(
    evidence: Evidence,
    task: str,
    slow: str,
    fast: str,
    partition: str,
    mu: float,
    target: int = 0,
) -> dict[int, float]:
    """Return the log of one scheme's rounds over another's, in worlds where both got there."""
    later = first_rounds(evidence, task, slow, partition, mu, target=target).reached
    sooner = first_rounds(evidence, task, fast, partition, mu, target=target).reached
    return {seed: later[seed] - sooner[seed] for seed in later if seed in sooner}


def powd_is_slow(evidence: Evidence, task: str) -> Iterator[Check]:
    """Random is faster than pow-d."""
    for partition, mu in GROUPS:
        yield faster(evidence, task, "random", "pow-d", partition, mu)


def wider_gap_in_noniid(evidence: Evidence, task: str) -> Iterator[Check]:
    """The gap between fastest and slowest, FedCS and pow-d, is wider with non-iid data."""
    noise = noise_of(evidence, task, TASKS[task]["targets"][0]).of_difference("pow-d", "fedcs")
    for mu in PAPER["mus"]:
        yield compare(
            f"pow-d/FedCS wider in non-iid, {update_label(mu)}",
            higher=lead_in_rounds(evidence, task, "pow-d", "fedcs", "primary-label", mu),
            lower=lead_in_rounds(evidence, task, "pow-d", "fedcs", "iid", mu),
            unit="rounds",
            noise=noise.times(2),
        )


def wider_gap_on_cifar(evidence: Evidence, ground: str) -> Iterator[Check]:
    """The gap is wider on CIFAR-10 than on EMNIST-Letter.

    If one data set was played for both tasks, there is nothing to compare.
    """
    if len(set(evidence.datasets.values())) == 1:
        return
    noises = []
    for task in ("cifar10", "emnist-letters"):
        noise = noise_of(evidence, task, TASKS[task]["targets"][0])
        noises.append(noise.of_difference("pow-d", "fedcs"))
    for partition, mu in GROUPS:
        yield compare(
            f"pow-d/FedCS wider on CIFAR-10, {partition_label(partition)}, {update_label(mu)}",
            higher=lead_in_rounds(evidence, "cifar10", "pow-d", "fedcs", partition, mu),
            lower=lead_in_rounds(evidence, "emnist-letters", "pow-d", "fedcs", partition, mu),
            unit="rounds",
            noise=noises[0] + noises[1],
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
    """Every scheme but FedCS ends above E3CS-0, and FedCS below it."""
    for partition, mu in GROUPS:
        yield better(evidence, task, "e3cs-0", "fedcs", partition, mu)
    for (partition, mu), other in product(GROUPS, PAPER_SELECTORS):
        if other not in ("fedcs", "e3cs-0"):
            yield better(evidence, task, other, "e3cs-0", partition, mu)


def inc_has_both(evidence: Evidence, task: str) -> Iterator[Check]:
    """E3CS-inc is faster than Random and ends at most a point below it."""
    for partition, mu in GROUPS:
        yield faster(evidence, task, "e3cs-inc", "random", partition, mu)
        yield better(evidence, task, "e3cs-inc", "random", partition, mu, lead=-MINOR)
