"""Randomness: one seed per run and one named stream per purpose.

Many runs that are drawn together get the same numbers as each run alone.
"""

from collections.abc import Sequence
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.checks import check_int

READ_AHEAD = 1500  # uniforms fetched per generator and refill: one Python call serves many rounds


class Uniforms(Protocol):
    """A source of uniform numbers: `np.random.Generator` and `Streams` are such sources."""

    def random(self, size: tuple[int, ...], /) -> Floats:
        """Return uniform numbers in [0, 1) of this shape."""
        ...


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the generator for one purpose of a run.

    Every purpose has its own stream, so that a new purpose never shifts the draws of another.

    Args:
        seed: Seed of the run, at least 0.
        *purpose: Words and numbers that name the stream.

    Returns:
        A new generator.

    Raises:
        ValueError: If the seed is no whole number or negative.

    Examples:
        >>> world = stream(3, "world").random(2)
        >>> bool((world == stream(3, "world").random(2)).all())
        True
        >>> bool((world == stream(3, "selection").random(2)).any())
        False
    """
    words = [crc32(str(part).encode()) for part in purpose]
    return np.random.Generator(np.random.PCG64([check_int("seed", seed, 0), *words]))


class Streams:
    """Generators of many runs, drawn together.

    Row s of a draw is what generator s alone would have given. Uniforms are read ahead in
    blocks; `states` rewinds to the last number that was used.

    Args:
        generators: One PCG64 generator per run.

    Raises:
        ValueError: If there is no generator, or one that cannot be rewound.

    Examples:
        >>> together = Streams([stream(0, "world"), stream(1, "world")]).random((2, 3))
        >>> bool((together[1] == stream(1, "world").random(3)).all())
        True
    """

    def __init__(self, generators: Sequence[np.random.Generator]) -> None:
        for generator in generators:
            if not isinstance(generator.bit_generator, np.random.PCG64):
                raise ValueError(
                    f"generators drawn together must use PCG64, got {generator.bit_generator!r}"
                )
        if not generators:
            raise ValueError("generators must hold at least one generator, got none")
        self.generators = list(generators)
        self._clear()

    def __len__(self) -> int:
        return len(self.generators)

    def random(self, size: tuple[int, ...], /) -> Floats:
        """Return uniforms in [0, 1).

        Args:
            size: Shape (runs, n) of the draw.

        Returns:
            A view of the block read ahead; copy it to keep it.

        Raises:
            ValueError: If the shape does not start with the number of runs.
        """
        rows, count = size
        if rows != len(self):
            raise ValueError(f"size must start with the number of runs {len(self)}, got {size}")
        if self._unread < count:
            self._refill(count)

        first = self._used
        self._used += count
        return self._block[:, first : self._used]

    def states(self) -> list[Any]:
        """Return the state of every generator, after the last number that was used."""
        return [_rewound_state(generator, self._unread) for generator in self.generators]

    def restore(self, states: Sequence[Any]) -> None:
        """Continue from states that `states` returned."""
        for generator, state in zip(self.generators, states, strict=True):
            generator.bit_generator.state = state
        self._clear()

    @property
    def _unread(self) -> int:
        return self._block.shape[1] - self._used

    def _clear(self) -> None:
        self._block = np.empty((len(self), 0))
        self._used = 0

    def _refill(self, count: int) -> None:
        """Read a new block that starts with the numbers that are still unread."""
        unread = self._unread
        block = np.empty((len(self), unread + max(count, READ_AHEAD)))
        block[:, :unread] = self._block[:, self._used :]
        for row, generator in zip(block, self.generators, strict=True):
            generator.random(out=row[unread:])
        self._block = block
        self._used = 0


def _rewound_state(generator: np.random.Generator, unread: int) -> Any:
    copy: Any = np.random.PCG64()
    copy.state = generator.bit_generator.state
    if unread:
        copy = copy.advance(-unread)
    return copy.state


Rng = np.random.Generator | Streams
RngLike = int | np.random.Generator | Streams | list[int] | tuple[int, ...] | range


def as_rng(rng: RngLike, *purpose: str | int) -> Rng:
    """Return the source of randomness for a purpose.

    Args:
        rng: A seed for one run, a sequence of seeds for runs in lock-step, or a source of
            randomness, which is returned as it is.
        *purpose: Words and numbers that name the stream.

    Returns:
        A generator for one run, or the streams of many.

    Raises:
        ValueError: If a seed is no whole number or negative.

    Examples:
        >>> len(as_rng([3, 4], "selection"))
        2
    """
    if isinstance(rng, np.random.Generator | Streams):
        return rng
    if isinstance(rng, list | tuple | range | np.ndarray):
        return Streams([stream(seed, *purpose) for seed in rng])
    return stream(rng, *purpose)


def batch_shape(rng: Rng) -> tuple[int, ...]:
    """Return () for one run and (S,) for S runs in lock-step."""
    if isinstance(rng, Streams):
        return (len(rng),)
    return ()


def rng_state(rng: Rng) -> Any:
    """Return the state of the generator, or the states of all."""
    if isinstance(rng, Streams):
        return rng.states()
    return rng.bit_generator.state


def set_rng_state(rng: Rng, state: Any) -> None:
    """Continue from a state that `rng_state` returned.

    Raises:
        ValueError: If it is no such state; nothing changes then.
    """
    check_rng_state(rng, state)
    if isinstance(rng, Streams):
        rng.restore(state)
    else:
        rng.bit_generator.state = state


def check_rng_state(rng: Rng, state: Any) -> None:
    """Refuse what is no state of this source of randomness.

    Raises:
        ValueError: If the state is of another generator, of another number of them, or has
            numbers that no generator has.
    """
    if not isinstance(rng, Streams):
        _check_generator_state(rng, state)
        return
    if not isinstance(state, list) or len(state) != len(rng):
        raise ValueError(f"rng of the state must be for {len(rng)} runs, got {state!r}")
    for generator, own in zip(rng.generators, state, strict=True):
        _check_generator_state(generator, own)


def _check_generator_state(generator: np.random.Generator, state: Any) -> None:
    """Refuse a state that a generator of the same kind does not give back as it is."""
    probe: Any = type(generator.bit_generator)()
    refusal = f"rng of the state must be one of {type(probe).__name__}, got {state!r}"
    try:
        probe.state = state
    except Exception:  # NumPy raises many kinds for what is no state.
        raise ValueError(refusal) from None
    if not _is_same_state(probe.state, state):
        raise ValueError(refusal)
    if isinstance(probe, np.random.PCG64):
        has_half = state["has_uint32"] in (0, 1)
        if not has_half or state["state"]["inc"] % 2 == 0:
            raise ValueError(refusal)


def _is_same_state(one: Any, other: Any) -> bool:
    """Return whether two states are equal, with the same types of values."""
    if isinstance(one, dict):
        if not isinstance(other, dict) or one.keys() != other.keys():
            return False
        return all(_is_same_state(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)
