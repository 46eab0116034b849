"""`fedcohort reproduce`: parse, call, show."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedcohort.cli.console import print_json, progress_bars, say, show, warn
from fedcohort.cli.parse import parse_numbers, parse_words, write_given
from fedcohort.cli.sharing import DEVICES, RAY, SHARD, check_unshared, read_sharing
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.setting import RUN_CHOICES, Overrides
from fedcohort.reports.words import listed

if TYPE_CHECKING:
    from fedcohort.lab.shards import Shard
    from fedcohort.lab.training import Training
    from fedcohort.paper.reproduce import Reproduction

INCOMPLETE = 1
OUT = Path("runs/reproduce")


def reproduce(
    names: Annotated[list[str], typer.Argument(autocompletion=lambda: [*ARTEFACTS, "all"])],
    seeds: Annotated[
        int | None,
        typer.Option(help="Runs of each kind; --from shows all."),
    ] = None,
    first_seed: Annotated[
        int | None, typer.Option(help="Seed of the first; the others count up.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds; by default the paper's.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Other data set, such as digits.")] = None,
    model: Annotated[str | None, typer.Option(help="Other model; see `fedcohort list`.")] = None,
    selectors: Annotated[
        str | None, typer.Option(help="Train only these schemes, comma-separated.")
    ] = None,
    partitions: Annotated[
        str | None, typer.Option(help="Of iid,non-iid,independent-label.")
    ] = None,
    mus: Annotated[str | None, typer.Option(help="Only these, as 0,0.5; 0 is FedAvg.")] = None,
    no_refill: Annotated[
        bool, typer.Option("--no-refill", help="Non-iid: no sample has two owners.")
    ] = False,
    scaling: Annotated[
        str | None, typer.Option(help="Image scale: symmetric, unit or standard.")
    ] = None,
    sampler: Annotated[
        str | None, typer.Option(help="Sampler of E3CS; the paper's unless given.")
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(help="Candidates of pow-d; 2.5 k unless given.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, or auto.")] = None,
    precision: Annotated[str | None, typer.Option(help="On cuda also tf32 or bf16.")] = None,
    compiled: Annotated[
        bool | None, typer.Option("--compiled", help="torch.compile on cuda.")
    ] = None,
    slots: Annotated[int | None, typer.Option(help="Clients side by side; else by memory.")] = None,
    losses_every: Annotated[
        int | None, typer.Option(help="Rounds between losses of all clients.")
    ] = None,
    devices: Annotated[str | None, DEVICES] = None,
    shard: Annotated[str | None, SHARD] = None,
    ray: Annotated[str | None, RAY] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of data sets; or $FEDCOHORT_DATA.")
    ] = None,
    time_budget: Annotated[
        float | None, typer.Option(help="Minutes after which training stops.")
    ] = None,
    stop_at: Annotated[
        int | None,
        typer.Option(help="Round after which training stops."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help=f"For results ({OUT}, or --from).")] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Show what a folder holds; train nothing.",
        ),
    ] = None,
    export: Annotated[Path | None, typer.Option(help="Folder to add compact results to.")] = None,
    from_previous: Annotated[
        bool,
        typer.Option("--from-previous", help="Use the one before a damaged checkpoint."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace simulations that are there.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Tables and numbers as JSON, nothing else.")
    ] = False,
) -> None:
    """Reproduce artefacts of the paper.

    Names: figure3, figure4, regret, table2, figure5, table3, figure6, figure7,
    server_step, ablations, claims, all. Repeat the command to continue.

    Example: fedcohort reproduce table3 --device cuda --seeds 3 --time-budget 25
    """
    # Imported here, not at the top: `--help` must not load what a reproduction needs.
    from fedcohort.paper import export as exports
    from fedcohort.paper import reproduce as library
    from fedcohort.paper.labels import parse_partition
    from fedcohort.paper.page import make_findings, save_request
    from fedcohort.paper.request import check_home, check_source
    from fedcohort.reports.html.page import write_page
    from fedcohort.reports.report import write

    given: dict[str, Any] = {
        "seeds": seeds,
        "first_seed": first_seed,
        "rounds": rounds,
        "dataset": dataset,
        "model": model,
        "sampler": sampler,
        "scaling": scaling,
        "refill": False if no_refill else None,
        "candidates": candidates,
        "device": device,
        "precision": precision,
        "compiled": compiled,
        "slots": slots,
        "losses_every": losses_every,
    }
    overrides = {name: value for name, value in given.items() if value is not None}
    if selectors is not None:
        overrides["selectors"] = parse_words(selectors)
    if partitions is not None:
        words = parse_words(partitions)
        overrides["partitions"] = tuple(parse_partition(word) for word in words)
    if mus is not None:
        overrides["mus"] = parse_numbers("mus", mus)

    own_shard, workers = read_sharing(shard, devices, ray, device)
    check_unshared(own_shard, overwrite=overwrite, export=export, json=as_json)
    if workers is not None:
        overrides["device"] = workers.device
    exported_before = None
    if export is not None:
        exported_before = exports.read_export(export)
    if source is not None:
        idle = {
            "device": device,
            "compiled": compiled,
            "slots": slots,
            "losses_every": losses_every,
            "data": data,
            "time_budget": time_budget,
            "stop_at": stop_at,
            "from_previous": from_previous or None,
            "overwrite": overwrite or None,
            "shard": shard,
            "devices": devices,
            "ray": ray,
        }
        _refuse_idle(idle)
        check_source(source)
        check_home(out or source)  # before the records are read, which takes a while
        reproduction = library.show(names, source, **overrides)
        _warn_of_choices(overrides)
    else:
        options: dict[str, Any] = {
            "data": data,
            "minutes": time_budget,
            "stop_at": stop_at,
            "from_previous": from_previous,
        }
        with progress_bars() as on_progress:
            options["on_progress"] = on_progress
            if own_shard is not None:
                training = library.train_shard(names, out or OUT, own_shard, **options, **overrides)
                _show_shard(own_shard, training)
                return
            reproduction = library.run(
                names, out or OUT, overwrite=overwrite, workers=workers, **options, **overrides
            )
    home = out or source or OUT
    figures = {}
    for name, report in reproduction.reports.items():
        figures[name] = write(report, home / name)
    paths = None
    if export is not None:
        paths = exports.export(reproduction.results, export, held=exported_before)
    if source is None or out is not None:
        save_request(home, names, reproduction.overrides, source)
    page = write_page(make_findings(reproduction), home)

    if as_json:
        _print_as_json(reproduction, home)
    else:
        for name, report in reproduction.reports.items():
            show(report, figures[name])
        say_where(reproduction, home, paths)
        say(f"Report: {page}")
    if reproduction.absent:
        raise typer.Exit(INCOMPLETE)


def _refuse_idle(options: Mapping[str, Any]) -> None:
    """Refuse options of training where nothing is trained.

    Args:
        options: Values by name; None for those that were not given.
    """
    for name, value in options.items():
        if value is not None:
            got = write_given(value)
            raise ValueError(
                f"{name} must not be given with --from, which trains nothing, got {got}"
            )


def _warn_of_choices(overrides: Overrides) -> None:
    """Say which flags have no effect because they choose what is trained."""
    flags = [f"--{name.replace('_', '-')}" for name in RUN_CHOICES if name in overrides]
    if flags:
        verb = "chooses" if len(flags) == 1 else "choose"
        warn(f"--from shows all runs: {listed(flags)} {verb} none.")


def _show_shard(shard: "Shard", training: "Training") -> None:
    """Say how far a shard is, and how the results of all shards are shown."""
    if training.stopped:
        say(f"The time is up: {training.stopped}; the same command goes on from there.")
    for name, why in training.absent.items():
        say(f"SKIPPED: everything on {name}, whose data are not there: {why}")
    if training.absent:
        raise typer.Exit(INCOMPLETE)
    if not training.stopped:
        say(f"Shard {shard} is finished. The same command without --shard shows all of them.")


def _print_as_json(reproduction: "Reproduction", home: Path) -> None:
    """Print all tables and numbers, and what is missing."""
    reports = reproduction.reports.items()
    print_json(
        {
            "command": "reproduce",
            "folder": home,
            "tables": {name: report.tables for name, report in reports},
            "numbers": {name: report.numbers for name, report in reports},
            "stopped": reproduction.stopped,
            "absent": reproduction.absent,
        }
    )


def say_where(reproduction: "Reproduction", home: Path, exported: list[Path] | None) -> None:
    """Say where everything is, and what is missing."""
    if exported is not None:
        say(f"Compact results: {', '.join(map(str, exported)) or 'none yet'}")
    say(f"Reports: {home}")
    if reproduction.stopped:
        say(f"The time is up: {reproduction.stopped}; the same command goes on from there.")
    for name, why in reproduction.absent.items():
        say(f"SKIPPED: everything on {name}, whose data are not there: {why}")
