"""What a fuzzed case is, how long it may take, and what may come of it.

A surface prepares itself once in a scratch folder and returns a function that plays one case from
a random generator. The generator is seeded by surface, seed and number, so every case can be
played again alone.
"""

import random
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SECONDS_PER_CASE = 60  # a hundred times what a case takes; a busy machine is no hang
ACCEPTED = "accepted"
REFUSED = "refused"
TRACEBACK = "traceback"
HANG = "hang"
SILENT = "silent"
UNCLEAR = "unclear"
OUTCOMES = (ACCEPTED, REFUSED, TRACEBACK, HANG, SILENT, UNCLEAR)
FAILURES = (TRACEBACK, HANG, SILENT, UNCLEAR)

Play = Callable[[random.Random], None]  # returns if the input is accepted


class Hang(BaseException):
    """A case took too long; no Exception, so that nothing on the way can swallow it."""


class SilentAcceptance(Exception):
    """A changed file was accepted, and gave another result."""


class UnclearRefusal(Exception):
    """An input was refused, but not in one line that names the file or the argument."""


@dataclass(frozen=True)
class Surface:
    """One way in which input reaches the program.

    Attributes:
        name: Its name in the table.
        prepare: Called once with a scratch folder; returns the function that plays a case.
        share: Cases of this surface among all, as a weight.
        sealed: Whether a changed file must never be accepted. Folders of older versions have no
            checksums, so a change there is only counted.
    """

    name: str
    prepare: Callable[[Path], Play]
    share: int
    sealed: bool = True


@dataclass
class Tally:
    """How many cases of a surface ended in which way, and what the failures said."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    failures: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return sum(self.counts.values())


def play_case(surface: Surface, play: Play, seed: int, number: int) -> tuple[str, str]:
    """Play one case; return what came of it, and what it said."""
    rng = random.Random(f"{surface.name} {seed} {number}")
    try:
        with time_limit(SECONDS_PER_CASE):
            play(rng)
    except Hang:
        return HANG, traceback.format_exc()
    except SilentAcceptance as error:
        return SILENT, str(error)
    except UnclearRefusal as error:
        return UNCLEAR, str(error)
    except ValueError as error:
        message = str(error)
        if not message or "\n" in message:
            return UNCLEAR, repr(message)
        return REFUSED, message
    except Exception:
        return TRACEBACK, traceback.format_exc()
    return ACCEPTED, ""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise `Hang` in a block that takes longer."""

    def stop(*_: object) -> None:
        raise Hang(f"longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def require_name(error: ValueError, *names: object) -> None:
    """Raise `UnclearRefusal` unless a message holds one of the names."""
    if not any(str(name) in str(error) for name in names):
        raise UnclearRefusal(f"neither {names[0]} nor another name in: {error}") from error
