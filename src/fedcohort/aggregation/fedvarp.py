"""The rule `fedvarp`: correct the average of the arrived by what is remembered (FedVARP)."""

from fedcohort.aggregation.base import Arrivals, Rule
from fedcohort.arrays import Floats


class FedVARP(Rule):
    """Average what is new in the updates that arrived, and add the average of all memories.

    The change is mean_S(d_i - y_i) + mean_all(y_j), where S are the clients that arrived and y_i
    is a client's last update before this one. All means are weighted by shares.

    Args:
        setting: Sizes.
    """

    normalises = True
    remembers_updates = True

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return the shares."""
        return arrivals.shares
