"""The command line: parse, call, show. A user's mistake ends with one line and exit code 2, never with a traceback."""

import re
import sys
from collections.abc import Collection
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from fedcohort import __version__
from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.bench import BENCHES
from fedcohort.checks import check_choice
from fedcohort.cli.compare import compare
from fedcohort.cli.console import console, print_json, print_table, progress_bars, say, show
from fedcohort.cli.pages import write_report
from fedcohort.cli.parse import eta as parse_eta
from fedcohort.cli.parse import numbers, words
from fedcohort.cli.reproduce import reproduce
from fedcohort.cli.watch import watch
from fedcohort.data import DATASETS, PARTITIONS
from fedcohort.lab.recorder import AllocationRecorder
from fedcohort.lab.simulation import SimulationConfig, run, summary
from fedcohort.paper import figure3, figure4
from fedcohort.paper.registry import NAMES, Experiment
from fedcohort.paper.simulated import played, report_of
from fedcohort.reports.report import write
from fedcohort.selection.registry import SELECTORS
from fedcohort.selection.sampling import SAMPLERS

# What typer raises for a mistake in the arguments: click's ClickException, of the package or of the copy newer versions carry.
Mistake: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
NEEDED = {
    "learning": ("torch", "sklearn", "safetensors", "pyarrow"),
    "flower": ("flwr",),
}  # what each extra brings
app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
DEFAULT = SimulationConfig()
INTERRUPTED = 130
INTERRUPTION = "interrupted; `reproduce` goes on with the same command, `compare` with --resume, anything else starts anew"


@app.command()
def simulate(
    selectors: Annotated[
        str, typer.Option(help="Comma-separated names, or 'default'; see `fedcohort list`.")
    ] = "default",
    clients: Annotated[int, typer.Option(help="Number of clients, K.")] = DEFAULT.clients,
    cohort: Annotated[int, typer.Option(help="Clients asked per round, k.")] = DEFAULT.cohort,
    rounds: Annotated[int, typer.Option(help="Number of rounds, T.")] = DEFAULT.rounds,
    seeds: Annotated[
        int, typer.Option(help="Number of runs, each with its own world.")
    ] = DEFAULT.seeds,
    first_seed: Annotated[
        int, typer.Option(help="Seed of the first run; the others count up.")
    ] = DEFAULT.first_seed,
    rates: Annotated[str, typer.Option(help="Success rate of each class of clients.")] = ",".join(
        map(str, DEFAULT.rates)
    ),
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
    setting = SimulationConfig(
        DEFAULT.selectors if selectors == "default" else words(selectors),
        clients,
        cohort,
        rounds,
        seeds,
        first_seed,
        numbers("rates", rates),
        parse_eta(eta),
        sampler,
    )
    _run_and_show(
        "simulate",
        Experiment(
            setting,
            run,
            summary,
            lambda s, r: figure3.report(s, r) | figure4.report(s, r),
            figure4.CAPTION,
        ),
        out,
        overwrite,
        as_json,
    )


@app.command()
def report(
    runs: Annotated[
        Path,
        typer.Argument(help="Folder of `compare`, `simulate`, `reproduce`, or of a Flower run."),
    ],
) -> None:
    """Write the page of stored results again: verdict, table, interactive figures in one file, report.html.

    A run that is not finished is shown as far as it is. Nothing is trained.

    Example: fedcohort report runs/demo
    """
    say(write_report(runs))


@app.command(name="list")
def list_names(
    as_json: Annotated[bool, typer.Option("--json", help="Print the names as JSON.")] = False,
) -> None:
    """List everything that has a name: selectors, samplers, data sets, partitions, models, rules, experiments, benchmarks.

    Example: fedcohort list --json
    """
    groups: dict[str, Collection[str]] = {
        "selectors": SELECTORS,
        "samplers": SAMPLERS,
        "data sets": DATASETS,
        "partitions": PARTITIONS,
        "models": _needing_torch("models", "MODELS"),
        "aggregations": AGGREGATIONS,
        "experiments": NAMES,
        "benchmarks": BENCHES,
    }
    if as_json:
        print_json({title: list(names) for title, names in groups.items()})
        return
    for title, names in groups.items():
        console.print(f"[bold]{title}[/bold]: {escape(', '.join(names))}")


@app.command()
def bench(
    name: Annotated[
        str, typer.Argument(help=f"{', '.join(BENCHES)}.", autocompletion=lambda: list(BENCHES))
    ] = "selection",
    quick: Annotated[
        bool, typer.Option("--quick", help="Few repetitions and no ten million clients.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table as JSON and nothing else.")
    ] = False,
) -> None:
    """Measure this machine: medians with quartiles, ratios within one run.

    Names: selection, learning.

    Example: fedcohort bench selection
    """
    rows, about = BENCHES[check_choice("name", name, BENCHES)](quick)
    if as_json:
        print_json({"command": f"bench {name}", "about": about, "rows": rows})
    else:
        print_table(rows, f"bench {name}: {about}")


def _needing_torch(module: str, registry: str) -> Collection[str]:
    """Return the names in a registry of the learning part, or what to install for them."""
    try:
        names: Collection[str] = getattr(import_module(f"fedcohort.learning.{module}"), registry)
    except ModuleNotFoundError:
        return ["pip install 'fedcohort[learning]'"]
    return names


def _in_one_line(mistake: Any) -> str:
    """Return what is wrong: with the value, which newer versions of typer leave to pydantic, and with one suggestion of two."""
    text = mistake.format_message().replace("\n", " ")
    if errors := getattr(mistake.__cause__, "errors", None):
        text += f", got {errors()[0]['input']!r}"
    return re.sub(r"( Did you mean [^?]*\?)\1", r"\1", text)


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"fedcohort {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Choose which clients train in each round of federated learning when clients fail.

    Example: fedcohort compare --out runs/first

    Exit codes: 0 done; 1 done but for what needs data that are not there (reproduce); 2 a mistake, said in one line;
    130 interrupted.
    """


app.command(context_settings={"max_content_width": 110})(compare)
app.command()(reproduce)
app.command()(watch)


def main() -> None:
    """Run the command line; 0 done, 1 done in part, 2 a mistake of the user's, 130 interrupted."""
    try:
        code = app(prog_name="fedcohort", standalone_mode=False)
    except Mistake as error:
        _complain(_in_one_line(error))
        code = 2
    except ModuleNotFoundError as error:
        extra = next((extra for extra, packages in NEEDED.items() if error.name in packages), None)
        if extra is None:
            raise
        _complain(f"this command needs {error.name}: pip install 'fedcohort[{extra}]'")
        code = 2
    except BrokenPipeError:  # who reads the output has gone: everything is on disk by then
        sys.stderr.close()
        code = 0
    except (ValueError, OSError, MemoryError) as error:
        _complain(str(error) or "not enough memory")
        code = 2
    except RuntimeError as error:  # as PyTorch says it, for the host and for a GPU
        if "allocate memory" not in str(error) and "out of memory" not in str(error):
            raise
        _complain(f"not enough memory: {str(error).splitlines()[0]}")
        code = 2
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code
        _complain(INTERRUPTION)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> None:
    Console(stderr=True).print(f"error: {message}", markup=False, highlight=False, soft_wrap=True)


def _run_and_show(
    name: str, experiment: Experiment, out: Path, overwrite: bool, as_json: bool
) -> None:
    """Play, or read what the folder holds of these settings; write the report and print it."""
    watch = AllocationRecorder(experiment.setting.rounds)
    watched = replace(experiment, run=lambda setting, told: run(setting, told, watch))
    with progress_bars() as tell:
        results = played(name, watched, out, overwrite, tell)
    if watch.seen:
        watch.save(out, 0)
    report = report_of(name, experiment, results, {})
    figures, page = write(report, out), write_report(out)
    if as_json:
        settings = experiment.setting.as_dict()
        print_json(
            {
                "command": name,
                "folder": out,
                "settings": settings,
                "rows": report.numbers["summary"],
            }
        )
        return
    show(report, figures)
    say(f"Results: {out}")
    say(page)
