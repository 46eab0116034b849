"""Who would answer, round by round: one seed is one world, the same for every selector compared."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats
from fedcohort.checks import check_array, check_int
from fedcohort.rng import Rng, RngLike, as_rng, batch_shape, stream

PAPER_RATES = (0.1, 0.3, 0.6, 0.9)


def class_of(num_clients: int, num_classes: int = len(PAPER_RATES)) -> npt.NDArray[np.int64]:
    """Return each client's class: equal blocks in order of id; where K does not divide, earlier blocks have one more."""
    check_int("num_clients", num_clients, check_int("num_classes", num_classes, 1))
    sizes = [len(block) for block in np.array_split(np.arange(num_clients), num_classes)]
    return np.repeat(np.arange(num_classes), sizes)


def class_rates(num_clients: int, rates: npt.ArrayLike = PAPER_RATES) -> Floats:
    """Return each client's success rate: the paper's four equal classes unless others are given."""
    values = np.atleast_1d(np.asarray(rates, dtype=np.float64))
    check_array("rates", values, (values.size,), 0.0, 1.0)
    return values[class_of(num_clients, values.size)]


def bernoulli(rates: Floats, rng: RngLike) -> Iterator[Bools]:
    """Every client answers independently, each with its own rate: one row [..., K] of answers per round."""
    check_array("rates", rates, (len(rates),), 0.0, 1.0)
    source: Rng = as_rng(rng, "world")
    shape = (*batch_shape(source), len(rates))
    return (source.random(shape) < rates for _ in count())


def answers_at(rates: Floats, seed: int, round: int, client: int) -> bool:
    """Return one client's answer in one round of `bernoulli(rates, seed)`, without playing the rounds before."""
    check_array("rates", rates, (len(rates),), 0.0, 1.0)
    check_int("client", client, 0, len(rates) - 1)
    source = stream(seed, "world")
    source.bit_generator.advance(check_int("round", round, 0) * len(rates) + client)  # type: ignore[attr-defined]
    return bool(source.random() < rates[client])


def local_epochs(
    num_clients: int, rng: RngLike, choices: tuple[int, ...] = (1, 2, 3, 4)
) -> npt.NDArray[np.int64]:
    """Return each client's number of local epochs [..., K], drawn once, independent of how often it fails."""
    source = as_rng(rng, "epochs")
    options = np.array([check_int("choices", choice, 1) for choice in choices])
    check_int("number of choices", options.size, 1)
    draws = source.random((*batch_shape(source), check_int("num_clients", num_clients, 1)))
    return options[(draws * options.size).astype(np.int64)]


def replay(table: npt.ArrayLike) -> Iterator[npt.NDArray[Any]]:
    """Return the rows of a recorded world [T, K], round by round, to their end.

    They say who answers (bool, or 0 and 1), or after how many seconds (float, inf for never).
    """
    rows = np.asarray(table)
    if rows.dtype.kind in "iu" and np.isin(rows, (0, 1)).all():
        rows = rows.astype(np.bool_)
    if (
        rows.dtype.kind not in "bf"
        or rows.ndim < 2
        or (rows.dtype.kind == "f" and not (rows >= 0).all())
    ):
        raise ValueError(
            "table must be rows [T, K] of who answers (bool) or after how many seconds (float, at least 0, inf for never), "
            f"got {rows.dtype} of shape {rows.shape}"
        )
    return iter(rows)


def timed(
    answers: Iterator[Bools], seconds: npt.ArrayLike, rng: RngLike, jitter: float = 0.0
) -> Iterator[Floats]:
    """Turn answers into durations: a client takes its seconds, times a log-normal factor; who does not answer, for ever."""
    base = np.asarray(seconds, dtype=np.float64)
    check_array("seconds", base, base.shape, 0.0, np.inf)
    check_array("jitter", jitter, (), 0.0, np.inf)
    source = as_rng(rng, "durations")
    return (np.where(row, base * _factors(source, row.shape, jitter), np.inf) for row in answers)


def _factors(source: Rng, shape: tuple[int, ...], jitter: float) -> Floats | float:
    """Return log-normal factors of median 1, from uniforms by Box and Muller, so that runs in lock-step draw as alone."""
    if not jitter:
        return 1.0
    draws = source.random((*shape[:-1], 2 * shape[-1]))
    radius = np.sqrt(-2.0 * np.log1p(-draws[..., : shape[-1]]))
    return np.asarray(np.exp(jitter * radius * np.cos(2 * np.pi * draws[..., shape[-1] :])))
