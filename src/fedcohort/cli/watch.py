"""`fedcohort watch`: a run under way, in the terminal; plain lines where there is none."""

from pathlib import Path
from time import sleep, time
from typing import Annotated

import typer
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fedcohort.checks import check_positive
from fedcohort.cli.console import console, say
from fedcohort.lab.progress import Asked, Line, Snapshot, follow

MOST = 20  # clients named per scheme


def watch(
    run: Annotated[
        Path,
        typer.Argument(help="Folder of `compare`, of a part of `reproduce`, or of a Flower run."),
    ],
    once: Annotated[bool, typer.Option("--once", help="Show how far it is now, and end.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between looks.")] = 2.0,
) -> None:
    """AllocationRecorder a run under way: progress, time left, success ratio, who is asked and who fails (marked !).

    Only files are read; it ends when all rounds are played, or with Ctrl-C, which does not touch the run.

    Example: fedcohort watch runs/demo
    """
    check_positive("every", every)
    following = follow(run)
    now = following.look()
    if once or now.finished or not console.is_terminal:
        tell(now)
    if once or now.finished:
        return
    try:
        if console.is_terminal:
            with Live(drawn(now), console=console, auto_refresh=False) as live:
                while not now.finished:
                    sleep(every)
                    now = following.look()
                    live.update(drawn(now), refresh=True)
            return
        while not now.finished:
            sleep(every)
            before, now = now, following.look()
            if now.done > before.done:
                tell(now)
    except KeyboardInterrupt:
        say("No longer watched; the run goes on.")


def tell(now: Snapshot) -> None:
    """Print a snapshot as plain lines."""
    say(f"{now.title}: {progress(now)}")
    for line in now.lines:
        say(
            f"  {line.name}: {figures(line)}; asked last: {' '.join(marked(one) for one in line.asked[:MOST])}{more(line)}"
        )


def drawn(now: Snapshot) -> Table:
    """Return a snapshot for a terminal: a bar, and a line per scheme, those who failed in red."""
    bar = ProgressBar(total=now.rounds or max(1, now.done), completed=now.done, width=40)
    table = Table(
        "scheme", "success", "accuracy", "asked last", box=None, pad_edge=False, header_style="bold"
    )
    for line in now.lines:
        asked = Text(" ").join(
            Text(marked(one), style="" if one.came == "arrived" else "red")
            for one in line.asked[:MOST]
        )
        accuracy = "-" if line.accuracy != line.accuracy else f"{line.accuracy:.3f}"
        table.add_row(Text(line.name), f"{line.success:.3f}", accuracy, asked + Text(more(line)))
    page = Table.grid()  # a bar alone does not end its line
    for part in (Text(f"{now.title}: {progress(now)}"), bar, table):
        page.add_row(part)
    return page


def progress(now: Snapshot) -> str:
    """Return how far a run is, in words."""
    said = f"round {now.done}" + (f" of {now.rounds}" if now.rounds else "")
    if now.finished:
        return f"{said}, finished"
    if now.left is not None:
        said += f", about {clock(now.left)} to go"
    return (
        said
        if now.written is None
        else f"{said}, last written {clock(max(0.0, time() - now.written))} ago"
    )


def figures(line: Line) -> str:
    """Return the numbers of a scheme, in words."""
    return f"success ratio {line.success:.3f}" + (
        "" if line.accuracy != line.accuracy else f", accuracy {line.accuracy:.3f}"
    )


def marked(one: Asked) -> str:
    """Return a client's name, and what came of it if it failed."""
    return one.client if one.came == "arrived" else f"{one.client}!{one.came}"


def more(line: Line) -> str:
    """Return how many more were asked than are named."""
    return f" and {len(line.asked) - MOST} more" if len(line.asked) > MOST else ""


def clock(seconds: float) -> str:
    """Return a time as hours, minutes and seconds."""
    whole = round(seconds)
    return (
        f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
        if whole >= 3600
        else f"{whole // 60}:{whole % 60:02d}"
    )
