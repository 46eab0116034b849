"""What a run folder holds. Only this package knows the names and formats of its files.

    comparison     settings.toml, environment.json, data.sha256, records/, allocations/,
                   owners.npz, classes.npz, checkpoint.safetensors and the one before it,
                   checkpoint.previous.safetensors, summary.csv, report.html, mlflow.json;
                   world.sha256 if the world is recorded;
                   sources.json if the settings name sources of one's own;
                   memory/ if a rule remembers updates;
                   shards/ if its seeds were shared out, with a comparison in each folder;
                   cost.json too in a part of a reproduction
    simulation     settings.json, results.npz, environment.json, allocations/, sources.json;
                   world.sha256 if the world is recorded
    reproduction   reproduce.json, runs/ with a comparison in each folder, runs-NAME.parquet,
                   and a folder for each artefact: a simulation, or its exported.json
    advice         advice.json, settings.toml, strategy.py and report.html; no run
    Flower run     run.json, rounds.jsonl, environment.json, both checkpoints;
                   memory/ if a rule remembers updates

Every file is written whole or not at all, and records before the checkpoint that counts them; the
checkpoint of round 0 comes before all records, so a folder with records and no checkpoint has lost
it. Every file that is read back carries a checksum; summary.csv, figures and pages are not.
A run killed at any moment goes on from its checkpoint; rounds beyond it are computed again, with
the same result. Settings are the last file of a simulation, so a folder with them is complete.
"""

from fedcohort.files import locked
from fedcohort.lab.folder.advice import ADVICE, check_not_advice, has_advice
from fedcohort.lab.folder.checkpoint import (
    CHECKPOINT,
    PREVIOUS_CHECKPOINT,
    has_checkpoint,
    load_checkpoint,
    recover_checkpoint,
    save_checkpoint,
)
from fedcohort.lab.folder.classes import (
    CLASS_RATES,
    load_class_rates,
    load_classes,
    save_class_rates,
)
from fedcohort.lab.folder.comparison import (
    COST,
    LABEL_COUNTS,
    RECORDS,
    REPORT_PAGE,
    check_data_digest,
    chunk_path,
    discard_comparison,
    has_comparison,
    load_chunk,
    load_comparison_checkpoint,
    load_label_counts,
    load_records,
    read_cost,
    read_data_digest,
    read_mlflow_runs,
    read_settings,
    save_label_counts,
    save_records,
    save_summary,
    settings_path,
    write_cost,
    write_data_digest,
    write_mlflow_runs,
    write_settings,
)
from fedcohort.lab.folder.flower import (
    FLOWER_JOURNAL,
    has_flower_run,
    journal_path,
    load_flower_checkpoint,
    load_journal,
    read_about,
    trim_journal,
    write_about,
)
from fedcohort.lab.folder.kind import (
    Kind,
    check_readable,
    check_takes_comparison,
    detect_kind,
)
from fedcohort.lab.folder.reproduction import (
    PARTS,
    REQUEST,
    find_results,
    has_reproduction,
    parts_folder,
    read_exported,
    read_request,
    results_path,
    write_exported,
    write_request,
)
from fedcohort.lab.folder.shards import (
    SHARDS,
    discard_shards,
    find_shards,
    has_unmerged_shards,
    shard_folder,
    shard_log,
)
from fedcohort.lab.folder.shared import (
    ENVIRONMENT,
    Arrays,
    check_world_digest,
    find_difference,
    load_allocations,
    read_environment,
    read_sources,
    read_world_digest,
    save_allocations,
    write_environment,
    write_sources,
    write_world_digest,
)
from fedcohort.lab.folder.simulation import (
    check_simulation_folder,
    comparable_settings,
    discard_simulation,
    has_simulation,
    is_same_simulation,
    load_simulation_results,
    read_simulation_settings,
    save_simulation,
)
from fedcohort.lab.folder.target import (
    check_free,
    check_out,
)
from fedcohort.lab.folder.update_memory import (
    UPDATE_MEMORY,
    discard_memory,
    load_memory,
    save_memory,
)

__all__ = [
    "ADVICE",
    "CHECKPOINT",
    "CLASS_RATES",
    "COST",
    "ENVIRONMENT",
    "FLOWER_JOURNAL",
    "LABEL_COUNTS",
    "PARTS",
    "PREVIOUS_CHECKPOINT",
    "RECORDS",
    "REPORT_PAGE",
    "REQUEST",
    "SHARDS",
    "UPDATE_MEMORY",
    "Arrays",
    "Kind",
    "check_data_digest",
    "check_free",
    "check_not_advice",
    "check_out",
    "check_readable",
    "check_simulation_folder",
    "check_takes_comparison",
    "check_world_digest",
    "chunk_path",
    "comparable_settings",
    "detect_kind",
    "discard_comparison",
    "discard_memory",
    "discard_shards",
    "discard_simulation",
    "find_difference",
    "find_results",
    "find_shards",
    "has_advice",
    "has_checkpoint",
    "has_comparison",
    "has_flower_run",
    "has_reproduction",
    "has_simulation",
    "has_unmerged_shards",
    "is_same_simulation",
    "journal_path",
    "load_allocations",
    "load_checkpoint",
    "load_chunk",
    "load_class_rates",
    "load_classes",
    "load_comparison_checkpoint",
    "load_flower_checkpoint",
    "load_journal",
    "load_label_counts",
    "load_memory",
    "load_records",
    "load_simulation_results",
    "locked",
    "parts_folder",
    "read_about",
    "read_cost",
    "read_data_digest",
    "read_environment",
    "read_exported",
    "read_mlflow_runs",
    "read_request",
    "read_settings",
    "read_simulation_settings",
    "read_sources",
    "read_world_digest",
    "recover_checkpoint",
    "results_path",
    "save_allocations",
    "save_checkpoint",
    "save_class_rates",
    "save_label_counts",
    "save_memory",
    "save_records",
    "save_simulation",
    "save_summary",
    "settings_path",
    "shard_folder",
    "shard_log",
    "trim_journal",
    "write_about",
    "write_cost",
    "write_data_digest",
    "write_environment",
    "write_exported",
    "write_mlflow_runs",
    "write_request",
    "write_settings",
    "write_sources",
    "write_world_digest",
]
