"""The command line: parse, call, show. A user's mistake ends with one line and exit code 2, never with a traceback."""

import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import click
import typer
from rich.console import Console
from rich.markup import escape

from fedcohort import __version__
from fedcohort.bench import BENCHES
from fedcohort.checks import known
from fedcohort.cli.compare import compare
from fedcohort.cli.console import console, progress_bars
from fedcohort.data import DATASETS, PARTITIONS
from fedcohort.experiments import figure3, figure4
from fedcohort.experiments.registry import EXPERIMENTS, Experiment
from fedcohort.experiments.simulation import Setting, arrays, run, summary
from fedcohort.reports.figures import Figure, save_figures
from fedcohort.reports.figures import available as can_draw
from fedcohort.reports.tables import as_table
from fedcohort.selection.registry import SELECTORS
from fedcohort.selection.sampling import SAMPLERS
from fedcohort.store import claim, save, save_csv

LEARNING_NEEDS = ("torch", "sklearn", "safetensors")
app = typer.Typer(
    help="Choose which clients train in each round of federated learning when clients fail.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
DEFAULT = Setting()
INTERRUPTED = 130
INTERRUPTION = "interrupted; a training run goes on from its last checkpoint with --resume, anything else starts anew"


@app.command()
def simulate(
    selectors: Annotated[str, typer.Option(help="Comma-separated names, or 'default'; see `fedcohort list`.")] = "default",
    clients: Annotated[int, typer.Option(help="Number of clients, K.")] = DEFAULT.num_clients,
    cohort: Annotated[int, typer.Option(help="Clients asked per round, k.")] = DEFAULT.cohort_size,
    rounds: Annotated[int, typer.Option(help="Number of rounds, T.")] = DEFAULT.rounds,
    seeds: Annotated[int, typer.Option(help="Number of runs, each with its own world.")] = DEFAULT.seeds,
    first_seed: Annotated[int, typer.Option(help="Seed of the first run; the others count up.")] = DEFAULT.first_seed,
    rates: Annotated[str, typer.Option(help="Success rate of each class of clients.")] = ",".join(map(str, DEFAULT.rates)),
    eta: Annotated[str, typer.Option(help="Learning rate of E3CS, or 'auto' for the theorem's.")] = str(DEFAULT.eta),
    sampler: Annotated[str, typer.Option(help=f"{', '.join(SAMPLERS)} (the paper's).")] = DEFAULT.sampler,
    out: Annotated[Path, typer.Option(help="Folder for results and figures.")] = Path("runs/simulate"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results of other settings there.")] = False,
) -> None:
    """Play selectors without training: success ratio, CEP and fairness.

    Example: fedcohort simulate --selectors e3cs-0.5,random --seeds 50 --sampler successive
    """
    setting = Setting(
        DEFAULT.selectors if selectors == "default" else _words(selectors),
        clients,
        cohort,
        rounds,
        seeds,
        first_seed,
        _numbers("rates", rates),
        _eta(eta),
        sampler,
    )
    _run_and_show(
        "simulate",
        Experiment(setting, run, summary, lambda s, r: figure3.report(s, r) | figure4.report(s, r), figure4.CAPTION),
        out,
        overwrite,
    )


@app.command()
def reproduce(
    names: Annotated[list[str], typer.Argument(help="figure3, figure4, regret, or all.")],
    seeds: Annotated[int | None, typer.Option(help="Number of runs; the default is each experiment's own.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds; the paper's unless given.")] = None,
    sampler: Annotated[str | None, typer.Option(help="Sampler of figures 3 and 4; the paper's unless given.")] = None,
    out: Annotated[Path, typer.Option(help="Folder; each experiment gets one of its own inside.")] = Path("runs/reproduce"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results of other settings there.")] = False,
) -> None:
    """Reproduce figure3, figure4, regret (Theorem 1) or all of them, with their corrections.

    Example: fedcohort reproduce figure3 figure4 --seeds 50
    """
    wanted = [known("name", name, [*EXPERIMENTS, "all"]) for name in names]
    chosen = list(EXPERIMENTS) if "all" in wanted else wanted
    given: dict[str, Any] = {"seeds": seeds, "rounds": rounds, "sampler": sampler}
    changes = {key: value for key, value in given.items() if value is not None}
    settings = {name: replace(EXPERIMENTS[name].setting, **changes) for name in chosen}  # all checked before any is run
    for name, setting in settings.items():
        _run_and_show(name, replace(EXPERIMENTS[name], setting=setting), out / name, overwrite)


@app.command(name="list")
def list_names() -> None:
    """List everything that has a name: selectors, samplers, data sets, partitions, models, rules, experiments, benchmarks."""
    groups: dict[str, Collection[str]] = {
        "selectors": SELECTORS,
        "samplers": SAMPLERS,
        "data sets": DATASETS,
        "partitions": PARTITIONS,
        "models": _needing_torch("models", "MODELS"),
        "aggregations": _needing_torch("aggregation", "AGGREGATIONS"),
        "experiments": EXPERIMENTS,
        "benchmarks": BENCHES,
    }
    for title, names in groups.items():
        console.print(f"[bold]{title}[/bold]: {escape(', '.join(names))}")


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help=f"{', '.join(BENCHES)}.")] = "selection",
    quick: Annotated[bool, typer.Option("--quick", help="Few repetitions and no ten million clients.")] = False,
) -> None:
    """Measure on this machine: medians and spread, ratios within one run. Names: selection, learning, flower.

    Example: fedcohort bench selection
    """
    rows, about = BENCHES[known("name", name, BENCHES)](quick)
    console.print(as_table(rows, title=f"bench {name}: {about}"))


def _needing_torch(module: str, registry: str) -> Collection[str]:
    """Return the names in a registry of the learning part, or what to install for them."""
    try:
        names: Collection[str] = getattr(import_module(f"fedcohort.learning.{module}"), registry)
    except ModuleNotFoundError:
        return ["pip install 'fedcohort[learning]'"]
    return names


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"fedcohort {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Choose which clients train in each round of federated learning when clients fail."""


app.command(context_settings={"max_content_width": 110})(compare)


def main() -> None:
    """Run the command line; 0 done, 2 a mistake of the user's, 130 interrupted."""
    try:
        code = app(standalone_mode=False)
    except click.ClickException as error:
        _complain(error.format_message().replace("\n", " "))
        code = 2
    except ModuleNotFoundError as error:
        if error.name not in LEARNING_NEEDS:
            raise
        _complain(f"this command trains and needs {error.name}: pip install 'fedcohort[learning]'")
        code = 2
    except BrokenPipeError:  # who reads the output has gone: everything is on disk by then
        sys.stderr.close()
        code = 0
    except (ValueError, OSError, MemoryError) as error:
        _complain(str(error) or "not enough memory")
        code = 2
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code
        _complain(INTERRUPTION)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> None:
    Console(stderr=True).print(f"error: {message}", markup=False, highlight=False, soft_wrap=True)


def _run_and_show(name: str, experiment: Experiment, out: Path, overwrite: bool) -> None:
    """Run, then write results and figures and print the table; a folder of other results is refused before the work."""
    setting = experiment.setting
    settings = {"experiment": name, "version": __version__, **setting.as_dict()}
    claim(out, settings, overwrite)
    with progress_bars() as tell:
        results = experiment.run(setting, tell)
    rows = experiment.rows(setting, results)
    save(out, settings, arrays(results))
    save_csv(out / "summary.csv", rows)
    where = f"K={setting.num_clients}, k={setting.cohort_size}, T={setting.rounds}, {setting.seeds} seeds, {setting.sampler}"
    drawn = _draw(experiment.report, setting, results, out, experiment.caption)
    console.print(as_table(rows, title=f"{name}: {where}"))
    console.print(drawn, markup=False, highlight=False)
    console.print(f"Results: {out}", markup=False, highlight=False, soft_wrap=True)


def _draw(report: Callable[..., dict[str, Figure]], setting: Setting, results: Any, out: Path, caption: str) -> str:
    """Draw and return what to say of it."""
    if not can_draw():
        return "No figures: they need pip install 'fedcohort[plots]'"
    paths = save_figures(report(setting, results), out)
    return f"{caption}\nFigures: {', '.join(path.name for path in paths)}"


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in _words(text))
    except ValueError:
        raise ValueError(f"{name} must be comma-separated numbers, got {text!r}") from None


def _eta(text: str) -> float | str:
    try:
        return "auto" if text == "auto" else float(text)
    except ValueError:
        raise ValueError(f"eta must be a number or 'auto', got {text!r}") from None
