"""Classes of clients: equal blocks of clients that share one success rate."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.checks import check_array, check_int

PAPER_RATES = (0.1, 0.3, 0.6, 0.9)


def class_of(num_clients: int, num_classes: int = len(PAPER_RATES)) -> npt.NDArray[np.int64]:
    """Return the class of every client.

    Classes are blocks of neighbouring ids. If K is no multiple of their number, the first classes
    have one client more.

    Args:
        num_clients: Number of clients, K.
        num_classes: Number of classes, at most K.

    Returns:
        The class of each client [K], counted from 0.

    Raises:
        ValueError: If there are fewer clients than classes.

    Examples:
        >>> from fedcohort.world.classes import class_of
        >>> class_of(5, num_classes=2).tolist()
        [0, 0, 0, 1, 1]
    """
    check_int("num_classes", num_classes, 1)
    check_int("num_clients", num_clients, num_classes)
    blocks = np.array_split(np.arange(num_clients), num_classes)
    sizes = [len(block) for block in blocks]
    return np.repeat(np.arange(num_classes), sizes)


def class_rates(num_clients: int, rates: npt.ArrayLike = PAPER_RATES) -> Floats:
    """Return the success rate of every client, from one rate per class.

    Args:
        num_clients: Number of clients, K.
        rates: One rate in [0, 1] per class. The default is the paper's four classes.

    Returns:
        The success rate of each client [K].

    Raises:
        ValueError: If a rate lies outside [0, 1], or there are fewer clients than rates.

    Examples:
        >>> from fedcohort import class_rates
        >>> class_rates(4, [0.5, 1.0]).tolist()
        [0.5, 0.5, 1.0, 1.0]
    """
    values = np.atleast_1d(np.asarray(rates, dtype=np.float64))
    check_array("rates", values, (values.size,), 0.0, 1.0)
    return values[class_of(num_clients, values.size)]
