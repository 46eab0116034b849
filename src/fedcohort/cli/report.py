"""`fedcohort report`: draw the page of stored results again."""

from pathlib import Path
from typing import Annotated

import typer

from fedcohort.cli.console import say
from fedcohort.cli.pages import write_report


def report(
    runs: Annotated[Path, typer.Argument()],
) -> None:
    """Write the page of stored results again: report.html, one file with interactive figures.

    RUNS is a folder of `compare`, `simulate`, `reproduce`, or of a Flower run.
    A run that is not finished is shown as far as it is. Nothing is trained.

    Example: fedcohort report runs/demo
    """
    say(write_report(runs))
