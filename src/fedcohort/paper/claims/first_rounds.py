"""First rounds at a target, and comparisons of them where some runs never got there.

A run that has not reached the target by its last round says only that its first round lies beyond
it. Such a bound often tells which of two runs was first, but not by how much. A comparison with a
bound is therefore decided by the signs of its worlds.
"""

from dataclasses import dataclass
from math import inf, log

from fedcohort.paper.claims.claim import Check
from fedcohort.paper.claims.evidence import Evidence
from fedcohort.paper.claims.group import Group
from fedcohort.statistics import ROUNDING, BySeed, Noise


@dataclass(frozen=True)
class FirstRounds:
    """When the runs of a scheme first reached a target, as logs of rounds.

    Attributes:
        reached: Log of the first round, by world.
        beyond: Log of the first round that each run that did not get there may have reached it
            in, the one after its last, by world.
    """

    reached: BySeed
    beyond: BySeed

    @property
    def worlds(self) -> set[int]:
        """The worlds of all runs."""
        return {*self.reached, *self.beyond}


def first_rounds(evidence: Evidence, group: Group, selector: str, target: int = 0) -> FirstRounds:
    """Return when the runs of a scheme reached a target; target 0 is the lowest."""
    found = evidence.trained(group, selector, group.accuracy(target))
    reached = {seed: log(round) for seed, round in found.items() if round < inf}
    beyond = {}
    for seed, rounds in evidence.played(group, selector).items():
        if seed not in reached:
            beyond[seed] = log(rounds + 1)
    return FirstRounds(reached, beyond)


def compare_rounds(
    description: str,
    slow: FirstRounds,
    fast: FirstRounds,
    noise: Noise | None = None,
    lead: float = 0.0,
) -> Check:
    """Check that one scheme reaches a target before another.

    Worlds that do not tell which was first are left out: those in which neither got there, and
    those in which one stopped before the other got there. A run that did not get there may do
    so in the round after its last.

    Args:
        description: What is compared.
        slow: The scheme that should come later.
        fast: The scheme that should come first.
        noise: Noise of the difference of their logs; None if its own spread decides.
        lead: How far ahead `fast` must be, in logs.
    """
    supports = {}
    by_signs = False
    worlds = slow.worlds & fast.worlds
    for seed in sorted(worlds):
        if seed in slow.reached and seed in fast.reached:
            supports[seed] = slow.reached[seed] - fast.reached[seed] - lead
            continue
        support = 0.0
        if seed in fast.reached:
            support = max(0.0, slow.beyond[seed] - fast.reached[seed] - lead)  # at least this
        elif seed in slow.reached:
            support = min(0.0, slow.reached[seed] - fast.beyond[seed] - lead)  # at most this
        if abs(support) > ROUNDING:
            supports[seed] = support
            by_signs = True
    return Check(description, supports, "rounds", noise, by_signs, was_run=bool(worlds))
