"""The comparisons that decide the paper's claims about training.

Speed is the log of the first round at a target accuracy, the lowest unless said otherwise. The
final accuracy is that of the last round.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain, product
from math import inf, log

from fedcohort.paper.cells import Quantity
from fedcohort.paper.claims.claim import Check, compare
from fedcohort.paper.claims.evidence import Evidence
from fedcohort.paper.claims.first_rounds import compare_rounds, first_rounds
from fedcohort.paper.claims.group import Group, groups_of
from fedcohort.paper.claims.noise import RunNoise, estimate_noise
from fedcohort.paper.labels import heading, update_label
from fedcohort.paper.setting import COHORTS, PAPER, TASKS
from fedcohort.selection.registry import PAPER_SELECTORS
from fedcohort.statistics import BySeed, Noise

# "does not suffer an undesirable drop" and "no (or only minor) final accuracy loss": one point
MINOR = 0.01
E3CS = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc")


@lru_cache(maxsize=64)
def noise_of(evidence: Evidence, task: str, quantity: Quantity) -> RunNoise:
    """Return the noise of a quantity, pooled over all groups and cohort sizes of a task.

    Runs that did not reach a target are left out: their rounds are not known.
    """
    layouts = []
    for group in chain.from_iterable(groups_of(task, cohort) for cohort in COHORTS):
        layout = {}
        for name in PAPER_SELECTORS:
            values = evidence.trained(group, name, quantity)
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
    return turn > 0 and bool(rounds) and max(rounds) <= log(turn)


def faster(
    evidence: Evidence, group: Group, fast: str, slow: str, target: int = 0, factor: float = 1.0
) -> Check:
    """Check that one scheme reaches a target before another, in fewer rounds by a factor."""
    accuracy = group.accuracy(target)
    relation = "before"
    if factor != 1:
        relation = f"{factor:g} times before"
    words = f"{fast} {relation} {slow}, {group}"
    if target:
        words += f", {heading(accuracy)}"
    return compare_rounds(
        words,
        slow=first_rounds(evidence, group, slow, target),
        fast=first_rounds(evidence, group, fast, target),
        noise=noise_of(evidence, group.task, accuracy).of_difference(fast, slow),
        lead=log(factor),
    )


def better(evidence: Evidence, group: Group, high: str, low: str, lead: float = 0.0) -> Check:
    """Check that one scheme ends above another by more than a lead.

    A negative lead means: at most so far below.
    """
    relation = "ends above"
    if lead:
        relation = f"ends at most {-100 * lead:g} point below"
    return compare(
        f"{high} {relation} {low}, {group}",
        higher=evidence.trained(group, high, "final"),
        lower=evidence.trained(group, low, "final"),
        unit="accuracy",
        noise=noise_of(evidence, group.task, "final").of_difference(high, low),
        lead=lead,
    )


def twice_as_fast(baseline: str) -> Callable[[Evidence, str], Iterator[Check]]:
    """Return the comparisons of the abstract against one baseline, two for each candidate.

    A candidate is a kind of E3CS in a group at a target: it needs half of the baseline's rounds,
    and ends at most a point below it.
    """

    def checks(evidence: Evidence, task: str) -> Iterator[Check]:
        targets = range(len(TASKS[task]["targets"]))
        for group, name, target in product(groups_of(task), E3CS, targets):
            yield faster(evidence, group, name, baseline, target=target, factor=2)
            yield better(evidence, group, name, baseline, lead=-MINOR)

    return checks


def fedcs_is_fastest(evidence: Evidence, task: str) -> Iterator[Check]:
    """FedCS reaches the lowest target first."""
    for group, other in product(groups_of(task), PAPER_SELECTORS):
        if other != "fedcs":
            yield faster(evidence, group, "fedcs", other)


def followed_by_e3cs(evidence: Evidence, task: str) -> Iterator[Check]:
    """E3CS-0 and E3CS-inc come before the fairer schemes."""
    followers = ("e3cs-0", "e3cs-inc")
    fairer = ("e3cs-0.5", "e3cs-0.8", "random", "pow-d")
    for group, fast, slow in product(groups_of(task), followers, fairer):
        yield faster(evidence, group, fast, slow)


def faster_than_random(evidence: Evidence, task: str) -> Iterator[Check]:
    """E3CS-0, E3CS-inc and FedCS are faster than Random."""
    for group, fast in product(groups_of(task), ("e3cs-0", "e3cs-inc", "fedcs")):
        yield faster(evidence, group, fast, "random")


def faster_at(target: int) -> Callable[[Evidence, str], Iterator[Check]]:
    """Return the comparisons with Random at a higher target."""

    def checks(evidence: Evidence, task: str) -> Iterator[Check]:
        for group, fast in product(groups_of(task), ("e3cs-0", "e3cs-inc", "fedcs")):
            yield faster(evidence, group, fast, "random", target=target)

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
    for group in groups_of(task):
        yield compare(
            f"Random/FedCS smaller at the second target, {group}",
            higher=lead_in_rounds(evidence, group, "random", "fedcs", target=0),
            lower=lead_in_rounds(evidence, group, "random", "fedcs", target=1),
            unit="rounds",
            noise=noise,
            was_run=_were_run(evidence, group, "random", "fedcs"),
        )


def _were_run(evidence: Evidence, group: Group, first: str, second: str) -> bool:
    """Return whether some world has runs of both schemes, wherever they got."""
    return bool(evidence.played(group, first).keys() & evidence.played(group, second).keys())


def lead_in_rounds(
    evidence: Evidence, group: Group, slow: str, fast: str, target: int = 0
) -> dict[int, float]:
    """Return the log of one scheme's rounds over another's, in worlds where both got there."""
    later = first_rounds(evidence, group, slow, target).reached
    sooner = first_rounds(evidence, group, fast, target).reached
    return {seed: later[seed] - sooner[seed] for seed in later if seed in sooner}


def powd_is_slow(evidence: Evidence, task: str) -> Iterator[Check]:
    """Random is faster than pow-d."""
    for group in groups_of(task):
        yield faster(evidence, group, "random", "pow-d")


def wider_gap_in_noniid(evidence: Evidence, task: str) -> Iterator[Check]:
    """The gap between fastest and slowest, FedCS and pow-d, is wider with non-iid data."""
    noise = noise_of(evidence, task, TASKS[task]["targets"][0]).of_difference("pow-d", "fedcs")
    for mu in PAPER["mus"]:
        skewed = Group(task, "primary-label", mu)
        even = Group(task, "iid", mu)
        yield compare(
            f"pow-d/FedCS wider in non-iid, {update_label(mu)}",
            higher=lead_in_rounds(evidence, skewed, "pow-d", "fedcs"),
            lower=lead_in_rounds(evidence, even, "pow-d", "fedcs"),
            unit="rounds",
            noise=noise.times(2),
            was_run=all(_were_run(evidence, group, "pow-d", "fedcs") for group in (skewed, even)),
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
    for group in groups_of("cifar10"):
        letters = replace(group, task="emnist-letters")
        yield compare(
            f"pow-d/FedCS wider on CIFAR-10, {group}",
            higher=lead_in_rounds(evidence, group, "pow-d", "fedcs"),
            lower=lead_in_rounds(evidence, letters, "pow-d", "fedcs"),
            unit="rounds",
            noise=noises[0] + noises[1],
            was_run=all(_were_run(evidence, each, "pow-d", "fedcs") for each in (group, letters)),
        )


def random_overtakes(evidence: Evidence, task: str) -> Iterator[Check]:
    """Random ends above FedCS."""
    for group in groups_of(task):
        yield better(evidence, group, "random", "fedcs")


def fedcs_is_lowest(evidence: Evidence, task: str) -> Iterator[Check]:
    """Every scheme ends above FedCS."""
    for group, other in product(groups_of(task), PAPER_SELECTORS):
        if other != "fedcs":
            yield better(evidence, group, other, "fedcs")


def e3cs_0_is_second_lowest(evidence: Evidence, task: str) -> Iterator[Check]:
    """Every scheme but FedCS ends above E3CS-0, and FedCS below it."""
    for group in groups_of(task):
        yield better(evidence, group, "e3cs-0", "fedcs")
    for group, other in product(groups_of(task), PAPER_SELECTORS):
        if other not in ("fedcs", "e3cs-0"):
            yield better(evidence, group, other, "e3cs-0")


def inc_has_both(evidence: Evidence, task: str) -> Iterator[Check]:
    """E3CS-inc is faster than Random and ends at most a point below it."""
    for group in groups_of(task):
        yield faster(evidence, group, "e3cs-inc", "random")
        yield better(evidence, group, "e3cs-inc", "random", lead=-MINOR)


def failing_clients_lose_more(evidence: Evidence, task: str) -> Iterator[Check]:
    """The model's loss is higher on the data of the class that fails most."""
    for group, name in product(groups_of(task), PAPER_SELECTORS):
        supports = {}
        for seed, losses in evidence.class_losses(group, name).items():
            supports[seed] = float(losses[0] - losses[-1])
        yield Check(f"{name}: higher loss of the class that fails most, {group}", supports, "loss")
