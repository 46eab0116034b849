"""`fedcohort compare`: settings from a TOML file and flags, then train, table, figures; a finished comparison is only shown."""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from fedcohort.checks import check_choice
from fedcohort.cli.console import console, print_json, print_table, progress_bars, say
from fedcohort.lab.config import ComparisonConfig

COMMON = (
    "dataset", "model", "selectors", "partitions", "aggregations", "seeds", "clients", "cohort", "rounds", "targets", "device",
)  # fmt: skip


def _compare(
    config: Path | None,
    out: Path,
    data: Path | None,
    resume: bool,
    overwrite: bool,
    log: str | None,
    as_json: bool,
    help_all: bool,
    **given: str | bool | None,
) -> None:
    """Train under several selectors on a federation whose clients fail: all runs in lock-step, both aggregations.

    Table, figures and report.html go to the folder. The settings below are the most used; --help-all lists every one.

    Example: fedcohort compare --dataset cifar10 --model cifar-cnn --clients 100 --cohort 20 --device cuda
    """
    from fedcohort.cli.pages import write_report
    from fedcohort.files import save_csv
    from fedcohort.lab import folder as rundir
    from fedcohort.lab.config import summary
    from fedcohort.lab.records import read_records

    if log is not None:
        check_choice("log", log, ("tensorboard", "mlflow"))
    flags = {name: parsed(name, value) for name, value in given.items() if value is not None}
    if resume and not config and not flags and (out / "settings.toml").exists():
        config = out / "settings.toml"  # its own
    of = ComparisonConfig.from_dict((rundir.read_settings(config) if config else {}) | flags)
    done = rounds_done(of, out, resume, overwrite)
    if done < of.rounds:
        train(of, out, data, overwrite, log)
    rows = summary(of, read_records(out, of, of.rounds))
    save_csv(out / "summary.csv", rows)
    about = (
        f"{of.dataset}, {of.model}, K={of.clients}, k={of.cohort}, T={of.rounds}, {of.seeds} seeds"
    )
    figures, page = draw(of, out), write_report(out)
    if as_json:
        print_json({"command": "compare", "folder": out, "settings": of.as_dict(), "rows": rows})
        return
    console.print(f"compare: {about}", highlight=False)
    for title, group in by_kind(rows).items():
        print_table(group, title)
    console.print(figures, markup=False, highlight=False)
    say(f"Results: {out}")
    say(page)


def by_kind(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows by partition, aggregation and mu, which leave the columns for the title."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        title = ", ".join(
            str(row[name]) for name in ("partition", "aggregation", "mu") if name in row
        )
        rest = {
            name: value
            for name, value in row.items()
            if name not in ("partition", "aggregation", "mu", "sd", "wasted MB")
        }
        rest["final"] = f"{row['final']:.3f}±{row['sd']:.3f}".replace("±nan", "")
        times = [name for name in rest if name.startswith("time to")]
        for name in times[:-1]:  # the table must fit a terminal; the CSV has them all
            del rest[name]
        kinds.setdefault(title, []).append(rest)
    return kinds


def parsed(name: str, text: str | bool) -> Any:
    """Return a flag's value in the type of its setting: a list where the default is one, numbers where they are."""
    if isinstance(text, bool):
        return text
    default = getattr(ComparisonConfig(), name)
    if isinstance(default, tuple):
        return tuple(_plain(part.strip()) for part in text.split(",") if part.strip())
    return text if isinstance(default, str) and name != "eta" else _plain(text)


def _plain(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return None if text.lower() == "none" else text


def rounds_done(of: ComparisonConfig, out: Path, resume: bool, overwrite: bool) -> int:
    """Return the rounds already done in the folder; refuse one that holds something else, or unfinished work unasked."""
    from fedcohort.data import load
    from fedcohort.files import check_folder
    from fedcohort.lab import folder as rundir
    from fedcohort.lab.records import read_config

    check_folder("out", out)
    settings = out / "settings.toml"
    if overwrite or not out.exists():
        return 0
    if not settings.exists():
        if any(out.iterdir()):
            raise ValueError(
                f"out must be a new or empty folder, got {out}; choose another or add --overwrite"
            )
        return 0
    if read_config(out) != of and resume:
        raise ValueError(
            f"settings must be those of the run in {out} to resume it, got others; without any, its own are taken"
        )
    if read_config(out) != of:
        raise ValueError(
            f"out must not hold a run of other settings, got {out}; choose another or add --overwrite"
        )
    state = rundir.load_checkpoint(out, ("round",))
    done = int(state["round"]) if state else 0
    if done < of.rounds and not resume:
        raise ValueError(
            f"out must not hold an unfinished run, got {out} with {done} of {of.rounds} rounds; add --resume"
        )
    if of.dataset.endswith(".npz") and Path(of.dataset).exists():  # a file may have changed since
        rundir.check_data(out, load(of.dataset).digest)
    return done


def train(
    of: ComparisonConfig, out: Path, data: Path | None, overwrite: bool, log: str | None
) -> None:
    """Play all rounds that are left; nothing is discarded or written before the data are there and the models fit them."""
    from fedcohort.data import load
    from fedcohort.lab import folder as rundir
    from fedcohort.lab.tracking import installed, tracked
    from fedcohort.lab.trial import Trial

    if log is not None:
        installed(log)
    with progress_bars() as tell:
        dataset = load(
            of.dataset, data, on_progress=lambda done, total: tell("download", done, total or done)
        )
        trial = Trial(of, dataset, out)
        runs = len(trial.places)
        with rundir.locked(out):
            if overwrite:
                rundir.discard(out)
            trial.restore()
            rundir.write_settings(out, of.as_dict())
            with tracked(log, of, out, trial.done) if log else nullcontext() as saved:
                trial.run(
                    lambda done, best: tell(
                        f"{runs} runs: best accuracy {best.max():.3f}", done, of.rounds
                    ),
                    saved=saved,
                )


def draw(of: ComparisonConfig, out: Path) -> str:
    """Draw accuracy over rounds and who owns what, if matplotlib is there; return what to say of it."""
    from fedcohort.files import load_arrays
    from fedcohort.lab.config import curves
    from fedcohort.lab.records import read_records
    from fedcohort.reports.charts.clients import labels_per_client
    from fedcohort.reports.charts.curves import accuracy_over_rounds
    from fedcohort.reports.figures import has_matplotlib, save_figures
    from fedcohort.reports.report import NO_FIGURES

    if not has_matplotlib():
        return NO_FIGURES
    figures = {"accuracy": accuracy_over_rounds(curves(of, read_records(out, of, of.rounds)))}
    owners = load_arrays(out / "owners.npz")
    for partition, counts in owners.items():
        figures[f"owners-{partition}"] = labels_per_client({"": counts})
    paths = save_figures(figures, out)
    return f"Figures: {', '.join(path.name for path in paths if path.suffix == '.png')}"


def _with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command one flag per setting, with the setting's own words and default as help."""
    own = {
        "config": (
            Path | None,
            None,
            typer.Option(help="TOML file with any of the settings below; flags go before it."),
        ),
        "out": (Path, Path("runs/compare"), typer.Option(help="Folder of the run.")),
        "data": (
            Path | None,
            None,
            typer.Option(help="Folder with data sets; also $FEDCOHORT_DATA."),
        ),
        "resume": (bool, False, typer.Option("--resume", help="Go on with an unfinished run.")),
        "overwrite": (
            bool,
            False,
            typer.Option("--overwrite", help="Discard what the folder holds."),
        ),
        "log": (
            str | None,
            None,
            typer.Option(help="Also write scalars for tensorboard or mlflow."),
        ),
        "as_json": (
            bool,
            False,
            typer.Option("--json", help="Print the table as JSON and nothing else."),
        ),
        "help_all": (
            bool,
            False,
            typer.Option(
                "--help-all", callback=_help_all, is_eager=True, help="Show all settings, and end."
            ),
        ),
    }
    hints = {name: Annotated[kind, option] for name, (kind, _, option) in own.items()}
    defaults: dict[str, Any] = {name: default for name, (_, default, _) in own.items()}
    for name, meaning in SETTINGS.items():
        switch = name in SWITCHES
        value = None if switch else "VALUE"
        option = typer.Option(
            help=meaning, show_default=False, metavar=value, hidden=name not in COMMON
        )
        hints[name] = Annotated[bool | None if switch else str | None, option]
        defaults[name] = None
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(n, kind, default=defaults[n], annotation=hint)
        for n, hint in hints.items()
    ]

    def compare(**given: Any) -> None:
        command(**given)

    compare.__doc__, compare.__annotations__ = command.__doc__, hints
    compare.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return compare


def _settings() -> tuple[dict[str, str], set[str]]:
    """Return every setting's help with its default, and those that are on or off."""

    def shown(value: Any) -> str:
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()

    every = fields(ComparisonConfig)
    helps = {s.name: f"{s.metadata['help']} (default {shown(s.default)})" for s in every}
    return helps, {s.name for s in every if isinstance(s.default, bool)}


def _help_all(wanted: bool) -> None:
    """Print every setting with its meaning and default, and end."""
    if wanted:
        for name, meaning in SETTINGS.items():
            say(f"--{name.replace('_', '-'):<20} {meaning}")
        raise typer.Exit


SETTINGS, SWITCHES = _settings()
compare = _with_flags(_compare)
