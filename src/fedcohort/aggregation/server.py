"""The server's step: how far a model moves along the change that a rule returns."""

from typing import Any


def server_step(
    model: Any, change: Any, velocity: Any, rate: Any, momentum: Any
) -> tuple[Any, Any]:
    """Move the models along the change, with a server rate and momentum.

    A rate of 1 and a momentum of 0 add the change as it is.

    Args:
        model: The models of all runs [R, P].
        change: What the aggregation rule returned [R, P].
        velocity: The velocity of the round before [R, P], zeros at first.
        rate: Server learning rate of each run [R].
        momentum: Server momentum of each run [R].

    Returns:
        The new models [R, P] and the new velocity [R, P].

    Examples:
        >>> import numpy as np
        >>> from fedcohort.aggregation.server import server_step
        >>> half = np.array([0.5])
        >>> model, velocity = server_step(
        ...     model=np.array([[10.0]]),
        ...     change=np.array([[1.0]]),
        ...     velocity=np.array([[2.0]]),
        ...     rate=half,
        ...     momentum=half,
        ... )
        >>> velocity.tolist(), model.tolist()
        ([[2.0]], [[11.0]])
    """
    velocity = momentum[:, None] * velocity + change
    return model + rate[:, None] * velocity, velocity
