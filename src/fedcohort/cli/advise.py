"""`fedcohort advise`: what to change in a federation, from what it recorded."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedcohort.cli.console import console, print_json, print_table, progress_bars, say
from fedcohort.cli.parse import parse_numbers, parse_words

if TYPE_CHECKING:
    from fedcohort.advice import Advice, FederationLog

SETTINGS = "settings.toml"
SNIPPET = "strategy.py"
TRAINING = "training"


def advise(
    source: Annotated[
        Path | None,
        typer.Argument(help="Flower run, folder of compare or simulate, or CSV."),
    ] = None,
    clients: Annotated[int | None, typer.Option(help="Number of clients.")] = None,
    rates: Annotated[str | None, typer.Option(help="How often they answer, as 0.3,0.9.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Median seconds until an answer.")] = None,
    spread: Annotated[
        float | None, typer.Option(help="Standard deviation of the logarithm of these seconds.")
    ] = None,
    off: Annotated[float | None, typer.Option(help="Mean rounds that a failure lasts.")] = None,
    cohort: Annotated[
        int | None, typer.Option(help="Clients asked per round; also for a trace.")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(help="Present deadline in seconds; also for a CSV log.")
    ] = None,
    round_seconds: Annotated[
        float | None, typer.Option(help="Trace: length of a round, by default 60.")
    ] = None,
    selector: Annotated[
        str | None, typer.Option(help="Run of `compare`: which selector's.")
    ] = None,
    selectors: Annotated[
        str | None, typer.Option(help="Selectors to compare, with commas.")
    ] = None,
    needed: Annotated[int | None, typer.Option(help="Answers wanted per round.")] = None,
    keep: Annotated[
        float,
        typer.Option(help="Least share of all answers that must come before the deadline."),
    ] = 0.9,
    fair: Annotated[
        float,
        typer.Option(
            help="Lowest share of a fair share that the least asked fifth of clients must get."
        ),
    ] = 0.4,
    model_bytes: Annotated[int | None, typer.Option(help="Size of the model.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Also train on this data set; needs --out.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Also train this model; needs --out.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds to play, and to train.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds to train.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder to write the advice to.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False,
) -> None:
    """Say what to change in a federation: deadline, cohort, selector, aggregation.

    SOURCE is a folder of a Flower run, of `compare` or `simulate`, or a CSV
    log or trace. Without it, --clients to --deadline describe a federation.
    Brackets in the output are 95 % intervals; ? marks what cannot be said.

    Example: fedcohort advise runs/flower --out runs/advice
    """
    # Imported here, not at the top: `--help` must not load them.
    from fedcohort import advice as library
    from fedcohort.advice.page import advice_findings
    from fedcohort.advice.selectors import CANDIDATES
    from fedcohort.advice.training import train
    from fedcohort.files import write_json, write_text
    from fedcohort.lab.folder import ADVICE
    from fedcohort.reports.html.page import write_page

    if out is not None:
        _check_out(out)
    trains = dataset is not None or model is not None
    if trains and out is None:
        raise ValueError("out must be given with dataset or model, for the run folder, got none")
    if not trains:
        _refuse({"seeds": seeds, "data": data}, "without dataset or model")
    names = CANDIDATES if selectors is None else parse_words(selectors)
    if not names:
        raise ValueError(f"selectors must name at least one selector, got {selectors!r}")
    options = library.Options(
        selectors=names,
        needed=needed,
        keep=keep,
        fair=fair,
        model_bytes=model_bytes,
        rounds=rounds,
        seed=seed,
    )
    described = {
        "clients": clients,
        "rates": rates,
        "seconds": seconds,
        "spread": spread,
        "off": off,
    }
    if source is None:
        _refuse({"round_seconds": round_seconds, "selector": selector}, "without a source")
        more = {"cohort": cohort, "deadline": deadline, "rounds": rounds, "seed": seed}
        log = _described({**described, **more})
    else:
        _refuse(described, f"for {source}: it describes a federation without a source")
        log = library.read_log(
            source,
            cohort=cohort,
            deadline=deadline,
            round_seconds=round_seconds,
            selector=selector,
        )
    with progress_bars() as on_progress:
        found = library.advise(log, options, on_progress)
    if trains and out is not None:
        given = {"dataset": dataset, "model": model, "rounds": rounds, "seeds": seeds}
        changes: dict[str, Any] = {}
        changes.update((name, value) for name, value in given.items() if value is not None)
        if selectors is not None:
            changes["selectors"] = found.selector.compared
        with progress_bars() as on_progress:
            found = train(found, out / TRAINING, changes, data, on_progress)

    if out is not None:
        write_json(out / ADVICE, library.to_dict(found))
        write_text(out / SETTINGS, found.settings_toml)
        write_text(out / SNIPPET, found.snippet)
        page = write_page(advice_findings(found), out)
    if as_json:
        print_json({"command": "advise", **library.to_dict(found)})
        return
    _show(found)
    if out is not None:
        say(f"Advice: {out / ADVICE}, {out / SETTINGS}, {out / SNIPPET}")
        say(f"Report: {page}")


def _check_out(out: Path) -> None:
    """Refuse a folder with a run, or with files of the user that advice would overwrite."""
    from fedcohort.files import check_folder
    from fedcohort.lab.folder import Kind, detect_kind, find_shards, has_advice
    from fedcohort.paper.page import FOLDERS
    from fedcohort.reports.html.page import FILE_NAME

    check_folder("out", out)
    kind = detect_kind(out, FOLDERS)
    if kind is None and find_shards(out):
        kind = Kind.COMPARISON
    is_advice = has_advice(out)
    if kind is not None:
        raise ValueError(f"out must not hold a {kind.value}, got {out}; choose another")
    for name in (SNIPPET, FILE_NAME):
        if not is_advice and (out / name).exists():
            raise ValueError(
                f"out must not hold a {name} that advise did not write, got {out}; choose another"
            )


def _refuse(given: dict[str, Any], why: str) -> None:
    """Refuse flags that would have no effect."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} must be left out {why}, got {value}")


def _described(given: dict[str, Any]) -> "FederationLog":
    """Return the log of a federation that flags describe; what is not given has its default."""
    from fedcohort.advice import Description, play_description

    if given["clients"] is None or given["rates"] is None:
        raise ValueError(
            "source must be given, or clients and rates, got no source, "
            f"clients={given['clients']!r} and rates={given['rates']!r}"
        )
    if given["seconds"] is None:
        _refuse({"spread": given["spread"]}, "without seconds")
    values = {name: value for name, value in given.items() if value is not None}
    values["rates"] = parse_numbers("rates", given["rates"])
    if not values["rates"]:
        raise ValueError(f"rates must be at least one number, got {given['rates']!r}")
    values.setdefault("cohort", max(1, given["clients"] // 5))
    return play_description(Description(**values))


def _show(found: "Advice") -> None:
    """Print the advice: what was repaired, the sentences by topic, tables, and settings."""
    from fedcohort.advice import sentences
    from fedcohort.advice.headline import headline
    from fedcohort.advice.wording import TOPICS

    for note in found.log.notes:
        say(f"Note: {note}")
    say(headline(found))
    say("Ranges in brackets are 95 % intervals; ? marks what the log cannot tell.")
    topic = ""
    for sentence in sentences(found):
        if sentence.topic != topic:
            topic = sentence.topic
            console.print(f"\n{TOPICS[topic]}", style="bold", markup=False, highlight=False)
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
                "Jain": float(played.jain.mean()),
                "remark": found.selector.remark(name),
            }
        )
    return sorted(rows, key=lambda row: -float(row["fitted world"]))


def deadline_rows(found: "Advice") -> list[dict[str, Any]]:
    """Return about ten rows of the curve of deadlines, the recommended and present ones too."""
    curve = found.deadline
    if curve is None:
        return []
    places = set(range(0, len(curve.seconds), 7))
    places.add(curve.nearest(curve.best))
    if curve.present is not None:
        places.add(curve.nearest(curve.present))
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
