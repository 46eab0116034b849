"""Everything behind `fedcohort reproduce`: train what is missing, then report everything.

The folder of a reproduction holds the trained parts under `runs`, the simulations in folders of
their own, and the reports of each artefact in a folder of its name. The same call continues
where an earlier one stopped. What is finished is only reported.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from fedcohort.checks import check_choice, check_int, check_positive
from fedcohort.data import load
from fedcohort.files import check_folder
from fedcohort.lab.folder import has_comparison, has_simulation
from fedcohort.lab.named_parts import is_own_data
from fedcohort.lab.sharding import Workers
from fedcohort.lab.shards import Shard, shard_config
from fedcohort.lab.simulation import Progress, Simulation
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.results import Results, exact_fields, read_results
from fedcohort.paper.setting import SUBSETS, TASKS, Overrides, check_overrides, fields_for
from fedcohort.paper.simulations import check_simulation_overrides
from fedcohort.reports.report import Report

if TYPE_CHECKING:
    from fedcohort.lab.training import Training


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What came of a call.

    Attributes:
        reports: Reports by name of the artefact.
        results: The results that they were made from.
        overrides: Fields of the config that differ from the paper's.
        absent: Data sets that are not at hand, and why.
        stopped: Where training stopped because the time was up; empty if it did not.
    """

    reports: Mapping[str, Report]
    results: Results
    overrides: Overrides
    absent: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""


def run(
    names: Sequence[str],
    out: Path,
    *,
    data: Path | None = None,
    minutes: float | None = None,
    stop_at: int | None = None,
    from_previous: bool = False,
    overwrite: bool = False,
    workers: Workers | None = None,
    on_progress: Progress | None = None,
    **overrides: Any,
) -> Reproduction:
    """Simulate and train what artefacts lack, and report them.

    Args:
        names: Names of artefacts, or "all".
        out: Folder for runs and reports.
        data: Folder with data sets.
        minutes: Training stops between rounds after so many minutes.
        stop_at: Every run stops after this round; a later call without it goes on from there.
        from_previous: Whether runs whose last checkpoint is damaged or missing go on from the
            one before. The damaged one is set aside.
        overwrite: Whether to replace simulations that are there.
        workers: Devices or a Ray cluster that share the seeds; None trains in this process.
        on_progress: Is told the part, the rounds done and the rounds in all.
        **overrides: Fields of `ComparisonConfig`. `selectors`, `partitions` and `mus` choose
            some of an artefact's runs.

    Returns:
        The reports, and the results that they were made from.

    Raises:
        ValueError: If a name is unknown, an override cannot be taken, or the folder holds
            something else. Nothing is computed then.
    """
    chosen = choose(names)
    deadline = inf
    if minutes is not None:
        deadline = monotonic() + 60 * check_positive("time_budget", minutes)
    if stop_at is not None:
        check_int("stop_at", stop_at, 1)
    overrides = _check_request(chosen, out, overrides)

    trained = _trained(chosen)
    if workers is not None:
        _check_trained(trained, chosen)
    simulations = _simulate(chosen, out, overrides, overwrite, on_progress)

    if not trained:
        results = read_results(out, overrides)
        results.simulations |= simulations
        return Reproduction(make_reports(chosen, results, overrides), results, overrides)

    from fedcohort.lab.training import Training  # Imported here: only training needs PyTorch.

    if workers is not None:
        options: dict[str, Any] = {"data": data, "minutes": minutes, "stop_at": stop_at}
        options["from_previous"] = from_previous
        _train_shards(chosen, out, workers, options, overrides, on_progress)
    training = Training(out, data, deadline, on_progress, from_previous, stop_at)
    overrides = {"precision": "float32"} | _with_suitable_fields(overrides, training)
    for name in trained:
        training.complete(_configs(name, overrides))
    results = Results(training.results, out, exact_fields(overrides), simulations)
    return Reproduction(
        make_reports(chosen, results, overrides),
        results,
        overrides,
        absent=training.absent,
        stopped=training.stopped,
    )


def train_shard(
    names: Sequence[str],
    out: Path,
    shard: Shard,
    *,
    data: Path | None = None,
    minutes: float | None = None,
    stop_at: int | None = None,
    from_previous: bool = False,
    on_progress: Progress | None = None,
    **overrides: Any,
) -> "Training":
    """Train what artefacts lack of one shard; `run` reports all of them.

    The runs of a shard are parts of the reproduction like any other: nothing is merged.

    Args:
        names: Names of artefacts, or "all".
        out: Folder for runs and reports.
        shard: Which share of the seeds.
        data: Folder with data sets.
        minutes: Training stops between rounds after so many minutes.
        stop_at: Every run stops after this round.
        from_previous: Whether runs whose last checkpoint is damaged or missing go on from the
            one before.
        on_progress: Is told the part, the rounds done and the rounds in all.
        **overrides: Fields of `ComparisonConfig`, as in `run`.

    Raises:
        ValueError: If there are more shards than seeds, nothing is to be trained, or an argument
            cannot be taken.
    """
    chosen = choose(names)
    trained = _trained(chosen)
    _check_trained(trained, chosen)
    deadline = inf
    if minutes is not None:
        deadline = monotonic() + 60 * check_positive("time_budget", minutes)
    if stop_at is not None:
        check_int("stop_at", stop_at, 1)
    overrides = _check_request(chosen, out, overrides)

    from fedcohort.lab.training import Training  # Imported here: only training needs PyTorch.

    training = Training(out, data, deadline, on_progress, from_previous, stop_at)
    overrides = {"precision": "float32"} | _with_suitable_fields(overrides, training)
    for name in trained:
        training.complete([shard_config(part, shard) for part in _configs(name, overrides)])
    return training


def _check_trained(trained: Sequence[str], chosen: Sequence[str]) -> None:
    if not trained:
        raise ValueError(
            f"names must contain an artefact that is trained to share its seeds, "
            f"got {', '.join(chosen)}"
        )


def _train_shards(
    chosen: list[str],
    out: Path,
    workers: Workers,
    options: Mapping[str, Any],
    overrides: Overrides,
    on_progress: Progress | None,
) -> None:
    """Train all shards on devices or on Ray."""
    configs = [config for name in _trained(chosen) for config in _configs(name, overrides)]
    for dataset in dict.fromkeys(config.dataset for config in configs):
        with suppress(ValueError):  # Data that are not there are reported later.
            load(dataset, options["data"])  # Once, before several processes look for it.

    def make_work(shard: Shard) -> partial["Training"]:
        return partial(train_shard, chosen, out, shard, **options, **overrides)

    workers.train(make_work, configs[0], out, on_progress=on_progress)


def show(names: Sequence[str], source: Path, **overrides: Any) -> Reproduction:
    """Report the results in a folder; nothing is simulated or trained.

    Args:
        names: Names of artefacts, or "all".
        source: Folder of a reproduction, or of exported results.
        **overrides: Fields of `ComparisonConfig` that choose which runs are shown.

    Raises:
        ValueError: If a name is unknown, an override cannot be taken, or `source` is no folder.
    """
    chosen = choose(names)
    checked = {name: value for name, value in overrides.items() if name != "precision"}
    check_overrides(checked, chosen)
    if not source.is_dir():
        raise ValueError(f"from must be a folder of results, got {source}")
    results = read_results(source, overrides)
    return Reproduction(make_reports(chosen, results, overrides), results, overrides)


def choose(names: Sequence[str]) -> list[str]:
    """Return the named artefacts, each once and in the order of ARTEFACTS; all for "all"."""
    for name in names:
        check_choice("name", name, [*ARTEFACTS, "all"])
    if "all" in names:
        return list(ARTEFACTS)
    return [name for name in ARTEFACTS if name in names]


def make_reports(names: Sequence[str], results: Results, overrides: Overrides) -> dict[str, Report]:
    """Return the reports of artefacts, by name."""
    overrides = dict(overrides)
    if overrides.get("precision", "float32") != "float32":
        # A CPU cannot train in this precision, but results of a GPU are shown on any machine.
        overrides.setdefault("device", "cuda")
    reports = {}
    for name in choose(names):
        reports[name] = ARTEFACTS[name].report(results, overrides)
    return reports


def _check_request(chosen: list[str], out: Path, overrides: dict[str, Any]) -> dict[str, Any]:
    """Refuse what cannot be done before anything is computed; return resolved overrides."""
    for name in chosen:
        spec = ARTEFACTS[name].simulation
        if spec is not None:
            spec.with_overrides(overrides)
    if all(ARTEFACTS[name].simulation is not None for name in chosen):
        check_simulation_overrides(chosen, overrides)

    trained = _trained(chosen)
    if trained and "device" in overrides:
        from fedcohort.learning.options import find_device  # Imported here: it needs PyTorch.

        overrides = overrides | {"device": str(find_device(overrides["device"]))}
    check_overrides(overrides, chosen)
    if trained and not any(_configs(name, overrides) for name in trained):
        raise ValueError(
            f"selectors, partitions and mus must leave a run of {', '.join(trained)}, "
            f"got {_describe_subsets(overrides)}"
        )

    check_folder("out", out)
    if has_comparison(out) or has_simulation(out):
        raise ValueError(
            f"out must not hold a run of compare or simulate, got {out}; choose another"
        )
    dataset = str(overrides.get("dataset", ""))
    if trained and is_own_data(dataset):
        load(dataset)  # A user's data that cannot be read is an error, not missing data.
    return overrides


def _simulate(
    chosen: list[str],
    out: Path,
    overrides: Overrides,
    overwrite: bool,
    on_progress: Progress | None,
) -> dict[Path, Simulation]:
    """Return the simulations of artefacts by folder; those that are missing are played.

    Artefacts that share a simulation share its folder, so it is played once.
    """
    simulations: dict[Path, Simulation] = {}
    for name in chosen:
        spec = ARTEFACTS[name].simulation
        if spec is None:
            continue
        folder = spec.find(out, name)
        if overwrite:
            folder = out / spec.name
        if folder in simulations:
            continue
        simulation = spec.with_overrides(overrides).load_or_run(
            out, name, overwrite=overwrite, on_progress=on_progress
        )
        simulations[simulation.folder] = simulation
    return simulations


def _describe_subsets(overrides: Overrides) -> str:
    words = []
    for name in SUBSETS:
        if name in overrides:
            words.append(f"{name} {', '.join(map(str, overrides[name]))}")
    return "; ".join(words)


def _trained(names: Sequence[str]) -> list[str]:
    """Return the artefacts that need training."""
    return [name for name in names if ARTEFACTS[name].training is not None]


def _configs(name: str, overrides: Overrides) -> list[Any]:
    training = ARTEFACTS[name].training
    if training is None:
        return []
    return training(overrides)


def _with_suitable_fields(overrides: Overrides, training: "Training") -> dict[str, Any]:
    """Add a model and a size that suit a data set other than the paper's for this task."""
    if "dataset" not in overrides:
        return dict(overrides)
    dataset = training.dataset(overrides["dataset"])
    if dataset is None:
        return dict(overrides)
    task = TASKS.get(overrides["dataset"])
    if task is None:
        return fields_for(dataset, overrides.get("clients", 100)) | dict(overrides)
    return {"model": task["model"]} | dict(overrides)
