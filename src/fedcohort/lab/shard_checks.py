"""Refuse folders that cannot take the shards of a comparison."""

from pathlib import Path

from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison_folder import read_config
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.merging import join_configs
from fedcohort.lab.shards import Shard, describe_differences, shard_config


def check_shards(
    config: ComparisonConfig | None, folder: Path, count: int | None = None
) -> ComparisonConfig:
    """Refuse a folder that cannot take shards of these settings; return the settings.

    Args:
        config: The settings of the whole comparison. None takes those of the folder's shards.
        folder: The folder of the whole comparison.
        count: How many shards there are to be; None for as many as there are.

    Raises:
        ValueError: If the folder holds something else, or shards of other settings or of
            another number.
    """
    run_folder.check_out(folder)
    found = run_folder.find_shards(folder)
    if run_folder.has_comparison(folder) and not found:
        raise ValueError(
            f"out must not hold a run that has no shards, got {folder}; "
            "choose another, or go on without --shard, --devices and --ray"
        )
    if not found and folder.is_dir():
        others = [path.name for path in folder.iterdir() if path.name != run_folder.SHARDS]
        if others:
            raise ValueError(
                f"out must be a new or empty folder, got {folder}; "
                "choose another, or add --overwrite to --devices or --ray"
            )
    counts = sorted({there for _, there in found})
    if len(counts) > 1 or (count is not None and counts not in ([], [count])):
        words = " and ".join(map(str, counts))
        raise ValueError(
            f"shards must be {words} in number, as those in {folder} are, got {count or counts}; "
            "choose another folder"
        )
    if config is None:
        config = read_whole_config(folder)
    for (number, there), path in found.items():
        if not run_folder.has_comparison(path):
            continue
        shard = Shard(number, there)
        differences = describe_differences(shard_config(config, shard), read_config(path))
        if differences:
            words = _describe_whole(config, folder) or f"{differences} in shard {shard}"
            raise ValueError(
                f"settings must be those of the shards in {folder}, got {words}; "
                "choose another folder"
            )
    return config


def _describe_whole(config: ComparisonConfig, folder: Path) -> str:
    """Return how settings differ from those of all shards in a folder; empty if not known."""
    try:
        return describe_differences(config, read_whole_config(folder))
    except ValueError:  # Some shards are missing, so nobody knows how many seeds there are.
        return ""


def read_whole_config(folder: Path) -> ComparisonConfig:
    """Return the settings of the comparison whose shards a folder holds; the defaults if none.

    Args:
        folder: The folder of the whole comparison.

    Raises:
        ValueError: If shards are missing, because they alone know their seeds.
    """
    if run_folder.has_comparison(folder):
        return read_config(folder)
    found = run_folder.find_shards(folder)
    configs = []
    for (_, count), path in found.items():
        if len(found) < count or not run_folder.has_comparison(path):
            raise ValueError(
                f"settings must be given to go on in {folder}, got none, and not all shards there"
            )
        configs.append(read_config(path))
    return join_configs(configs) if configs else ComparisonConfig()
