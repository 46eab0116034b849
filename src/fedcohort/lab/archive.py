"""What is kept of a training run for ever: accuracy, loss and participation, small enough to commit.

One row per run. Parquet for people and other tools; npz, which needs NumPy alone, to carry results from a bare machine.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.files import atomic_write, load_arrays, save_arrays
from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig, RunKey, run_keys
from fedcohort.lab.records import read_config, read_records

Array = npt.NDArray[Any]
KEPT = {
    "accuracy": np.float32,
    "loss": np.float32,
    "official": np.float32,
    "valid": np.uint16,
    "counts": np.uint32,
}
COST = "cost.json"


@dataclass(frozen=True, eq=False)
class Result:
    """One run: what decided it, what came of it, and what it was computed with (`provenance`).

    accuracy, loss, official: [t] in the rounds played so far, nan where not tested; valid: [t] updates used;
    counts: [K] times each client was asked.
    """

    config: ComparisonConfig
    accuracy: Array
    loss: Array
    official: Array
    valid: Array
    counts: Ints
    provenance: Mapping[str, Any]

    @property
    def key(self) -> RunKey:
        """Which run this is."""
        return run_keys(self.config)[0]

    @property
    def finished(self) -> bool:
        """Whether all rounds were played."""
        return len(self.accuracy) >= self.config.rounds


def single_run(of: ComparisonConfig, place: RunKey) -> ComparisonConfig:
    """Return the settings of one run of a comparison."""
    return replace(
        of,
        selectors=(place.selector,),
        partitions=(place.partition,),
        aggregations=(place.aggregation,),
        mus=(place.mu,),
        seeds=1,
        first_seed=place.seed,
    )


def results_in(folder: Path) -> list[Result]:
    """Return the runs of a run folder, as far as they were played; the checkpoint is not needed."""
    of = read_config(folder)
    records = read_records(folder, of)
    about: dict[str, Any] = {}
    for path in (folder / "environment.json", folder / COST):
        try:
            found = json.loads(path.read_text()) if path.exists() else {}
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} must be a table in JSON, got: {error}") from None
        if not isinstance(found, dict):
            raise ValueError(f"{path} must be a table in JSON, got {found!r}")
        about |= found
    if (folder / rundir.DATA).exists():
        about["data"] = (folder / rundir.DATA).read_text().strip()
    return (
        [
            _of_row(single_run(of, place), row, records, about)
            for row, place in enumerate(run_keys(of))
        ]
        if records
        else []
    )


def _of_row(
    of: ComparisonConfig, row: int, records: rundir.Arrays, about: Mapping[str, Any]
) -> Result:
    accuracy = records["accuracy"][:, row]
    official = (
        records["official_accuracy"][:, row]
        if "official_accuracy" in records
        else np.full(accuracy.shape, np.nan)
    )
    counts = np.bincount(records["clients"][:, row].ravel(), minlength=of.clients)
    kept = (
        accuracy,
        records["loss"][:, row],
        official,
        records["valid"][:, row].sum(axis=-1),
        counts,
    )
    return _result(of, dict(zip(KEPT, kept, strict=True)), about)


def _result(of: ComparisonConfig, kept: Mapping[str, Any], about: Mapping[str, Any]) -> Result:
    made = Result(
        of,
        provenance=dict(about),
        **{name: np.asarray(kept[name], dtype=kind) for name, kind in KEPT.items()},
    )
    played = made.accuracy.shape
    if len(played) != 1 or any(
        getattr(made, name).shape != played for name in ("loss", "official", "valid")
    ):
        raise ValueError(
            f"accuracy, loss, official and valid of other rounds than each other: {played[:1]} of accuracy"
        )
    if played[0] > of.rounds or made.counts.shape != (of.clients,):
        raise ValueError(
            f"{played[0]} of {of.rounds} rounds, and counts of {made.counts.size} of {of.clients} clients"
        )
    return made


def save(path: Path, results: Sequence[Result]) -> None:
    """Write results as Parquet or npz, by the ending of the path."""
    settings = [json.dumps(result.config.as_dict()) for result in results]
    about = [json.dumps(dict(result.provenance)) for result in results]
    if path.suffix == ".npz":
        arrays: dict[str, Array] = {
            f"{i}/{name}": getattr(r, name) for i, r in enumerate(results) for name in KEPT
        }
        save_arrays(path, {"settings": np.array(settings), "about": np.array(about)} | arrays)
        return
    with atomic_write(path) as draft:
        _save_parquet(draft, results, settings, about)


def _save_parquet(
    path: Path, results: Sequence[Result], settings: list[str], about: list[str]
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    where = [result.key for result in results]
    columns: dict[str, Any] = {"dataset": [result.config.dataset for result in results]}
    columns |= {
        name: [getattr(place, name) for place in where]
        for name in ("selector", "partition", "aggregation", "mu", "seed")
    }
    columns |= {
        "cohort": [result.config.cohort for result in results],
        "rounds": [result.config.rounds for result in results],
    }
    for name, kind in KEPT.items():
        columns[name] = pa.array(
            [getattr(r, name).tolist() for r in results],
            pa.list_(pa.from_numpy_dtype(np.dtype(kind))),
        )
    columns |= {"settings": settings, "about": about}
    parquet.write_table(pa.table(columns), path, compression="zstd")


def load(path: Path) -> list[Result]:
    """Return the results in a Parquet or npz file that `save` wrote; anything else is refused by name."""
    try:
        rows = _npz_rows(path) if path.suffix == ".npz" else _parquet_rows(path)
        return [_from_row(row) for row in rows]
    except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        said = (
            str(error)
            .partition("\n")[0]
            .removeprefix(f"{path} must be a results file of fedcohort, got: ")
        )
        raise ValueError(f"{path} must be a results file of fedcohort, got: {said}") from None


def _npz_rows(path: Path) -> Iterable[dict[str, Any]]:
    arrays = load_arrays(path)
    for i, (settings, about) in enumerate(zip(arrays["settings"], arrays["about"], strict=True)):
        yield {"settings": str(settings), "about": str(about)} | {
            name: arrays[f"{i}/{name}"] for name in KEPT
        }


def _parquet_rows(path: Path) -> Iterable[dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except pa.ArrowException as error:
        raise ValueError(error) from None
    return rows


def _from_row(row: Mapping[str, Any]) -> Result:
    return _result(
        ComparisonConfig.from_dict(json.loads(row["settings"])), row, json.loads(row["about"])
    )


def gather_results(*folders: Path) -> list[Result]:
    """Return all results under folders, from run folders and results files; of a run twice there the longer, else the first.

    Runs on a file of one's own that has changed in between are refused: they are not of one data set.
    """
    found: dict[str, Result] = {}
    samples: dict[str, str] = {}
    for path in [
        path for folder in folders if folder.is_dir() for path in sorted(folder.rglob("*"))
    ]:
        if path.name == "settings.toml":
            here = results_in(path.parent)
        elif path.suffix in (".parquet", ".npz") and path.name.startswith("runs"):
            here = load(path)
        else:
            continue
        for result in here:
            key, digest = identity(result.config), result.provenance.get("data")
            if (
                digest
                and result.config.dataset.endswith(".npz")
                and samples.setdefault(result.config.dataset, digest) != digest
            ):
                raise ValueError(
                    f"{path} must be of the same samples of {result.config.dataset} as the others, got others"
                )
            if key not in found or len(result.accuracy) > len(found[key].accuracy):
                found[key] = result
    return list(found.values())


NON_IDENTITY_FIELDS = (
    "targets",
    "official_every",
    "checkpoint_every",
    "device",
    "compiled",
    "mode",
    "slots",
)


@lru_cache(maxsize=10_000)
def identity(of: ComparisonConfig) -> str:
    """Return all that decides the results but for rounding, as one word: two runs of the same identity are the same run."""
    decides = vars(of) | {
        "refill": of.refill and "primary-label" in of.partitions
    }  # nothing elsewhere
    return json.dumps(
        {name: _number(value) for name, value in decides.items() if name not in NON_IDENTITY_FIELDS}
    )


def _number(value: Any) -> Any:
    """Return whole numbers as floats, in lists too: 0 and 0.0 decide the same."""
    if isinstance(value, list | tuple):
        return [_number(part) for part in value]
    return float(value) if isinstance(value, int) else value
