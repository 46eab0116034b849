"""Commands run in this process, with what they print kept."""

import contextlib
import io
import sys
from collections.abc import Iterator, Sequence

from fuzz_cases import UnclearRefusal

from fedcohort import cli
from fedcohort.reports import figures

SUCCESS = (0, 1)  # 1: done, but for data that are not there
MISTAKE = 2


@contextlib.contextmanager
def without_drawings() -> Iterator[None]:
    """Draw no figures, as if the extra `plots` were not installed."""
    before = figures.has_matplotlib
    figures.has_matplotlib = lambda: False
    try:
        yield
    finally:
        figures.has_matplotlib = before


def run(arguments: Sequence[str]) -> str:
    """Run a command and return what it printed.

    Raises:
        ValueError: With the message, if the command refused its arguments in one line.
        UnclearRefusal: If it refused them in another way.
    """
    output = _text_stream()
    errors = _text_stream()
    before = sys.argv
    sys.argv = ["fedcohort", *arguments]
    code: object = None
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            cli.main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
    told = _read(errors)
    if code in SUCCESS:
        return _read(output)
    is_one_line = told.startswith("error: ") and told.count("\n") == 1 and told.endswith("\n")
    if code != MISTAKE or not is_one_line:
        raise UnclearRefusal(f"{list(arguments)} ended with {code}: {told!r}")
    raise ValueError(told.strip())


def _text_stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def _read(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
