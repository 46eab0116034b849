"""The sequential pivotal method on clients that lie ready, end to end.

To lay the clients takes a pass over everyone. Where probabilities do not change, the lines are kept
and each draw takes O(k log K).
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.rng import Uniforms
from fedcohort.selection.duels import takes_left


@dataclass(frozen=True, eq=False)
class PivotalLine:
    """The clients of one run.

    Attributes:
        certain: Clients that are drawn for certain, ascending.
        ids: The other clients that have a probability, in the order of the line.
        sums: Where each of these ends on the line.
        count: Length of the line, the number of clients that are drawn from it.
    """

    certain: Ints
    ids: Ints
    sums: Floats
    count: int

    def draw(self, draws: Floats) -> Ints:
        """Draw the cohort of one run with two uniform numbers per client, in ascending order."""
        drawn = self._duel(draws) if self.count else self.certain[:0]
        return np.sort(np.concatenate([drawn, self.certain]))

    def _duel(self, draws: Floats) -> Ints:
        """Draw one client per stratum, a unit of the line.

        A client astride the border of two strata is drawn in one of them at most. It reaches
        `head` into the stratum after the border and starts `tail` before the border. Unless it
        is drawn there, the stratum's client lies at a place uniform on the rest of the stratum.
        """
        count = self.count
        sums = self.sums

        # 1. Find who is astride a border.
        borders = np.arange(1, count)
        astride = np.searchsorted(sums, borders)  # first client that ends on the border or beyond
        ends = sums.take(astride)
        crosses = ends > borders
        begins = np.where(astride > 0, sums.take(astride - 1), 0.0)
        head = np.append(0.0, np.where(crosses, ends - borders, 0.0))
        tail = np.where(crosses, borders - begins, 0.0)

        # 2. Find the client at a uniform place beyond the head of each stratum.
        target = np.arange(count) + head + (1 - draws[:count]) * (1 - head)
        inner = np.append(0, astride + 1)  # whatever the rounding, beyond the client astride
        located = np.clip(np.searchsorted(sums, target), inner, sums.size - 1)

        # 3. Decide the duels: the client astride wins on the left, on the right, or not at all.
        meets = (located[:-1] == astride) & crosses
        is_left = takes_left(meets, head[1:], tail, draws[count : 2 * count - 1])
        return self.ids.take(np.where(is_left, inner - 1, located))


@dataclass(frozen=True, eq=False)
class PivotalLines:
    """The lines of all runs, each of which draws `size` clients."""

    lines: list[PivotalLine]
    batch: tuple[int, ...]
    size: int

    def draw(self, rng: Uniforms) -> Ints:
        """Draw a cohort in every run; return client ids in ascending order, [..., k]."""
        draws = rng.random((*self.batch, 2 * self.size)).reshape(len(self.lines), 2 * self.size)
        rows = [line.draw(own) for line, own in zip(self.lines, draws, strict=True)]
        return np.stack(rows).reshape(*self.batch, self.size)
