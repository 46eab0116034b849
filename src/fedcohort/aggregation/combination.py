"""Combine weighted updates, on NumPy arrays and on PyTorch tensors alike."""

from typing import Any


def combine(weights: Any, updates: Any, normalises: Any) -> Any:
    """Return the change of every run's model.

    Args:
        weights: Weight of each of J updates in each of R runs [R, J]; 0 for those of other runs.
        updates: The updates [J, P].
        normalises: Which runs divide by the sum of their weights [R], bool.

    Returns:
        The change of each model [R, P], 0 where a run has no weights.

    Examples:
        >>> import numpy as np
        >>> weights = np.array([[0.25, 0.25, 0.0], [0.0, 0.0, 0.5]])
        >>> updates = np.array([[1.0], [3.0], [5.0]])
        >>> combine(weights, updates, normalises=np.array([True, False])).tolist()
        [[2.0], [2.5]]
    """
    # One matrix product adds up in the same order every time.
    change = weights @ updates
    total = weights.sum(-1)
    # 1 where nothing is divided: by choice, or because nothing arrived.
    divides = normalises & (total > 0)
    divisor = total * divides + ~divides
    return change / divisor[:, None]
