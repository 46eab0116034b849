"""Compact results of many runs: accuracy, loss and participation, small enough to commit.

One row per run. Parquet is for people and other tools. npz needs NumPy alone, and carries results
away from a machine without pyarrow.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.files import load_arrays, parse_json, save_arrays, sealed_write
from fedcohort.files.seal import BLANK, KEY, check_seal
from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison import Comparison, load_comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.named_parts import is_own_data
from fedcohort.lab.record_checks import CLASS_ACCURACY, LABEL_ACCURACY, OFFICIAL
from fedcohort.lab.runs import RunKey, run_keys
from fedcohort.lab.summary import count_asked
from fedcohort.metrics import worst

Array = npt.NDArray[Any]
COLUMNS = {
    "accuracy": np.float32,
    "loss": np.float32,
    "official": np.float32,
    "valid": np.uint16,
    "counts": np.uint32,
}
PER_ROUND = ("accuracy", "loss", "official", "valid", "worst_class")
# Columns that older runs do not have. A file in which no run has one is written without it.
OPTIONAL_COLUMNS = {
    "class_accuracy": np.float32,
    "label_accuracy": np.float32,
    "worst_class": np.float32,
}
# Settings that decide how a run is computed or shown, but not its results.
NON_IDENTITY_FIELDS = (
    "targets",
    "official_every",
    "checkpoint_every",
    "device",
    "compiled",
    "mode",
    "slots",
)


@dataclass(frozen=True, eq=False)
class Result:
    """One run: its settings, its curves, and what it was computed with.

    Attributes:
        config: The settings of this run alone.
        accuracy: Accuracy [t] in the rounds played so far, nan where it was not tested.
        loss: Loss [t], nan where it was not tested.
        official: Accuracy [t] on the data set's own test set, nan where it was not tested.
        valid: Updates that were used [t].
        counts: How often each client was asked [K].
        provenance: Environment, cost and the digest of the samples, as far as they are known.
        class_accuracy: Accuracy for each class of clients in the last round [G], nan for a class
            without test samples; None if it was not recorded.
        label_accuracy: The same for each label [C].
        worst_class: Lowest accuracy over the classes of clients [t], nan where it was not tested.
    """

    config: ComparisonConfig
    accuracy: Array
    loss: Array
    official: Array
    valid: Array
    counts: Ints
    provenance: Mapping[str, Any]
    class_accuracy: Array | None = None
    label_accuracy: Array | None = None
    worst_class: Array | None = None

    @property
    def key(self) -> RunKey:
        """Which run this is."""
        return run_keys(self.config)[0]

    @property
    def finished(self) -> bool:
        """Whether all rounds were played."""
        return len(self.accuracy) >= self.config.rounds


def single_run(config: ComparisonConfig, key: RunKey) -> ComparisonConfig:
    """Return the settings of one run of a comparison."""
    return replace(
        config,
        selectors=(key.selector,),
        partitions=(key.partition,),
        aggregations=(key.aggregation,),
        mus=(key.mu,),
        seeds=1,
        first_seed=key.seed,
    )


@lru_cache(maxsize=10_000)
def identity(config: ComparisonConfig) -> str:
    """Return all that decides the results but for rounding, as one string.

    Two runs with the same identity are the same run.
    """
    settings = config.as_dict()
    # Dealing labels again matters only where labels are dealt.
    settings["refill"] = config.refill and "primary-label" in config.partitions
    deciding = {}
    for name, value in settings.items():
        if name not in NON_IDENTITY_FIELDS:
            deciding[name] = _as_floats(value)
    return json.dumps(deciding)


def _as_floats(value: Any) -> Any:
    """Return whole numbers as floats, in lists too: 0 and 0.0 decide the same."""
    if isinstance(value, list | tuple):
        return [_as_floats(part) for part in value]
    return float(value) if isinstance(value, int) else value


def results_of(comparison: Comparison) -> list[Result]:
    """Return the runs of a comparison, as far as they were played."""
    provenance = comparison.provenance
    if not comparison.records:
        return []
    results = []
    for row, key in enumerate(run_keys(comparison.config)):
        config = single_run(comparison.config, key)
        columns = _columns_of_row(comparison.records, row, config.clients)
        results.append(_make_result(config, columns, provenance))
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
    return columns | {
        "accuracy": accuracy,
        "loss": records["loss"][:, row],
        "official": official,
        "valid": records["valid"][:, row].sum(axis=-1),
        "counts": count_asked(records["clients"][:, [row]], clients)[0],
    }


def _make_result(
    config: ComparisonConfig, columns: Mapping[str, Any], provenance: Mapping[str, Any]
) -> Result:
    """Return a result of the stored types; columns that do not fit together are refused."""
    arrays = {name: np.asarray(columns[name], dtype=kind) for name, kind in COLUMNS.items()}
    for name, kind in OPTIONAL_COLUMNS.items():
        if columns.get(name) is not None:
            arrays[name] = np.asarray(columns[name], dtype=kind)
    result = Result(config=config, provenance=dict(provenance), **arrays)
    shape = result.accuracy.shape
    per_round = [name for name in PER_ROUND if name in arrays]
    if len(shape) != 1 or any(arrays[name].shape != shape for name in per_round):
        raise ValueError(
            f"{', '.join(per_round)} of other rounds than each other: {shape[:1]} of accuracy"
        )
    if shape[0] > config.rounds or result.counts.shape != (config.clients,):
        raise ValueError(
            f"{shape[0]} of {config.rounds} rounds, and counts of {result.counts.size} of "
            f"{config.clients} clients"
        )
    return result


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
    return _make_result(config, row, parse_json(row["about"]))


def gather_results(
    *folders: Path, configs: dict[Path, ComparisonConfig] | None = None
) -> list[Result]:
    """Return all results under folders, from comparisons and from results files.

    If a run is there twice, the longer one is returned; of two equally long ones the first.

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

    If a run is there twice, the longer one is returned; of two equally long ones the first.

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
    """Add a result to others by its identity, unless a longer one or an equal is there."""
    key = identity(result.config)
    if key not in results or len(result.accuracy) > len(results[key].accuracy):
        results[key] = result


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
