"""Find out what a source is, and read it as a log."""

from pathlib import Path

import numpy as np

from fedcohort.advice.csv_log import COLUMNS, OPTIONAL, is_log_header, read_csv_log
from fedcohort.advice.journals import read_journal
from fedcohort.advice.log import ARRIVED, FederationLog, Question, make_log
from fedcohort.advice.played import play_simulation, play_trace
from fedcohort.checks import check_choice, check_int, check_positive
from fedcohort.files import check_file
from fedcohort.lab.comparison import load_comparison
from fedcohort.lab.folder import FLOWER_JOURNAL, Kind, check_not_advice, detect_kind
from fedcohort.lab.runs import run_keys
from fedcohort.selection.protocol import NOBODY
from fedcohort.world.intervals import COLUMNS as TRACE_COLUMNS
from fedcohort.world.trace import read_lines

ROUND_SECONDS = 60.0


def read_log(
    source: Path,
    *,
    cohort: int | None = None,
    deadline: float | None = None,
    round_seconds: float | None = None,
    selector: str | None = None,
) -> FederationLog:
    """Return the log of a federation, whatever recorded it.

    Args:
        source: A folder of a Flower run, of `compare` or of `simulate`; a journal; a CSV log with
            the header `round,client,asked,arrived,seconds[,inclusion]`; or an availability trace
            with the header `client,on,off`.
        cohort: Clients asked per round, for a trace.
        deadline: Seconds after which the server stopped waiting, for a CSV log.
        round_seconds: Length of a round, for a trace; by default 60.
        selector: Whose run to read, for a folder of `compare`; by default the first.

    Raises:
        ValueError: If the source is none of these, cannot be read, or says itself what is given.
    """
    given: dict[str, float | str | None] = {
        "cohort": None if cohort is None else check_int("cohort", cohort, 1),
        "deadline": None if deadline is None else check_positive("deadline", deadline),
        "round_seconds": round_seconds,
        "selector": selector,
    }
    if source.is_dir():
        return _read_folder(source, given)
    if source.name == FLOWER_JOURNAL:
        _check_given(given, (), source, "the journal of a Flower run")
        return read_journal(source.parent)
    check_file(source)
    header = read_lines(source, "a header")[0]
    if is_log_header(header):
        _check_given(given, ("deadline",), source, "a log in CSV")
        return read_csv_log(source, deadline)
    if tuple(cell.strip() for cell in header.split(",")) == TRACE_COLUMNS:
        _check_given(given, ("cohort", "round_seconds"), source, "a trace")
        length = ROUND_SECONDS if round_seconds is None else round_seconds
        return play_trace(source, cohort, length)
    raise ValueError(
        f"{source}, line 1: must be {','.join(COLUMNS)}[,{OPTIONAL}] (a log) or "
        f"{','.join(TRACE_COLUMNS)} (a trace), got {header[:100]!r}"
    )


def _read_folder(folder: Path, given: dict[str, float | str | None]) -> FederationLog:
    check_not_advice("source", folder)
    kind = detect_kind(folder)
    if kind is Kind.FLOWER:
        _check_given(given, (), folder, "a Flower run")
        return read_journal(folder)
    if kind is Kind.COMPARISON:
        _check_given(given, ("selector",), folder, "a run of compare")
        selector = given["selector"]
        return read_comparison(folder, None if selector is None else str(selector))
    if kind is Kind.SIMULATION:
        _check_given(given, (), folder, "a run of simulate")
        return play_simulation(folder)
    raise ValueError(
        "source must be a folder of a Flower run, of compare or of simulate, a CSV log or a "
        f"trace, got {folder}"
    )


def _check_given(
    given: dict[str, float | str | None], used: tuple[str, ...], source: Path, what: str
) -> None:
    """Refuse values that a source says itself, instead of ignoring them."""
    for name, value in given.items():
        if value is not None and name not in used:
            raise ValueError(f"{name} must be left out for {what}, {source}, got {value!r}")


def read_comparison(folder: Path, selector: str | None = None) -> FederationLog:
    """Return the log of one run of a comparison: the first seed of a selector.

    Args:
        folder: The run folder.
        selector: Whose run; by default that of the first selector.

    Raises:
        ValueError: If no round was played, or the selector is none of the comparison's.
    """
    comparison = load_comparison(folder)
    config = comparison.config
    name = selector or config.selectors[0]
    check_choice("selector", name, config.selectors)
    if not comparison.rounds_done:
        raise ValueError(f"{folder} must hold at least one round, got none")
    keys = run_keys(config)
    run = next(row for row, key in enumerate(keys) if key.selector == name)

    clients = comparison.records["clients"][:, run]
    arrived = comparison.records["arrived"][:, run]
    valid = comparison.records["valid"][:, run]
    inclusion = np.nan
    if name == "random" and not config.knows_offline:
        inclusion = config.cohort / config.clients
    questions = []
    for round, places in enumerate(clients):
        for place in np.flatnonzero(places != NOBODY):
            status = "lost"
            if arrived[round, place]:
                status = ARRIVED if valid[round, place] else "rejected"
            question = Question(
                round + 1,
                str(places[place]),
                bool(valid[round, place]),
                inclusion=inclusion,
                status=status,
            )
            questions.append(question)
    lengths = {}
    for round, seconds in enumerate(comparison.records["seconds"][:, run].tolist()):
        lengths[round + 1] = seconds
    note = (
        f"One of {len(keys)} runs is read: {name}, seed {keys[run].seed}. It has no answer times."
    )
    return make_log(
        str(folder),
        questions,
        names=tuple(str(client) for client in range(config.clients)),
        round_seconds=lengths,
        deadline=config.seconds_until_deadline,
        selector=name,
        notes=(note,),
    )
