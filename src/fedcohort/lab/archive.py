"""Compact results of many runs: accuracy, loss and participation, small enough to commit.

One row per run. Parquet is for people and other tools. npz needs NumPy alone, and carries results
away from a machine without pyarrow.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.files import load_arrays, parse_json, save_arrays, sealed_write
from fedcohort.files.seal import BLANK, KEY, check_seal
from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison import Comparison, load_comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.named_parts import is_own_data
from fedcohort.lab.record_checks import CLASS_ACCURACY, CLASS_LOSS, LABEL_ACCURACY, OFFICIAL
from fedcohort.lab.result import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    Array,
    Result,
    identity,
    make_result,
    single_run,
)
from fedcohort.lab.runs import run_keys
from fedcohort.lab.summary import count_asked
from fedcohort.metrics import worst
from fedcohort.statistics import mean_of_known


def results_of(comparison: Comparison) -> list[Result]:
    """Return the runs of a comparison, as far as they were played."""
    provenance = comparison.provenance
    if not comparison.records:
        return []
    results = []
    for row, key in enumerate(run_keys(comparison.config)):
        config = single_run(comparison.config, key)
        columns = _columns_of_row(comparison.records, row, config.clients)
        results.append(make_result(config, columns, provenance))
    return results


def _columns_of_row(records: run_folder.Arrays, row: int, clients: int) -> dict[str, Array]:
    accuracy = records["accuracy"][:, row]
    official = np.full(accuracy.shape, np.nan)
    if OFFICIAL in records:
        official = records[OFFICIAL][:, row]
    columns: dict[str, Array] = {}
    if CLASS_ACCURACY in records:
        by_class = records[CLASS_ACCURACY][:, row]
        columns["class_accuracy"] = by_class[-1]
        columns["worst_class"] = worst(by_class)
    if LABEL_ACCURACY in records:
        columns["label_accuracy"] = records[LABEL_ACCURACY][-1, row]
    if CLASS_LOSS in records:
        columns["class_loss"] = mean_of_known(records[CLASS_LOSS][:, row])
    return columns | {
        "accuracy": accuracy,
        "loss": records["loss"][:, row],
        "official": official,
        "valid": records["valid"][:, row].sum(axis=-1),
        "counts": count_asked(records["clients"][:, [row]], clients)[0],
    }


def save(path: Path, results: Sequence[Result]) -> None:
    """Write results as Parquet or npz, by the suffix of the path."""
    settings = [json.dumps(result.config.as_dict()) for result in results]
    about = [json.dumps(dict(result.provenance)) for result in results]
    if path.suffix == ".npz":
        arrays: dict[str, Array] = {"settings": np.array(settings), "about": np.array(about)}
        for number, result in enumerate(results):
            for name in (*COLUMNS, *OPTIONAL_COLUMNS):
                values = getattr(result, name)
                if values is not None:
                    arrays[f"{number}/{name}"] = values
        save_arrays(path, arrays)
        return
    with sealed_write(path) as draft:
        _save_parquet(draft, results, settings, about)


def _save_parquet(
    path: Path, results: Sequence[Result], settings: list[str], about: list[str]
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    keys = [result.key for result in results]
    columns: dict[str, Any] = {"dataset": [result.config.dataset for result in results]}
    for name in ("selector", "partition", "aggregation", "mu", "seed"):
        columns[name] = [getattr(key, name) for key in keys]
    for name in ("cohort", "rounds"):
        columns[name] = [getattr(result.config, name) for result in results]
    for name, kind in (COLUMNS | OPTIONAL_COLUMNS).items():
        arrays = [getattr(result, name) for result in results]
        values = [None if array is None else array.tolist() for array in arrays]
        if name in OPTIONAL_COLUMNS and not any(values):
            continue
        columns[name] = pa.array(values, pa.list_(pa.from_numpy_dtype(np.dtype(kind))))
    columns["settings"] = settings
    columns["about"] = about
    table = pa.table(columns).replace_schema_metadata({KEY: BLANK})
    parquet.write_table(table, path, compression="zstd")


def load(path: Path) -> list[Result]:
    """Return the results in a Parquet or npz file that `save` wrote.

    Raises:
        ValueError: If the file is damaged, or of another origin.
    """
    refusal = f"{path} must be a results file of fedcohort, got: "
    try:
        rows = _read_npz(path) if path.suffix == ".npz" else _read_parquet(path)
        return [_parse_row(row) for row in rows]
    except Exception as error:  # A damaged file makes the readers raise many kinds.
        reason = str(error).partition("\n")[0].removeprefix(refusal)
        raise ValueError(f"{refusal}{reason}") from None


def _read_npz(path: Path) -> Iterator[dict[str, Any]]:
    arrays = load_arrays(path)
    pairs = zip(arrays["settings"], arrays["about"], strict=True)
    for number, (settings, about) in enumerate(pairs):
        row: dict[str, Any] = {"settings": str(settings), "about": str(about)}
        for name in COLUMNS:
            row[name] = arrays[f"{number}/{name}"]
        for name in OPTIONAL_COLUMNS:
            row[name] = arrays.get(f"{number}/{name}")
        yield row


def _read_parquet(path: Path) -> Iterable[dict[str, Any]]:
    from pyarrow import parquet

    with path.open("rb") as file:
        check_seal(file, ".parquet")
        file.seek(0)
        rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    return rows


def _parse_row(row: Mapping[str, Any]) -> Result:
    config = ComparisonConfig.from_dict(parse_json(row["settings"]))
    return make_result(config, row, parse_json(row["about"]))


def gather_results(
    *folders: Path, configs: dict[Path, ComparisonConfig] | None = None
) -> list[Result]:
    """Return all results under folders, from comparisons and from results files.

    If a run is there twice, the longer one is returned; of two equally long ones that with more
    kinds of records, losses of clients and official accuracies, or the first.

    Args:
        *folders: Folders; those that do not exist hold nothing.
        configs: Filled with the settings of every comparison that is read, by folder.

    Raises:
        ValueError: If a file is damaged, or runs on one file of samples are of different samples.
    """
    results: dict[str, Result] = {}
    digests: dict[str, str] = {}
    for folder in folders:
        if not folder.is_dir():
            continue
        for path in run_folder.find_results(folder):
            if path.is_dir():
                comparison = load_comparison(path)
                found = results_of(comparison)
                if configs is not None:
                    configs[path] = comparison.config
            else:
                found = load(path)
            for result in found:
                _check_same_samples(result, digests, path)
                add_result(results, result)
    return list(results.values())


def merge_results(*groups: Iterable[Result], target: Path) -> list[Result]:
    """Return the results of several groups as one list, each run once.

    If a run is there twice, the longer one is returned; of two equally long ones that with more
    kinds of records, losses of clients and official accuracies, or the first.

    Args:
        *groups: Results.
        target: The folder they are meant for, for the error message.

    Raises:
        ValueError: If runs on one file of samples are of different samples.
    """
    results: dict[str, Result] = {}
    digests: dict[str, str] = {}
    for group in groups:
        for result in group:
            _check_same_samples(result, digests, target)
            add_result(results, result)
    return list(results.values())


def add_result(results: dict[str, Result], result: Result) -> None:
    """Add a result to others by its identity, unless one is there that holds as much."""
    key = identity(result.config)
    if key not in results or _amount(result) > _amount(results[key]):
        results[key] = result


def _amount(result: Result) -> tuple[int, int]:
    """Return how much a result holds: its rounds, and then how many kinds of further records.

    These are losses of clients and accuracies on the official test set. Losses are all nan if no
    round was due, and then nothing was recorded.
    """
    kinds = 0
    for values in (result.class_loss, result.official):
        if values is not None and np.isfinite(values).any():
            kinds += 1
    return len(result.accuracy), kinds


def _check_same_samples(result: Result, digests: dict[str, str], path: Path) -> None:
    """Refuse runs on a user's file that has changed in between."""
    dataset = result.config.dataset
    digest = result.provenance.get("data")
    if not digest or not is_own_data(dataset):
        return
    if digests.setdefault(dataset, digest) != digest:
        raise ValueError(
            f"{path} must be of the same samples of {dataset} as the others, got others"
        )
