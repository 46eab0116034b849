"""Tables II and III: what is trained for them, and how they are reported."""

from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper import published
from fedcohort.paper.cells import Cells
from fedcohort.paper.fit import SCORES_LEGEND, score_rows
from fedcohort.paper.labels import describe_config, describe_origin, title_on
from fedcohort.paper.paired_fit import PAIRED_LEGEND, Network, paired_rows
from fedcohort.paper.readings import PREFACE, readings_of, split_worlds
from fedcohort.paper.results import Results
from fedcohort.paper.setting import (
    INDEPENDENT_DRAWS,
    PAPER,
    Overrides,
    full_config,
    task_config,
)
from fedcohort.paper.tables import Rows, long_rows, make_tables
from fedcohort.reports.report import Report

PARTITIONS = (*PAPER["partitions"], INDEPENDENT_DRAWS)
LEGEND = (
    "Mean ± standard deviation over seeds. Beside it stands the paper's value and, in brackets, "
    "our mean less the paper's value. *: the paper's value lies outside the 95 % prediction "
    "interval of one more seed, which is wide if there are few (15.6 sd to each side for two). "
    "?: the spread is unknown, because there is one seed or a run is unfinished. "
    "never: no run reached this accuracy. "
    "(2 of 3): the number is of two runs; the third has not reached the accuracy."
)


def configs(task: str, overrides: Overrides) -> list[ComparisonConfig]:
    """Return what is trained: seven schemes, FedAvg and FedProx, iid and non-iid.

    Independent draws are another reading of the non-iid split, trained on request only.
    """
    wanted = [task_config(task, overrides)]
    if INDEPENDENT_DRAWS in overrides.get("partitions", ()):
        wanted.append(task_config(task, overrides, partitions=(INDEPENDENT_DRAWS,)))
    return [config for config in wanted if config is not None]


def report(name: str, title: str, task: str, results: Results, overrides: Overrides) -> Report:
    """Report the first rounds and final accuracies of a task beside the paper's values.

    Args:
        name: Name of the artefact.
        title: Its title in the paper, such as "Table II".
        task: A name in TASKS.
        results: The results to read.
        overrides: Fields of the config that the user changed.
    """
    config = full_config(task, overrides)
    tables: dict[str, Rows] = {}
    numbers: Rows = []
    scores: Rows = []
    networks: list[Network] = []
    notes: dict[str, None] = {}
    readings = readings_of(task, config.model, overrides)
    for reading in readings:
        config = full_config(task, overrides, model=reading.model, partitions=PARTITIONS)
        (cells,), left_out = results.cells(config)
        notes |= dict.fromkeys(left_out + describe_origin(cells))
        cells = _without_unasked(cells)
        parts = split_worlds(config.dataset, cells)
        unchosen = next(iter(parts.values()))  # these worlds come first
        networks.append(Network(reading.name.lower(), config, unchosen))
        for worlds, part in parts.items():
            words = {"reading": reading.name or "as asked", "worlds": worlds or "all"}
            for group, rows in make_tables(config, part).items():
                if not worlds.startswith("world ") or any(row["runs"] for row in rows):
                    tables[_table_title(reading.name, group, worlds)] = rows
            numbers += [words | row for row in long_rows(config, part)]
            scores += [words | row for row in score_rows(config, part, cells)]
    if scores:
        tables["Fit to the paper"] = scores
    pairs: Rows = []
    if len(networks) == 2:
        pairs = paired_rows(*networks)
    if pairs:
        tables["Nearer to the paper, in worlds of both"] = pairs

    legends = [LEGEND]
    if config.dataset not in published.ROUNDS:
        legends = [f"These are other data than those of the paper's {title}: no published values."]
    if config.dataset == task and config.rounds != published.ROUNDS[task]:
        rounds = published.ROUNDS[task]
        legends.append(
            f"The paper plays {rounds} rounds: final accuracies are not compared, and no first "
            "rounds beyond the fewer of its rounds and ours."
        )
    if scores:
        legends.append(SCORES_LEGEND)
    if pairs:
        legends.append(PAIRED_LEGEND)
    preface = [PREFACE] if len(readings) > 1 else []

    return Report(
        name,
        f"{title_on(config.dataset, task, title)}: {describe_config(config)}",
        tables,
        [*legends, *notes],
        {name: numbers},
        preface=preface,
    )


def _table_title(reading: str, group: str, worlds: str) -> str:
    """Return the title of a table, such as "As printed: iid, FedAvg, worlds that ..."."""
    words = group
    if reading:
        words = f"{reading}: {words}"
    if worlds:
        words += f", {worlds}"
    return words


def _without_unasked(cells: Cells) -> Cells:
    """Leave out independent draws if none were trained."""
    if any(runs for key, runs in cells.items() if key[1] == INDEPENDENT_DRAWS):
        return cells
    return {key: runs for key, runs in cells.items() if key[1] != INDEPENDENT_DRAWS}
