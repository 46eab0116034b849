"""The server's step: how far a model moves along the change that a rule returns.

The change of a round plays the part of a gradient: the server can add it as it is, with momentum,
or take an adaptive step (FedAdam, FedYogi).
"""

from typing import Any

SERVER_OPTIMIZERS = ("sgd", "adam", "yogi")

# The values of the paper that introduced adaptive steps of the server (Reddi et al., 2021).
FIRST_DECAY = 0.9
SECOND_DECAY = 0.99
ADAPTIVITY = 1e-3


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


def adaptive_step(
    model: Any, change: Any, first: Any, second: Any, rate: Any, optimizer: str
) -> tuple[Any, Any, Any]:
    """Move the models by the change, scaled for each weight by its recent size.

    Args:
        model: The models of all runs [R, P].
        change: What the aggregation rule returned [R, P].
        first: Moving average of the changes [R, P], zeros at first.
        second: Moving average of their squares [R, P], zeros at first.
        rate: Server learning rate of each run [R].
        optimizer: "adam", or "yogi", whose average of squares grows and shrinks more slowly.

    Returns:
        The new models and both averages, [R, P] each.

    Examples:
        >>> import numpy as np
        >>> from fedcohort.aggregation.server import adaptive_step
        >>> zero = np.array([[0.0]])
        >>> one = np.array([[1.0]])
        >>> model, first, second = adaptive_step(zero, one, zero, zero, np.array([1.0]), "adam")
        >>> round(float(first[0, 0]), 3), round(float(second[0, 0]), 3)
        (0.1, 0.01)
        >>> round(float(model[0, 0]), 3)
        0.99
    """
    square = change * change
    first = FIRST_DECAY * first + (1 - FIRST_DECAY) * change
    if optimizer == "yogi":
        sign = (second > square) * 1.0 - (second < square) * 1.0
        second = second - (1 - SECOND_DECAY) * square * sign
    else:
        second = SECOND_DECAY * second + (1 - SECOND_DECAY) * square
    model = model + rate[:, None] * first / (second**0.5 + ADAPTIVITY)
    return model, first, second
