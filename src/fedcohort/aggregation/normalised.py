"""The rule `normalised`: the average over the clients that arrive."""

from fedcohort.aggregation.base import Arrivals, Rule
from fedcohort.arrays import Floats


class Normalised(Rule):
    """Average the updates that arrived, by their shares: FedAvg.

    The model moves by a full step however many clients fail.

    Args:
        setting: Sizes.
    """

    normalises = True

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return the shares."""
        return arrivals.shares
