"""The rule `paper`: a client that does not arrive counts as the current model."""

from fedcohort.aggregation.base import Arrivals, Rule
from fedcohort.arrays import Floats


class Paper(Rule):
    """Weigh each update by its share: missing clients count as the current model (P1).

    The model moves less when fewer clients arrive.

    Args:
        setting: Sizes.
    """

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return the shares."""
        return arrivals.shares
