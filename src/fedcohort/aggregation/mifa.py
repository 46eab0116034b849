"""The rule `mifa`: average the last update of every client (MIFA)."""

from fedcohort.aggregation.base import Arrivals, Rule
from fedcohort.arrays import Floats


class Mifa(Rule):
    """Average the last known updates of ALL clients, by their shares.

    A client that fails is represented by its last update, and one that was never heard of by no
    change. MIFA as published starts once everybody was heard of; here it starts at once.

    Args:
        setting: Sizes.
    """

    remembers_updates = True

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return the shares: new updates take the place of the old ones in the average."""
        return arrivals.shares
