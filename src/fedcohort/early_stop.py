"""How long before the deadline a client stops its work, so that its answer still arrives."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats

GRACE = 2.0  # seconds
MOST_SHARE = 0.2  # of the time until the deadline


def stop_margin(deadline: npt.ArrayLike, grace: float = GRACE) -> Floats:
    """Return the seconds before a deadline at which a client stops.

    Args:
        deadline: Seconds that a client is given, any shape.
        grace: Seconds that are kept for the answer to travel; at most a fifth of the deadline.

    Examples:
        >>> stop_margin([5.0, 60.0]).tolist()
        [1.0, 2.0]
    """
    margin = np.minimum(grace, MOST_SHARE * np.asarray(deadline, dtype=np.float64))
    return np.asarray(margin)


def deadline_for(seconds: float, grace: float = GRACE) -> float:
    """Return the deadline at which clients stop after some seconds: what `stop_margin` undoes.

    Args:
        seconds: Seconds until clients stop.
        grace: Seconds that are kept for the answer to travel.

    Examples:
        >>> deadline_for(4.0), deadline_for(58.0)
        (5.0, 60.0)
    """
    return min(seconds + grace, seconds / (1 - MOST_SHARE))
