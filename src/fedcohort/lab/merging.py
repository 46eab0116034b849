"""Make one run folder of the finished shards of a comparison.

The merged folder holds what the comparison itself would have written. Only its checkpoint holds
less: the models of all runs, and nothing to go on with, because no round is left.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import shown
from fedcohort.files import load_state
from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison_folder import load_comparison, read_config
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.record_checks import CLASS_ACCURACY, CLASS_LOSS
from fedcohort.lab.runs import run_keys
from fedcohort.lab.shards import Shard, describe_differences, shard_config

Array = npt.NDArray[Any]
Folders = Mapping[Shard, Path]
Configs = Mapping[Shard, ComparisonConfig]


def merge_shards(folder: Path, config: ComparisonConfig | None = None) -> None:
    """Write the comparison whose shards a folder holds; the shards stay as they are.

    The caller holds the lock of the folder. The settings are written last, so a folder with them
    is complete: a merge that was interrupted is done again.

    Args:
        folder: The folder of the comparison.
        config: Its settings. None takes them from the shards.

    Raises:
        ValueError: If a shard is missing, unfinished, in use, has lost a file, or is of other
            settings, samples or sources than the others. Nothing is written then.
    """
    shards = _find_all(folder)
    with ExitStack() as stack:
        for path in shards.values():
            stack.enter_context(run_folder.locked(path, "shard"))
        configs = {shard: read_config(path) for shard, path in shards.items()}
        whole = _check_settings(shards, configs, config)
        states = _check_finished(folder, shards, configs)
        _check_same(shards, "the samples", run_folder.read_data_digest)
        _check_same(shards, "the recorded world", run_folder.read_world_digest)
        _check_same(shards, "the sources", run_folder.read_sources)
        rows = _rows_of_shards(whole, configs)
        records, classes = _merge_records(shards, configs, rows)
        _write(folder, list(shards.values()), whole, records, classes)
        models = [state["engine"]["models"] for state in states]
        _write_checkpoint(folder, states[0], _merge_rows(models, rows, axis=0))
        environments = [run_folder.read_environment(path) for path in shards.values()]
        run_folder.write_settings(folder, whole.as_dict(), _merge_environments(environments))


def join_configs(configs: Sequence[ComparisonConfig]) -> ComparisonConfig:
    """Return the settings of the comparison that these are all shards of, in their order."""
    return replace(configs[0], seeds=sum(part.seeds for part in configs))


def _find_all(folder: Path) -> dict[Shard, Path]:
    """Return the folders of all shards; refuse missing ones, and shards of several splits."""
    found = run_folder.find_shards(folder)
    home = folder / run_folder.SHARDS
    counts = sorted({count for _, count in found})
    if len(counts) > 1:
        words = " and of ".join(map(str, counts))
        raise ValueError(f"{home} must hold shards of one number, got shards of {words}")
    (count,) = counts
    shards = {}
    missing = []
    for number in range(1, count + 1):
        path = run_folder.shard_folder(folder, number, count)
        if run_folder.has_comparison(path):
            shards[Shard(number, count)] = path
        else:
            missing.append(Shard(number, count))
    if missing:
        words = ", ".join(map(str, missing))
        raise ValueError(
            f"{home} must hold all shards to merge them, got none of {words}; "
            f"the same command with --shard {missing[0]} trains it"
        )
    return shards


def _check_settings(
    shards: Folders, configs: Configs, config: ComparisonConfig | None
) -> ComparisonConfig:
    """Return the settings of the whole comparison; shards of others are refused."""
    joined = join_configs(list(configs.values()))
    whole = config or joined
    seeds: dict[int, Path] = {}
    for shard, part in configs.items():
        path = shards[shard]
        if part.first_seed in seeds:
            raise ValueError(
                f"{path} must hold other seeds than {seeds[part.first_seed]}, got the same "
                f"shard twice, from seed {part.first_seed} on"
            )
        seeds[part.first_seed] = path
        differences = describe_differences(part, shard_config(whole, shard))
        if differences:
            # Of the whole comparison if possible: nobody asked for the seeds of a shard.
            differences = describe_differences(joined, whole) or differences
            raise ValueError(
                f"{path} must be shard {shard} of the same settings, got {differences}"
            )
    return whole


def _check_finished(folder: Path, shards: Folders, configs: Configs) -> list[dict[str, Any]]:
    """Return the checkpoints of all shards; refuse those with rounds left or files missing."""
    states = []
    unfinished = []
    for shard, path in shards.items():
        try:
            state = run_folder.load_comparison_checkpoint(path) or {"round": 0}
        except ValueError as error:
            raise ValueError(f"{error}; {_advise_repair(folder, shard, path)}") from None
        rounds = configs[shard].rounds
        if state["round"] < rounds:
            unfinished.append(f"shard {shard} at round {state['round']} of {rounds}")
        else:
            _check_complete(shard, path)
        states.append(state)
    if unfinished:
        home = next(iter(shards.values())).parent
        raise ValueError(
            f"{home} must hold finished shards to merge them, got {', '.join(unfinished)}; "
            "the same command with --shard goes on with one, with --devices with all"
        )
    return states


def _check_complete(shard: Shard, path: Path) -> None:
    """Refuse a shard that has lost a file which every run writes before its first round."""
    for name in (run_folder.ENVIRONMENT, run_folder.LABEL_COUNTS, run_folder.CLASS_RATES):
        if not (path / name).exists():
            raise ValueError(
                f"{path / name} must be there to merge shard {shard}, got no such file; "
                f"{_advise_training(shard, path)}"
            )


def _advise_training(shard: Shard, path: Path) -> str:
    return f"move {path} away and train shard {shard} again with --shard {shard}, then merge"


def _advise_repair(folder: Path, shard: Shard, path: Path) -> str:
    """Return how a shard gets a good checkpoint again. Merging itself trains no rounds."""
    try:
        load_state(path / run_folder.PREVIOUS_CHECKPOINT)
    except ValueError:
        return _advise_training(shard, path)
    command = f"fedcohort compare --out {folder} --shard {shard} --resume --from-previous"
    return f"finish the shard with `{command}`, then merge"


def _check_same(shards: Folders, words: str, read: Callable[[Path], Any]) -> None:
    first, *others = shards.values()
    expected = read(first)
    for path in others:
        found = read(path)
        if found != expected:
            raise ValueError(
                f"{path} must have {words} of {first}, {shown(expected)}, got {shown(found)}"
            )


def _rows_of_shards(whole: ComparisonConfig, configs: Configs) -> list[Ints]:
    """Return which rows of the whole batch axis the runs of each shard are."""
    row_of = {key: row for row, key in enumerate(run_keys(whole))}
    rows = []
    for part in configs.values():
        rows.append(np.array([row_of[key] for key in run_keys(part)]))
    return rows


def _merge_rows(parts: Sequence[Array], rows: Sequence[Ints], axis: int) -> Array:
    """Return the parts of all shards as one array, with each run in its row."""
    order = np.argsort(np.concatenate(rows))
    joined: Array = np.take(np.concatenate(parts, axis=axis), order, axis=axis)
    return joined


def _merge_records(
    shards: Folders, configs: Configs, rows: Sequence[Ints]
) -> tuple[run_folder.Arrays, run_folder.Arrays]:
    """Return the records of all runs, and the classes of clients."""
    records = []
    for shard, path in shards.items():
        config = configs[shard]
        records.append(load_comparison(path, config, config.rounds).records)
    classes = [run_folder.load_classes(path) for path in shards.values()]
    quarters = np.unique(np.concatenate([part["quarters"] for part in classes])).tolist()
    for own, part in zip(records, classes, strict=True):
        for name in (CLASS_ACCURACY, CLASS_LOSS):
            if name in own:
                own[name] = _spread(own[name], part["quarters"], quarters, np.nan)
    members = [_spread(part["members"], part["quarters"], quarters, 0) for part in classes]
    rates = [_spread(part["rates"], part["quarters"], quarters, 0.0) for part in classes]
    merged = {}
    for name in records[0]:
        merged[name] = _merge_rows([own[name] for own in records], rows, axis=1)
    return merged, {
        "rates": np.average(rates, axis=0, weights=members),
        "members": np.sum(members, axis=0),
        "quarters": np.array(quarters),
    }


def _spread(values: Array, quarters: Array, all_quarters: Sequence[int], fill: float) -> Array:
    """Return values [..., G] of some classes in the places of theirs among all classes."""
    places = np.searchsorted(all_quarters, quarters)
    spread = np.full((*values.shape[:-1], len(all_quarters)), fill, dtype=values.dtype)
    spread[..., places] = values
    return spread


def _write(
    folder: Path,
    shards: Sequence[Path],
    whole: ComparisonConfig,
    records: run_folder.Arrays,
    classes: run_folder.Arrays,
) -> None:
    """Write everything but the checkpoint and the settings."""
    first = shards[0]  # It has the first seed, whose federation and probabilities are shown.
    run_folder.discard_comparison(folder)
    digest = run_folder.read_data_digest(first)
    if digest is not None:
        run_folder.write_data_digest(folder, digest)
    run_folder.write_world_digest(folder, run_folder.read_world_digest(first))
    run_folder.write_sources(folder, run_folder.read_sources(first))
    run_folder.save_label_counts(folder, run_folder.load_label_counts(first))
    run_folder.save_class_rates(folder, **classes)
    for path, arrays in run_folder.load_allocations(first):
        run_folder.save_allocations(folder, int(path.stem), arrays)
    for start in range(0, whole.rounds, whole.checkpoint_every):
        end = start + whole.checkpoint_every
        run_folder.save_records(
            folder, start, {name: values[start:end] for name, values in records.items()}
        )


def _write_checkpoint(folder: Path, state: Mapping[str, Any], models: Array) -> None:
    """Write the checkpoint of a finished comparison, with the models of all runs."""
    merged = {
        "round": state["round"],
        "mode": state["mode"],
        "engine": {"models": models},
        "selectors": {},
    }
    run_folder.save_checkpoint(folder, merged)


def _merge_environments(environments: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the versions and machines of all shards; where they differ, each of them."""
    merged = {}
    for name in environments[0]:
        values = dict.fromkeys(environment.get(name, "-") for environment in environments)
        merged[name] = "; ".join(values)
    return merged
