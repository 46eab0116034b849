"""The command line: parse, call, show.

A user's mistake ends with one line and exit code 2, never with a traceback.
"""

import io
import re
import sys
from typing import Annotated, Any

import typer

from fedcohort import __version__
from fedcohort.cli.advise import advise
from fedcohort.cli.bench import bench
from fedcohort.cli.compare import compare
from fedcohort.cli.console import console, warn
from fedcohort.cli.list_names import list_names
from fedcohort.cli.replay import replay
from fedcohort.cli.report import report
from fedcohort.cli.reproduce import reproduce
from fedcohort.cli.simulate import simulate
from fedcohort.cli.study import study
from fedcohort.cli.watch import watch
from fedcohort.lab.mistakes import describe_mistake

MISTAKE = 2
INTERRUPTED = 130
CONTINUATIONS = {  # what an interrupted command says; others start anew
    "compare": "the same command with --resume goes on",
    "reproduce": "the same command goes on",
    "study": "the same command goes on",
}


def _find_click_exception() -> Any:
    """Return click's ClickException, which typer raises for a mistake in the arguments.

    Newer versions of typer carry a copy of click, so it is not always the one of the package.
    """
    for parent in typer.BadParameter.__mro__:
        if parent.__name__ == "ClickException":
            return parent
    raise AssertionError("typer.BadParameter must be a ClickException")


ClickException: Any = _find_click_exception()

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(simulate)
app.command()(report)
app.command(name="list")(list_names)
app.command()(bench)
app.command(context_settings={"max_content_width": 110})(compare)
app.command()(reproduce)
app.command()(study)
app.command()(watch)
app.command()(advise)
app.command()(replay)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(f"fedcohort {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Choose which clients train in each round of federated learning when clients fail.

    Example: fedcohort compare --out runs/first

    Exit codes:
    0 done
    1 done, except parts whose data are missing (reproduce)
    2 a mistake, named in one line
    130 interrupted
    """


def main() -> None:
    """Run the command line and exit: 0 done, 1 done in part, 2 a mistake, 130 interrupted."""
    _escape_unprintable()
    try:
        code: Any = app(prog_name="fedcohort", standalone_mode=False)
    except ClickException as error:
        words = _in_one_line(error)
        code = _complain(words) if words else MISTAKE  # the help was shown
    except BrokenPipeError:
        # The reader of the output has gone; everything is on disk by then.
        sys.stderr.close()
        code = 0
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except Exception as error:
        mistake = describe_mistake(error)
        if mistake is None:
            raise
        code = _complain(mistake)

    if code == INTERRUPTED:  # typer turns Ctrl-C into this code too
        command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        advice = CONTINUATIONS.get(command, "the same command starts anew")
        if "--overwrite" in sys.argv:
            advice = advice.replace("with --resume", "with --resume instead of --overwrite")
        _complain(f"interrupted; {advice}")
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    """Print an error in one line; return the exit code of a mistake."""
    line = "".join(map(_printable, message))
    warn(f"error: {line}")
    return MISTAKE


def _printable(character: str) -> str:
    """Return a character, or its escape where a path or a name holds a control character."""
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def _escape_unprintable() -> None:
    """Print what the terminal's encoding lacks, such as parts of a path, as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _in_one_line(mistake: Any) -> str:
    """Return the message of a mistake in the arguments.

    Newer versions of typer leave the value to pydantic, and some suggest the same name twice.
    """
    text = mistake.format_message().replace("\n", " ")
    errors = getattr(mistake.__cause__, "errors", None)
    if errors:
        text += f", got {errors()[0]['input']!r}"
    return re.sub(r"( Did you mean [^?]*\?)\1", r"\1", text)
