"""`fedcohort simulate`: selection without training."""

from pathlib import Path
from typing import Annotated

import typer

from fedcohort.cli.console import print_json, progress_bars, say, show
from fedcohort.cli.pages import write_report_page
from fedcohort.cli.parse import check_rates, parse_eta, parse_numbers, parse_words, split_list
from fedcohort.lab import simulation as library
from fedcohort.lab.config import SimulationConfig, has_classes
from fedcohort.lab.named_parts import labelled
from fedcohort.lab.recorder import AllocationRecorder
from fedcohort.paper import participation
from fedcohort.reports.pages.simulation import findings
from fedcohort.reports.report import write
from fedcohort.selection.sampling import SAMPLERS

DEFAULT = SimulationConfig()
DEFAULT_RATES = ",".join(map(str, DEFAULT.rates))


def simulate(
    selectors: Annotated[
        str,
        typer.Option(
            help="Comma-separated names, as `fedcohort list` shows them, or file.py:name.",
            show_default="every e3cs, fedcs, random",
        ),
    ] = "default",
    clients: Annotated[int, typer.Option(help="Number of clients, K.")] = DEFAULT.clients,
    cohort: Annotated[int, typer.Option(help="Clients asked per round, k.")] = DEFAULT.cohort,
    rounds: Annotated[int, typer.Option(help="Number of rounds, T.")] = DEFAULT.rounds,
    seeds: Annotated[int, typer.Option(help="Runs, each with its own world.")] = DEFAULT.seeds,
    first_seed: Annotated[
        int, typer.Option(help="Seed of the first; the others count up.")
    ] = DEFAULT.first_seed,
    rates: Annotated[
        str | None,
        typer.Option(help="Success rate of each class of clients.", show_default=DEFAULT_RATES),
    ] = None,
    world: Annotated[
        str,
        typer.Option(help="Who would answer: see `fedcohort list`, or file.py:name."),
    ] = DEFAULT.world,
    world_file: Annotated[
        str | None, typer.Option(help="What was recorded, for --world recorded and trace.")
    ] = None,
    world_options: Annotated[
        list[str] | None,
        typer.Option(
            "--world-option",
            metavar="NAME=VALUE",
            help="Parameter of the world; may be given several times.",
        ),
    ] = None,
    # As in a settings file; a flag of its own, because two names do not fit the help's column.
    more_world_options: Annotated[
        list[str] | None, typer.Option("--world-options", hidden=True)
    ] = None,
    knows_offline: Annotated[
        bool,
        typer.Option("--knows-offline", help="The server knows who is offline before it asks."),
    ] = False,
    eta: Annotated[
        str, typer.Option(help="Learning rate of E3CS, or 'auto' for the theorem's.")
    ] = str(DEFAULT.eta),
    sampler: Annotated[
        str, typer.Option(help=f"{', '.join(SAMPLERS)} (the paper's).")
    ] = DEFAULT.sampler,
    out: Annotated[Path, typer.Option(help="Folder for results and figures.")] = Path(
        "runs/simulate"
    ),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace results of other settings there.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table as JSON and nothing else.")
    ] = False,
) -> None:
    """Play selectors without training: success ratio, CEP and fairness.

    Example: fedcohort simulate --selectors e3cs-0.5,random --seeds 50 --sampler successive
    """
    check_rates(rates, world)
    chosen = DEFAULT.selectors
    if selectors != "default":
        chosen = tuple(split_list("selectors", selectors))
    config = SimulationConfig(
        selectors=chosen,
        clients=clients,
        cohort=cohort,
        rounds=rounds,
        seeds=seeds,
        first_seed=first_seed,
        rates=DEFAULT.rates if rates is None else parse_numbers("rates", rates),
        eta=parse_eta(eta),
        sampler=sampler,
        world=world,
        world_file=world_file,
        world_options=parse_words(",".join([*(world_options or ()), *(more_world_options or ())])),
        knows_offline=knows_offline,
    )
    with progress_bars() as on_progress:
        simulation = library.load_or_simulate(
            "simulate",
            config,
            out,
            run=library.simulate,
            overwrite=overwrite,
            on_progress=on_progress,
            recorder=AllocationRecorder(rounds),
        )

    results = labelled(simulation.results, config)
    charts = {"figure4": participation.success_chart(config, results)}
    if has_classes(config):
        charts["figure3"] = participation.selections_chart(config, results)
    notes = [participation.SUCCESS_CAPTION] if seeds > 1 else []
    report = participation.report_schemes("simulate", config, results, charts, notes)
    figures = write(report, out)
    page = write_report_page(findings(simulation), out)
    if as_json:
        rows = report.numbers["summary"]
        settings = config.as_dict()
        print_json({"command": "simulate", "folder": out, "settings": settings, "rows": rows})
        return
    show(report, figures)
    say(f"Results: {out}")
    say(page)
