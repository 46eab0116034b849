"""One seed per run, one named stream per purpose; many runs drawn together give what each gives alone."""

from collections.abc import Sequence
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.checks import check_int

READ_AHEAD = 1500  # uniforms fetched per generator and refill: one Python call serves many rounds


class Uniforms(Protocol):
    """What samplers need of a source of chance: `np.random.Generator` has it, and so has `Streams`."""

    def random(self, size: tuple[int, ...], /) -> Floats: ...


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the generator of one purpose; adding a purpose never shifts another's draws."""
    words = (crc32(str(part).encode()) for part in purpose)
    return np.random.Generator(np.random.PCG64([check_int("seed", seed, 0), *words]))


class Streams:
    """Generators of many runs, drawn together: row s is what generator s alone would have given.

    Uniforms are read ahead in blocks; the state handed out is rewound to the last one used.
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
        self._block = np.empty((len(generators), 0))
        self._used = 0

    def __len__(self) -> int:
        return len(self.generators)

    def random(self, size: tuple[int, ...], /) -> Floats:
        """Return uniforms in [0, 1) of shape (runs, n)."""
        rows, count = size
        if rows != len(self):
            raise ValueError(f"size must start with the number of runs {len(self)}, got {size}")
        unread = self._block.shape[1] - self._used
        if unread < count:
            block = np.empty((rows, unread + max(count, READ_AHEAD)))
            block[:, :unread] = self._block[:, self._used :]
            for row, generator in zip(block, self.generators, strict=True):
                generator.random(out=row[unread:])
            self._block, self._used = block, 0
        self._used += count
        return self._block[:, self._used - count : self._used]

    def states(self) -> list[Any]:
        unread = self._block.shape[1] - self._used
        return [_rewound(generator, unread) for generator in self.generators]

    def restore(self, states: Sequence[Any]) -> None:
        for generator, state in zip(self.generators, states, strict=True):
            generator.bit_generator.state = state
        self._block, self._used = np.empty((len(self), 0)), 0


def _rewound(generator: np.random.Generator, unread: int) -> Any:
    copy: Any = np.random.PCG64()
    copy.state = generator.bit_generator.state
    return copy.advance(-unread).state if unread else copy.state


Rng = np.random.Generator | Streams
RngLike = int | np.random.Generator | Streams | list[int] | tuple[int, ...] | range


def as_rng(rng: RngLike, *purpose: str | int) -> Rng:
    """Return the source of chance for a purpose: of one run for a seed, of many in lock-step for a sequence of seeds."""
    if isinstance(rng, np.random.Generator | Streams):
        return rng
    if isinstance(rng, list | tuple | range | np.ndarray):
        return Streams([stream(seed, *purpose) for seed in rng])
    return stream(rng, *purpose)


def batch_shape(rng: Rng) -> tuple[int, ...]:
    """Return () for one run and (S,) for S runs in lock-step."""
    return (len(rng),) if isinstance(rng, Streams) else ()


def rng_state(rng: Rng) -> Any:
    """Return the state as plain numbers and words, fit for JSON."""
    return rng.states() if isinstance(rng, Streams) else rng.bit_generator.state


def set_rng_state(rng: Rng, state: Any) -> None:
    """Continue from a state that `rng_state` returned."""
    if isinstance(rng, Streams):
        rng.restore(state)
    else:
        rng.bit_generator.state = state
