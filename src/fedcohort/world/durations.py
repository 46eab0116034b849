"""How long clients take: their local epochs, and seconds instead of plain answers."""

from collections.abc import Iterator
from math import erf, sqrt

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats
from fedcohort.checks import check_array, check_int
from fedcohort.rng import Rng, RngLike, as_rng, batch_shape


def local_epochs(
    num_clients: int, rng: RngLike, choices: tuple[int, ...] = (1, 2, 3, 4)
) -> npt.NDArray[np.int64]:
    """Draw each client's number of local epochs once, independently of how often it fails.

    Args:
        num_clients: Number of clients, K.
        rng: Seed or generator for one run, or a list of S seeds for S runs.
        choices: Numbers of epochs that are drawn equally often.

    Returns:
        The epochs of each client [K], or [S, K] for a list of seeds.

    Raises:
        ValueError: If there is no client or no choice, or a choice is below 1.

    Examples:
        >>> from fedcohort.world.durations import local_epochs
        >>> local_epochs(3, rng=0, choices=(2,)).tolist()
        [2, 2, 2]
    """
    source = as_rng(rng, "epochs")
    options = np.array([check_int("choices", choice, 1) for choice in choices])
    check_int("number of choices", options.size, 1)
    check_int("num_clients", num_clients, 1)

    draws = source.random((*batch_shape(source), num_clients))
    chosen = (draws * options.size).astype(np.int64)
    return options[chosen]


def timed(
    answers: Iterator[Bools], seconds: npt.ArrayLike, rng: RngLike, jitter: float = 0.0
) -> Iterator[Floats]:
    """Turn rows of answers into rows of seconds, with infinity for clients that do not answer.

    Args:
        answers: Rows [..., K] of who answers, one per round.
        seconds: Median time of each client, [K] or [..., K].
        rng: Seed, generator or list of seeds, as for `bernoulli`.
        jitter: Spread of the times: the standard deviation of their logarithm. 0 is no spread.

    Returns:
        An iterator of rows [..., K] of seconds, as long as the answers.

    Raises:
        ValueError: If a time or the jitter is negative or not finite.

    Examples:
        >>> from fedcohort.world.durations import timed
        >>> from fedcohort.world.recorded import replay
        >>> next(timed(replay([[1, 0]]), seconds=[3.0, 5.0], rng=0)).tolist()
        [3.0, inf]
    """
    base = np.asarray(seconds, dtype=np.float64)
    check_array("seconds", base, base.shape, 0.0, np.inf)
    check_array("jitter", jitter, (), 0.0, np.inf)
    source = as_rng(rng, "durations")
    return (np.where(row, base * _factors(source, row.shape, jitter), np.inf) for row in answers)


def success_before(deadline: float, seconds: Floats, jitter: float) -> Floats:
    """Return how likely a client that answers is in time.

    Args:
        deadline: Seconds after which an answer is late.
        seconds: Median time of each client, [..., K].
        jitter: Spread of the times, as for `timed`.

    Returns:
        The probability that the time is at most the deadline, [..., K].

    Examples:
        >>> import numpy as np
        >>> from fedcohort.world.durations import success_before
        >>> success_before(3.0, np.array([2.0, 4.0]), jitter=0.0).tolist()
        [1.0, 0.0]
        >>> success_before(3.0, np.array([3.0]), jitter=0.7).tolist()
        [0.5]
    """
    if not jitter:
        return (seconds <= deadline).astype(np.float64)
    spare = np.log(deadline / seconds) / (jitter * sqrt(2))
    return np.asarray((1 + np.vectorize(erf)(spare)) / 2)


def log_normal(source: Rng, shape: tuple[int, ...], spread: Floats | float) -> Floats:
    """Return log-normal factors of median 1.

    They are made from uniforms by the method of Box and Muller, because runs played together draw
    the same uniforms as each run alone.

    Args:
        source: Source of randomness.
        shape: Shape [..., K] of the factors.
        spread: Standard deviation of their logarithms, a number or [..., K].
    """
    clients = shape[-1]
    draws = source.random((*shape[:-1], 2 * clients))
    radius = np.sqrt(-2.0 * np.log1p(-draws[..., :clients]))
    angle = 2 * np.pi * draws[..., clients:]
    return np.asarray(np.exp(spread * radius * np.cos(angle)))


def _factors(source: Rng, shape: tuple[int, ...], jitter: float) -> Floats | float:
    return log_normal(source, shape, jitter) if jitter else 1.0
