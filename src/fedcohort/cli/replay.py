"""`fedcohort replay`: what another selector would have got on a recorded deployment."""

from pathlib import Path
from typing import Annotated

import typer

from fedcohort.cli.console import print_json, print_table, say
from fedcohort.cli.parse import parse_words


def replay(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="Flower run, CSV log with inclusion, or folder of compare."
        ),
    ],
    selectors: Annotated[
        str, typer.Option(help="Selectors to replay; comma-separated.")
    ] = "random,e3cs-0.5",
    selector: Annotated[
        str | None, typer.Option(help="Of a folder of `compare`: whose run to read.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of selectors and resamples.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the estimates as JSON and nothing else.")
    ] = False,
) -> None:
    """Estimate what other selectors would have got, from recorded probabilities.

    LOG is a Flower run, a CSV log with the column inclusion, or the run of
    `random` in a folder of `compare`. Prints answers per round with 95 %
    intervals; refused where the log says too little.

    Example: fedcohort replay runs/flower --selectors random,e3cs-0.5
    """
    # Imported here, not at the top: `--help` must not load them.
    from fedcohort import advice as library
    from fedcohort.advice.wording import number

    log = library.read_log(source, selector=selector)
    names = parse_words(selectors)
    if not names:
        raise ValueError(f"selectors must name at least one selector, got {selectors!r}")
    found = library.replay(log, names, seed)
    if as_json:
        rows = [one.as_dict() for one in found]
        recorded = float(log.arrived_in_round.mean())
        print_json({"command": "replay", "source": log.source, "recorded": recorded, "rows": rows})
        return
    for note in log.notes:
        say(f"Note: {note}")
    say(
        f"{log.num_rounds} rounds of {log.selector or 'an unknown selector'}: "
        f"{log.arrived_in_round.mean():.2f} answers per round were recorded."
    )
    table = []
    for one in found:
        if not one.refusal:
            table.append(
                {
                    "selector": one.selector,
                    "doubly robust": number(one.robust, 2),
                    "self-normalised": number(one.normalised, 2),
                    "inverse": number(one.inverse, 2),
                    "effective": one.effective,
                }
            )
    if table:
        print_table(table, "answers per round")
    for one in found:
        if one.refusal:
            say(f"{one.selector} cannot be replayed: {one.refusal}")
