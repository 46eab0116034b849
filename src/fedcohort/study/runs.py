"""Train the blocks of a study, and keep what is measured of them as plain tables."""

import csv
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.checks import shown
from fedcohort.data import Dataset, load
from fedcohort.files import check_file, save_csv
from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison import Comparison, load_comparison, run_comparison
from fedcohort.lab.sharding import ShardWorkers, run_shard
from fedcohort.lab.shards import Shard
from fedcohort.lab.simulation import Progress
from fedcohort.study.measures import Row, align_columns, curve, measure
from fedcohort.study.table_checks import (
    CURVE_COLUMNS,
    FIRST_LINE,
    MEASURE_COLUMNS,
    WORDS,
    check_columns,
    check_comparable,
    check_words,
)
from fedcohort.study.volatility import BASELINE, Block

RUNS = "runs"
MEASURES = "runs.csv"
CURVES = "curves.csv"
# The combinations whose curves are kept for the figures.
SHOWN = (
    BASELINE,
    ("random", "fedvarp"),
    ("age", "fedvarp"),
    ("age", "mifa"),
    ("e3cs-0.5", "normalised"),
    ("e3cs-0.5", "paper"),
    ("random", "paper"),
)


def train(
    blocks: Iterable[Block],
    out: Path,
    data: Path | None = None,
    on_progress: Progress | None = None,
    workers: ShardWorkers | None = None,
) -> None:
    """Train the blocks that are not finished, and add what is measured to the tables.

    Blocks whose shards are finished are merged.

    Args:
        blocks: The blocks.
        out: Folder of the study.
        data: Folder with data sets.
        on_progress: Called with the name of a block, the rounds done and the rounds in all.
        workers: Devices or a Ray cluster that share the seeds; None trains in this process.

    Raises:
        ValueError: If a shard fails, or a block has shards that are not finished.
    """
    blocks = list(blocks)
    datasets: dict[str, Dataset] = {}
    for block in blocks:
        if block.task not in datasets:
            datasets[block.task] = load(block.config.dataset, data)
    if workers is not None:
        _train_shards(blocks, out, workers, data, on_progress)
    for block in blocks:
        comparison, model_bytes = _train_block(block, datasets[block.task], out, on_progress)
        _add_rows(out / MEASURES, measure(block, comparison, model_bytes), block)
        _add_rows(out / CURVES, _curve_rows(block, comparison), block)


def train_shard(
    blocks: Sequence[Block],
    out: Path,
    shard: Shard,
    data: Path | None = None,
    on_progress: Progress | None = None,
) -> None:
    """Train one shard of every block; `train` merges and measures them.

    Args:
        blocks: The blocks. Those that were begun without shards are left to `train`.
        out: Folder of the study.
        shard: Which share of the seeds.
        data: Folder with data sets.
        on_progress: Called with the name of a block, the rounds done and the rounds in all.

    Raises:
        ValueError: If a block has shards of other settings, or more shards than seeds.
    """
    for block in blocks:
        folder = out / RUNS / block.folder
        if run_folder.has_comparison(folder) and not run_folder.find_shards(folder):
            continue
        tell = partial(_tell, block.folder, on_progress)
        run_shard(block.config, folder, shard, data=data, resume=True, on_progress=tell)


def _tell(name: str, on_progress: Progress | None, words: str, done: int, total: int) -> None:
    if on_progress:
        on_progress(name, done, total)


def _train_shards(
    blocks: Sequence[Block],
    out: Path,
    workers: ShardWorkers,
    data: Path | None,
    on_progress: Progress | None,
) -> None:
    """Train all shards of all blocks, as many as an earlier call had."""
    counts = set()
    for block in blocks:
        counts |= {count for _, count in run_folder.find_shards(out / RUNS / block.folder)}
    if len(counts) > 1:
        raise ValueError(f"{out} must hold shards of one number, got shards of {sorted(counts)}")
    smallest = min((block.config for block in blocks), key=lambda config: config.seeds)

    def make_work(shard: Shard) -> partial[None]:
        return partial(train_shard, blocks, out, shard, data)

    workers.train(make_work, smallest, out, next(iter(counts), None), on_progress)


def read_measures(folder: Path) -> list[Row]:
    """Return the rows of all runs, numbers as floats.

    Raises:
        ValueError: If the folder has no such table, it cannot be read, or its runs cannot be
            compared.
    """
    rows = _read_rows(folder / MEASURES)
    check_comparable(folder / MEASURES, rows)
    return rows


def read_curves(folder: Path) -> list[Row]:
    """Return the rows of the kept curves: mean and spread of the accuracy over seeds."""
    return _read_rows(folder / CURVES)


def _train_block(
    block: Block, data: Dataset, out: Path, on_progress: Progress | None
) -> tuple[Comparison, int]:
    folder = out / RUNS / block.folder
    if run_folder.find_shards(folder):
        comparison = run_comparison(block.config, folder)
        state = run_folder.load_comparison_checkpoint(folder) or {}
        return comparison, 4 * state["engine"]["models"].shape[1]

    from fedcohort.lab.trial import Trial  # Imported here: only training needs PyTorch.

    trial = Trial(block.config, data, folder)

    def on_round(done: int, accuracy: Any) -> None:
        if on_progress:
            on_progress(block.folder, done, block.config.rounds)

    folder.mkdir(parents=True, exist_ok=True)
    with run_folder.locked(folder):
        trial.restore()
        run_folder.write_settings(folder, block.config.as_dict())
        trial.run(on_round)
    comparison = load_comparison(folder, block.config)
    return comparison, trial.engine.model_bytes


def _curve_rows(block: Block, comparison: Comparison) -> list[Row]:
    rows = []
    for selector, rule in SHOWN:
        if selector not in block.config.selectors or rule not in block.config.aggregations:
            continue
        rounds, accuracy = curve(comparison, selector, rule)
        spread = accuracy.std(axis=0, ddof=1) if len(accuracy) > 1 else np.full(rounds.shape, 0.0)
        for place, round in enumerate(rounds.tolist()):
            rows.append(
                {
                    "dataset": block.task,
                    "world": block.world,
                    "partition": block.partition,
                    "selector": selector,
                    "rule": rule,
                    "round": round,
                    "accuracy": float(accuracy[:, place].mean()),
                    "sd": float(spread[place]),
                }
            )
    return rows


def _add_rows(path: Path, rows: Sequence[Row], block: Block) -> None:
    """Put the rows of a block in the place of those that a table has of it.

    Another process may add rows of its blocks: both wait for each other.
    """
    own = (block.task, block.world, block.partition)
    kept = []
    with run_folder.locked(path.parent, waits=True):
        if path.exists():
            for row in _read_rows(path):
                if (row["dataset"], row["world"], row["partition"]) != own:
                    kept.append(row)
        save_csv(path, [_rounded(row) for row in align_columns([*kept, *rows])])


def _rounded(row: Row) -> Row:
    """Return a row with six significant digits, so that the table stays small."""
    values = {}
    for name, value in row.items():
        values[name] = float(f"{value:.6g}") if isinstance(value, float) else value
    return values


def _read_rows(path: Path) -> list[Row]:
    check_file(path)
    if not path.exists():
        raise ValueError(f"the folder must hold a study with {path.name}, got {path.parent}")
    columns, table = _read_table(path)
    rows: list[Row] = []
    for number, texts in enumerate(table, start=FIRST_LINE):
        rows.append(_parse_row(f"{path}, line {number}", texts))
    check_columns(path, columns, CURVE_COLUMNS if path.name == CURVES else MEASURE_COLUMNS)
    check_words(path, rows)
    return rows


def _read_table(path: Path) -> tuple[Sequence[str], list[dict[str, Any]]]:
    """Return the columns of a CSV file and its rows as texts."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            return reader.fieldnames or (), list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} must be a table in CSV, got: {error}") from None


def _parse_row(about: str, texts: dict[Any, Any]) -> Row:
    """Return a row with its numbers as floats.

    Args:
        about: Names the file and the line.
        texts: The cells by column; None for one that is missing, and None for the name of more
            cells than there are columns.
    """
    row: Row = {}
    for name, text in texts.items():
        if name is None:
            columns = len(texts) - 1
            raise ValueError(f"{about}: must have {columns} cells, got {columns + len(text)}")
        if text is None:
            raise ValueError(f"{about}, column {name}: must have a cell, got a shorter line")
        row[name] = text if name in WORDS else _parse_number(f"{about}, column {name}", text)
    return row


def _parse_number(about: str, text: str) -> float:
    """Return the number of a cell; an empty one is a mistake, because we write nan."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{about}: must be a number or nan, got {shown(text)}") from None
