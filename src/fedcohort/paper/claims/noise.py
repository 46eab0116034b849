"""The noise of trained runs: what is left once the effects of scheme and world are known.

Groups of runs are two-way layouts, scheme by world. The noise is pooled over all of them and over
all schemes but FedCS. FedCS asks the same few clients for ever, so that its result depends on
what these own; its noise is larger and stands for itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fedcohort.statistics import UNKNOWN_NOISE, BySeed, Layout, Noise, distinct, pool_noise

APART = "fedcs"  # the scheme with a noise of its own


@dataclass(frozen=True)
class RunNoise:
    """The noise of the runs of a task.

    Attributes:
        others: Noise of one run of any scheme but FedCS.
        apart: Noise of FedCS less the mean of the other schemes in the same world.
        share: Part of `others` that the mean of the other schemes adds to `apart`.
    """

    others: Noise
    apart: Noise
    share: float

    def of_difference(self, first: str, second: str) -> Noise:
        """Return the noise of the difference of two schemes in one world."""
        if APART not in (first, second):
            return self.others.times(2)
        return self.apart + self.others.times(1 - self.share)


def estimate_noise(layouts: Iterable[Layout]) -> RunNoise:
    """Return the noise of some groups of runs.

    Args:
        layouts: Values by scheme and world, one layout for each group.
    """
    layouts = list(layouts)
    others = []
    squares = 0.0
    degrees = 0
    shares = 0.0
    for layout in layouts:
        rest = {name: values for name, values in layout.items() if name != APART and values}
        others.append(rest)
        leads, number = _leads(layout.get(APART, {}), rest)
        if len(leads) > 1:
            squares += float(np.var(leads)) * len(leads)
            degrees += len(leads) - 1
            shares += (len(leads) - 1) / number
    if not degrees:
        return RunNoise(pool_noise(others), UNKNOWN_NOISE, share=0.0)
    return RunNoise(pool_noise(others), Noise(squares / degrees, degrees), shares / degrees)


def _leads(apart: BySeed, rest: Layout) -> tuple[list[float], int]:
    """Return FedCS less the mean of the others by world, and how many others there are.

    Only schemes with a value in every world of FedCS count: a mean must not change its members.
    """
    complete = [values for values in distinct(rest) if apart.keys() <= values.keys()]
    if not complete:
        return [], 0
    leads = []
    for seed, value in apart.items():
        leads.append(value - float(np.mean([values[seed] for values in complete])))
    return leads, len(complete)
