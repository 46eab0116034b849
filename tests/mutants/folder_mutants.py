"""Bugs in what a run does with the folder it finds."""

from mutant import Mutant

IN_ITS_FOLDER = ("tests/lab/test_comparison_in_its_folder.py",)
SHARDING = "tests/lab/test_sharding.py::"
WORLD_FLAGS = "tests/cli/test_world_flags.py::"

MUTANTS = (
    Mutant(
        "a folder of the user's makes a reproduction",
        "lab/folder/reproduction.py",
        "path.suffix in RESULTS_SUFFIXES and path.is_file()",
        "path.suffix in RESULTS_SUFFIXES",
        ("tests/lab/test_folder.py",),
    ),
    Mutant(
        "two comparisons may use a folder at once",
        "lab/comparison.py",
        "    with run_folder.locked(folder):\n",
        "    with suppress():\n",
        IN_ITS_FOLDER,
    ),
    Mutant(
        "a run that was killed after its first file cannot be resumed",
        "lab/folder/target.py",
        "own = {ENVIRONMENT, COMPARISON_SETTINGS}",
        "own = {COMPARISON_SETTINGS}",
        IN_ITS_FOLDER,
    ),
    Mutant(
        "the results of a discarded run stay",
        "lab/folder/comparison.py",
        "    SUMMARY,\n    REPORT_PAGE,\n)",
        ")",
        IN_ITS_FOLDER,
    ),
    Mutant(
        "a comparison replaces a Flower run",
        "lab/folder/kind.py",
        "if kind is not None and kind is not Kind.COMPARISON:",
        "if kind in (Kind.SIMULATION, Kind.REPRODUCTION):",
        ("tests/cli/test_other_folders.py::test_no_comparison_replaces_a_run_of_another_kind",),
    ),
    Mutant(
        "a recorded world that has changed is not noticed",
        "lab/sources.py",
        "Path(config.world_file).is_file():",
        "Path(config.world_file).is_dir():",
        (WORLD_FLAGS + "test_a_finished_run_is_not_shown_for_a_world_that_has_changed",),
    ),
    Mutant(
        "a simulation keeps no digest of its world",
        "lab/folder/simulation.py",
        "    write_world_digest(folder, world_digest)\n",
        "",
        (WORLD_FLAGS + "test_a_finished_run_is_not_shown_for_a_world_that_has_changed",),
    ),
    Mutant(
        "shards in use are discarded",
        "lab/folder/shards.py",
        'stack.enter_context(locked(path, "shard"))',
        'locked(path, "shard")',
        (SHARDING + "test_a_shard_that_another_process_trains_is_not_discarded",),
    ),
    Mutant(
        "GPUs go on with shards of a CPU",
        "lab/sharding.py",
        "if config.device != workers.device:",
        'if config.device not in (workers.device, "cpu"):',
        (SHARDING + "test_a_run_does_not_go_on_with_workers_of_another_kind",),
    ),
    Mutant(
        "a shard without the owners of its samples is merged",
        "lab/merging.py",
        "(run_folder.ENVIRONMENT, run_folder.LABEL_COUNTS, run_folder.CLASS_RATES)",
        "(run_folder.ENVIRONMENT, run_folder.CLASS_RATES)",
        (SHARDING + "test_a_shard_that_has_lost_a_file_is_not_merged",),
    ),
    Mutant(
        "an unknown environment is replaced by that of this machine",
        "lab/folder/shared.py",
        "    if environment is None:\n",
        "    if not environment:\n",
        ("tests/lab/test_folder.py",),
    ),
)
