"""The world `devices`: how long clients take, by the speed of their devices and links.

The laws of the devices are fitted to FedScale's device profiles, as PyramidFL logged them
(Apache-2.0), by `benchmarks/fit_devices.py`. Computation is a mixture of two log-normal laws,
because there are fast and slow devices; the link is one log-normal law. Speed and link of a device
are independent, as in the profiles. `results/explorations/device-fit.json` says how well they fit.
"""

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.rng import RngLike, as_rng, batch_shape
from fedcohort.world.base import Conditions, World
from fedcohort.world.durations import log_normal, success_before
from fedcohort.world.options import MissingData, Option, read_options

SLOW_SHARE = 0.359  # of the devices
COMPUTE_MEDIANS = np.array([29.3, 158.2])  # milliseconds per sample, of fast and slow devices
COMPUTE_SPREADS = np.array([0.408, 0.132])  # standard deviations of the logarithm
LINK_MEDIAN = 6951.0  # kbit/s
LINK_SPREAD = 1.116
OPTIONS = {
    "compute": Option(1.0, low=0.0, high=1e9),
    "link": Option(1.0, low=1e-6, high=1e9),
    "jitter": Option(0.0, 0.0, 10.0),
}


def make_devices(conditions: Conditions) -> World:
    """Return a world in which a deadline decides who arrives.

    A client computes for all samples of all its epochs, and sends the model down and up.

    Options: `compute` (factor of the computing time, default 1), `link` (factor of the speed of
    links, default 1) and `jitter` (spread of a client's time from round to round: standard
    deviation of its logarithm, default 0). The rates of the classes are not used.
    """
    options = read_options("devices", conditions.options, OPTIONS)
    samples = conditions.data_sizes
    epochs = conditions.epochs
    model_bytes = conditions.model_bytes
    deadline = conditions.deadline
    if samples is None or epochs is None or model_bytes is None or deadline is None:
        raise MissingData(
            "world 'devices' must know the samples, epochs and model of the clients and the "
            "deadline, got none; `compare` has them"
        )
    milliseconds, kilobits = draw_devices(conditions.num_clients, list(conditions.seeds))
    seconds = device_seconds(
        milliseconds * options["compute"], kilobits * options["link"], samples * epochs, model_bytes
    )
    jitter = options["jitter"]
    rows = _jittered(seconds, list(conditions.seeds), jitter)
    rates = success_before(deadline, seconds, jitter)
    return World(rows, success_rates=rates, has_seconds=True)


def draw_devices(num_clients: int, rng: RngLike) -> tuple[Floats, Floats]:
    """Draw a device for every client.

    Args:
        num_clients: Number of clients, K.
        rng: Seed or generator for one run, or a list of S seeds for S runs.

    Returns:
        Milliseconds per sample and kbit/s of the link, [K] each, or [S, K] for a list of seeds.

    Examples:
        >>> from fedcohort.world.devices import draw_devices
        >>> milliseconds, kilobits = draw_devices(5, rng=0)
        >>> milliseconds.shape, kilobits.shape
        ((5,), (5,))
    """
    source = as_rng(rng, "world", "devices")
    shape = (*batch_shape(source), num_clients)
    kind = (source.random(shape) < SLOW_SHARE).astype(np.int64)
    compute = COMPUTE_MEDIANS[kind] * log_normal(source, shape, COMPUTE_SPREADS[kind])
    link = LINK_MEDIAN * log_normal(source, shape, LINK_SPREAD)
    return compute, link


def device_seconds(
    milliseconds: Floats, kilobits: Floats, samples: Ints, model_bytes: int
) -> Floats:
    """Return how long clients take for a round.

    Args:
        milliseconds: Computing time per sample, [..., K].
        kilobits: Speed of the link in kbit/s, [..., K].
        samples: Number of samples times epochs, [..., K].
        model_bytes: Size of the model, which is sent down and up.

    Returns:
        Seconds [..., K].

    Examples:
        >>> import numpy as np
        >>> from fedcohort.world.devices import device_seconds
        >>> device_seconds(np.array([20.0]), np.array([1000.0]), np.array([100]), 250_000).tolist()
        [6.0]
    """
    computing = milliseconds / 1e3 * samples
    sending = 2 * model_bytes * 8 / (kilobits * 1e3)
    return np.asarray(computing + sending)


def _jittered(seconds: Floats, rng: RngLike, jitter: float) -> Iterator[Floats]:
    if not jitter:
        return repeat(seconds)
    source = as_rng(rng, "world", "jitter")
    return (seconds * log_normal(source, seconds.shape, jitter) for _ in repeat(None))
