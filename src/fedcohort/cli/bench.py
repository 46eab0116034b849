"""`fedcohort bench`: measure on this machine."""

from typing import Annotated

import typer

from fedcohort.bench import BENCHES
from fedcohort.bench.selection import measure_selection
from fedcohort.checks import check_choice, check_int
from fedcohort.cli.console import print_json, print_table


def bench(
    name: Annotated[
        str, typer.Argument(help=f"{', '.join(BENCHES)}.", autocompletion=lambda: list(BENCHES))
    ] = "selection",
    quick: Annotated[
        bool, typer.Option("--quick", help="Few repetitions and no ten million clients.")
    ] = False,
    largest: Annotated[
        int | None,
        typer.Option(help="Largest number of clients of selection; must fit the memory."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table as JSON and nothing else.")
    ] = False,
) -> None:
    """Measure this machine: medians with quartiles, ratios within one run.

    Names: selection, learning.

    Example: fedcohort bench selection
    """
    check_choice("name", name, BENCHES)
    if largest is None:
        rows, about = BENCHES[name](quick)
    else:
        check_choice("name with --largest", name, ("selection",))
        rows, about = measure_selection(quick, check_int("largest", largest, 1000))
    if as_json:
        print_json({"command": f"bench {name}", "about": about, "rows": rows})
    else:
        print_table(rows, f"bench {name}: {about}")
