"""The rule `paper`: a client that does not arrive counts as the current model."""

from typing import Any


def paper(step: Any, arrived: Any) -> Any:
    """Return the step as it is: missing clients count as the current model (P1).

    The model moves less when fewer clients arrive, and stays if none arrive.

    Args:
        step: Sum of share_i (Theta_i - Theta) over the clients i that arrived [R, P].
        arrived: Sum of the shares of the clients that arrived [R].

    Returns:
        The change of each run's model [R, P].

    Examples:
        >>> import numpy as np
        >>> from fedcohort.aggregation.paper import paper
        >>> paper(np.array([[0.5, 1.0]]), np.array([0.25])).tolist()
        [[0.5, 1.0]]
    """
    return step
