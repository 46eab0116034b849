"""The rule `normalised`: the average over the clients that arrive."""

from typing import Any


def normalised(step: Any, arrived: Any) -> Any:
    """Return the average update of the clients that arrived.

    The model moves by a full step however many clients fail, and stays if none arrive.

    Args:
        step: Sum of share_i (Theta_i - Theta) over the clients i that arrived [R, P].
        arrived: Sum of the shares of the clients that arrived [R].

    Returns:
        The change of each run's model [R, P].

    Examples:
        >>> import numpy as np
        >>> from fedcohort.aggregation.normalised import normalised
        >>> normalised(np.array([[0.5, 1.0]]), np.array([0.25])).tolist()
        [[2.0, 4.0]]
    """
    is_empty = ~(arrived > 0)
    divisor = arrived + is_empty  # 1 instead of 0, so that nothing is divided by zero
    change = step / divisor[:, None]
    change[is_empty] = 0.0
    return change
