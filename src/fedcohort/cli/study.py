"""`fedcohort study`: parse, call, show."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fedcohort.checks import check_choice
from fedcohort.cli.console import progress_bars, say, show
from fedcohort.cli.parse import parse_words
from fedcohort.cli.sharing import DEVICES, RAY, SHARD, check_unshared, read_sharing

STUDIES = ("volatility",)
OUT = Path("runs/study")


def study(
    name: Annotated[str, typer.Argument(autocompletion=lambda: list(STUDIES))],
    datasets: Annotated[
        str, typer.Option(help="Of digits, fashion-mnist, cifar10; comma-separated.")
    ] = "digits",
    worlds: Annotated[
        str | None, typer.Option(help="Only these worlds: bernoulli, labels, markov, groups.")
    ] = None,
    partitions: Annotated[
        str | None, typer.Option(help="Only these partitions: primary-label, iid.")
    ] = None,
    selectors: Annotated[str | None, typer.Option(help="Only these selectors.")] = None,
    aggregations: Annotated[str | None, typer.Option(help="Only these rules.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each combination.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of each run.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, or auto.")] = None,
    precision: Annotated[str | None, typer.Option(help="On cuda also tf32 or bf16.")] = None,
    compiled: Annotated[
        bool | None, typer.Option("--compiled", help="torch.compile on cuda.")
    ] = None,
    devices: Annotated[str | None, DEVICES] = None,
    shard: Annotated[str | None, SHARD] = None,
    ray: Annotated[str | None, RAY] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with data sets; also $FEDCOHORT_DATA.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=f"Folder of runs, tables and report ({OUT}, or that of --from)."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Report the tables in this folder; train nothing."),
    ] = None,
) -> None:
    """Study what helps when clients fail: selectors and rules in several worlds.

    NAME is volatility. Lists are comma-separated. Repeat the command to continue
    with the blocks that are missing.

    Example: fedcohort study volatility --datasets digits --seeds 5
    """
    # Imported here, not at the top: `--help` must not load what a study needs.
    from fedcohort.reports.report import write
    from fedcohort.study import runs
    from fedcohort.study.page import make_report
    from fedcohort.study.volatility import PARTITIONS, RULES, SELECTORS, WORLDS, blocks

    check_choice("name", name, STUDIES)
    own_shard, workers = read_sharing(shard, devices, ray, device)
    check_unshared(own_shard or workers, **{"from": source})
    if source is None:
        given: dict[str, Any] = {
            "seeds": seeds,
            "rounds": rounds,
            "device": workers.device if workers else device,
            "precision": precision,
            "compiled": compiled,
            "selectors": parse_words(selectors) if selectors else SELECTORS,
            "aggregations": parse_words(aggregations) if aggregations else RULES,
        }
        chosen = list(
            blocks(
                parse_words(datasets),
                parse_words(worlds) if worlds else WORLDS,
                parse_words(partitions) if partitions else PARTITIONS,
                **{key: value for key, value in given.items() if value is not None},
            )
        )
        source = out or OUT
        with progress_bars() as on_progress:
            if own_shard is not None:
                runs.train_shard(chosen, source, own_shard, data, on_progress)
                say(f"Shard {own_shard} is finished; without --shard, all are merged and shown.")
                return
            runs.train(chosen, source, data, on_progress, workers)
    report = make_report(runs.read_measures(source), runs.read_curves(source))
    home = out or source
    show(report, write(report, home))
    say(f"Tables: {source / runs.MEASURES}, {home / 'combinations.csv'}")
