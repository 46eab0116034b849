"""`fedcohort advise`: what to change in a federation, from what it recorded."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedcohort.cli.console import console, print_json, print_table, progress_bars, say
from fedcohort.cli.parse import parse_numbers, parse_words

if TYPE_CHECKING:
    from fedcohort.advice import Advice, FederationLog

ADVICE = "advice.json"
SETTINGS = "settings.toml"
SNIPPET = "strategy.py"
TRAINING = "training"
TITLES = {
    "seen": "What the log shows",
    "deadline": "Deadline",
    "cohort": "Cohort",
    "selector": "Selector",
    "rule": "Aggregation",
    "training": "Training",
}


def advise(
    source: Annotated[
        Path | None,
        typer.Argument(help="A Flower run, a folder of ours, or a CSV."),
    ] = None,
    clients: Annotated[int | None, typer.Option(help="Without a source: clients.")] = None,
    cohort: Annotated[int | None, typer.Option(help="Clients asked per round.")] = None,
    rates: Annotated[str | None, typer.Option(help="Without a source: success by class.")] = None,
    deadline: Annotated[float | None, typer.Option(help="Present deadline in seconds.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Without a source: time of an answer.")
    ] = None,
    spread: Annotated[float, typer.Option(help="Spread of that time.")] = 0.5,
    off: Annotated[float, typer.Option(help="Rounds that failures last.")] = 1.0,
    round_seconds: Annotated[float, typer.Option(help="Of a round in a trace.")] = 60.0,
    selector: Annotated[str | None, typer.Option(help="Of `compare`: whose run.")] = None,
    selectors: Annotated[str | None, typer.Option(help="Selectors to compare, by commas.")] = None,
    needed: Annotated[int | None, typer.Option(help="Answers wanted per round.")] = None,
    keep: Annotated[float, typer.Option(help="Answers to keep.")] = 0.9,
    fair: Annotated[float, typer.Option(help="Least share of all.")] = 0.4,
    model_bytes: Annotated[int | None, typer.Option(help="Size of the model.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Also compare by training on this.")] = None,
    model: Annotated[str | None, typer.Option(help="Model to train.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds to play, and to train.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs to train.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the advice.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False,
) -> None:
    """Say what to change in a federation: deadline, cohort, selector, aggregation.

    SOURCE is a folder of a Flower run, of `compare` or `simulate`, or a log or trace in CSV;
    without it --clients and --rates describe a federation.

    Example: fedcohort advise runs/flower --out runs/advice
    """
    # Imported here, not at the top: `--help` must not load them.
    from fedcohort import advice as library
    from fedcohort.advice.selectors import CANDIDATES
    from fedcohort.advice.training import train
    from fedcohort.files import check_folder, write_json, write_text

    if out is not None:
        check_folder("out", out)
    trains = dataset is not None or model is not None
    if trains and out is None:
        raise ValueError("out must be given with dataset or model, for the run folder, got none")
    options = library.Options(
        selectors=parse_words(selectors) if selectors else CANDIDATES,
        needed=needed,
        keep=keep,
        fair=fair,
        model_bytes=model_bytes,
        rounds=rounds,
        seed=seed,
    )
    if source is None:
        log = _described(clients, cohort, rates, deadline, seconds, spread, off, seed)
    else:
        log = library.read_log(
            source,
            cohort=cohort,
            deadline=deadline,
            round_seconds=round_seconds,
            selector=selector,
        )
    found = library.advise(log, options)
    if trains and out is not None:
        given = {"dataset": dataset, "model": model, "rounds": rounds, "seeds": seeds}
        changes = {name: value for name, value in given.items() if value is not None}
        with progress_bars() as on_progress:
            found = train(found, out / TRAINING, changes, data, on_progress)

    if out is not None:
        write_json(out / ADVICE, library.to_dict(found))
        write_text(out / SETTINGS, found.settings_toml)
        write_text(out / SNIPPET, found.snippet)
    if as_json:
        print_json({"command": "advise", **library.to_dict(found)})
        return
    _show(found)
    if out is not None:
        say(f"Advice: {out / ADVICE}, {out / SETTINGS}, {out / SNIPPET}")


def _described(
    clients: int | None,
    cohort: int | None,
    rates: str | None,
    deadline: float | None,
    seconds: float | None,
    spread: float,
    off: float,
    seed: int,
) -> "FederationLog":
    """Return the log of a federation that flags describe."""
    from fedcohort.advice import Description, play_description

    if clients is None or rates is None:
        raise ValueError("source must be given, or clients and rates, got neither")
    description = Description(
        clients=clients,
        cohort=cohort if cohort is not None else max(1, clients // 5),
        rates=parse_numbers("rates", rates),
        deadline=deadline,
        seconds=seconds,
        spread=spread,
        off=off,
        seed=seed,
    )
    return play_description(description)


def _show(found: "Advice") -> None:
    """Print the advice: what was repaired, the sentences by topic, tables, and settings."""
    from fedcohort.advice import sentences

    for note in found.log.notes:
        say(f"Note: {note}")
    topic = ""
    for sentence in sentences(found):
        if sentence.topic != topic:
            topic = sentence.topic
            console.print(f"\n{TITLES[topic]}", style="bold", markup=False, highlight=False)
        mark = "-" if sentence.is_said else "?"
        say(f"  {mark} {sentence.text}")
    say("")
    print_table(selector_rows(found), "selectors, answers per round")
    if found.deadline is not None:
        print_table(deadline_rows(found), "deadlines")
    say(f"# {SETTINGS}, for `fedcohort compare --config {SETTINGS}`")
    say(found.settings_toml)
    say(f"# {SNIPPET}, for a Flower server app")
    say(found.snippet)


def selector_rows(found: "Advice") -> list[dict[str, Any]]:
    """Return one row per selector, the most answers first."""
    rows = []
    for name, played in found.selector.fitted.items():
        other = found.selector.resampled[name]
        rows.append(
            {
                "selector": name,
                "fitted world": float(played.arrivals.mean()),
                "resampled log": float(other.arrivals.mean()),
                "least asked": played.least_asked,
                "Jain": played.jain,
            }
        )
    return sorted(rows, key=lambda row: -float(row["fitted world"]))


def deadline_rows(found: "Advice") -> list[dict[str, Any]]:
    """Return about ten rows of the curve of deadlines, the recommended and present ones too."""
    curve = found.deadline
    if curve is None:
        return []
    places = set(range(0, len(curve.seconds), 7))
    places.add(int(abs(curve.seconds - curve.best).argmin()))
    if curve.present is not None:
        places.add(int(abs(curve.seconds - curve.present).argmin()))
    rows = []
    for place in sorted(places):
        rows.append(
            {
                "deadline s": float(curve.seconds[place]),
                "answers": float(curve.arrivals[place]),
                "round s": float(curve.length[place]),
                "kept": float(curve.kept[place]),
                "answers per minute": 60 * float(curve.speed[place]),
            }
        )
    return rows
