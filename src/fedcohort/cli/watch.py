"""`fedcohort watch`: a run under way, in the terminal or as plain lines."""

from math import isnan
from pathlib import Path
from time import sleep, time
from typing import Annotated

import typer
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fedcohort.checks import check_range
from fedcohort.cli.console import console, say
from fedcohort.lab.progress import (
    AskedClient,
    ComparisonFollower,
    FlowerFollower,
    SelectorProgress,
    Snapshot,
    follow,
)

MAX_NAMED = 20  # clients named per selector
# A client that is not waited for has not failed. Everything else is red.
STYLES = {"arrived": "", "unneeded": "dim"}


def watch(
    run: Annotated[Path, typer.Argument()],
    once: Annotated[bool, typer.Option("--once", help="Show how far it is now, and end.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between looks.")] = 2.0,
) -> None:
    """Watch a run under way: progress, time left, success ratio, who is asked, who fails (!).

    RUN is a folder of `compare`, of a part of `reproduce`, or of a Flower run.
    It only reads files. It ends when all rounds are played, or with Ctrl-C,
    which does not touch the run.

    Example: fedcohort watch runs/demo
    """
    check_range("every", every, 0.01, 86400.0)
    follower = follow(run)
    snapshot = follower.snapshot()
    if once or snapshot.finished:
        print_snapshot(snapshot)
        return
    try:
        if console.is_terminal:
            _watch_in_terminal(follower, snapshot, every)
        else:
            _watch_in_lines(follower, snapshot, every)
    except KeyboardInterrupt:
        say("No longer watched; the run goes on.")


def _watch_in_terminal(
    follower: ComparisonFollower | FlowerFollower, snapshot: Snapshot, every: float
) -> None:
    with Live(draw_snapshot(snapshot), console=console, auto_refresh=False) as live:
        while not snapshot.finished:
            sleep(every)
            snapshot = follower.snapshot()
            live.update(draw_snapshot(snapshot), refresh=True)


def _watch_in_lines(
    follower: ComparisonFollower | FlowerFollower, snapshot: Snapshot, every: float
) -> None:
    print_snapshot(snapshot)
    while not snapshot.finished:
        sleep(every)
        done_before = snapshot.done
        snapshot = follower.snapshot()
        if snapshot.done > done_before:
            print_snapshot(snapshot)


def print_snapshot(snapshot: Snapshot) -> None:
    """Print a snapshot as plain lines."""
    say(f"{snapshot.title}: {describe_progress(snapshot)}")
    for selector in snapshot.selectors:
        named = " ".join(name_client(client) for client in selector.asked[:MAX_NAMED])
        numbers = describe_numbers(selector)
        say(f"  {selector.name}: {numbers}; asked last: {named}{count_unnamed(selector)}")


def draw_snapshot(snapshot: Snapshot) -> Table:
    """Return a snapshot for a terminal: a bar, and a line per selector, failed clients in red."""
    total = snapshot.rounds or max(1, snapshot.done)
    bar = ProgressBar(total=total, completed=snapshot.done, width=40)
    headings = ("scheme", "success", "accuracy", "asked last")
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for selector in snapshot.selectors:
        accuracy = "-" if isnan(selector.accuracy) else f"{selector.accuracy:.3f}"
        table.add_row(
            Text(selector.name), f"{selector.success:.3f}", accuracy, _draw_clients(selector)
        )

    page = Table.grid()  # a bar alone does not end its line
    page.add_row(Text(f"{snapshot.title}: {describe_progress(snapshot)}"))
    page.add_row(bar)
    page.add_row(table)
    return page


def _draw_clients(selector: SelectorProgress) -> Text:
    names = []
    for client in selector.asked[:MAX_NAMED]:
        style = STYLES.get(client.status, "red")
        names.append(Text(name_client(client), style=style))
    return Text(" ").join(names) + Text(count_unnamed(selector))


def describe_progress(snapshot: Snapshot) -> str:
    """Return how far a run is, in words."""
    words = f"round {snapshot.done}"
    if snapshot.rounds:
        words += f" of {snapshot.rounds}"
    if snapshot.finished:
        return f"{words}, finished"
    if snapshot.seconds_left is not None:
        words += f", about {format_seconds(snapshot.seconds_left)} to go"
    if snapshot.written is not None:
        age = max(0.0, time() - snapshot.written)
        words += f", last written {format_seconds(age)} ago"
    return words


def describe_numbers(selector: SelectorProgress) -> str:
    """Return the numbers of a selector, in words."""
    words = f"success ratio {selector.success:.3f}"
    if not isnan(selector.accuracy):
        words += f", accuracy {selector.accuracy:.3f}"
    return words


def name_client(client: AskedClient) -> str:
    """Return a client's name, with its status if it did not arrive, and a ! if it failed."""
    if client.status == "arrived":
        return client.name
    if client.status in STYLES:
        return f"{client.name} ({client.status})"
    return f"{client.name}!{client.status}"


def count_unnamed(selector: SelectorProgress) -> str:
    """Return how many more clients were asked than are named."""
    unnamed = len(selector.asked) - MAX_NAMED
    return f" and {unnamed} more" if unnamed > 0 else ""


def format_seconds(seconds: float) -> str:
    """Return a time as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{rest:02d}"
    return f"{minutes}:{rest:02d}"
