"""Everything behind `fedcohort reproduce`: train what is missing, then report everything.

The folder of a reproduction holds the trained parts under `runs`, the simulations in folders of
their own, and the reports of each artefact in a folder of its name. The same call continues
where an earlier one stopped. What is finished is only reported.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from fedcohort.checks import check_int, check_positive
from fedcohort.data import load
from fedcohort.lab.sharding import ShardWorkers
from fedcohort.lab.shards import Shard, shard_config
from fedcohort.lab.simulation import Progress, Simulation
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.request import (
    check_losses_every,
    check_request,
    check_source,
    check_trained,
    choose,
    holds_results,
    trained_artefacts,
    training_configs,
    with_suitable_fields,
)
from fedcohort.paper.results import Results, exact_fields, read_results
from fedcohort.paper.setting import Overrides, check_overrides, without_run_choices
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
    workers: ShardWorkers | None = None,
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
        **overrides: Settings in `OVERRIDABLE`. `selectors`, `partitions` and `mus` choose
            some of an artefact's runs.

    Returns:
        The reports, and the results that they were made from.

    Raises:
        ValueError: If a name is unknown, an override cannot be taken, or the folder holds
            something else. Nothing is computed then.
    """
    chosen = choose(names)
    deadline = _check_limits(minutes, stop_at)
    trained = trained_artefacts(chosen)
    if workers is not None:
        check_trained(trained, chosen, workers.name, workers)
    overrides = check_request(chosen, out, overrides)
    check_losses_every(trained, overrides, out, data)
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
    overrides = {"precision": "float32"} | with_suitable_fields(overrides, training)
    for name in trained:
        training.complete(training_configs(name, overrides))
    results = Results(training.results, out, exact_fields(overrides), simulations)
    return Reproduction(
        make_reports(chosen, results, overrides),
        results,
        overrides,
        absent=training.absent,
        stopped=training.stopped,
    )


def _check_limits(minutes: float | None, stop_at: int | None) -> float:
    """Return when training must stop, inf for never; refuse limits out of bounds."""
    if stop_at is not None:
        check_int("stop_at", stop_at, 1)
    if minutes is None:
        return inf
    return monotonic() + 60 * check_positive("time_budget", minutes)


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
        **overrides: Settings in `OVERRIDABLE`, as in `run`.

    Raises:
        ValueError: If there are more shards than seeds, nothing is to be trained, or an argument
            cannot be taken.
    """
    chosen = choose(names)
    trained = trained_artefacts(chosen)
    check_trained(trained, chosen, "shard", shard)
    deadline = _check_limits(minutes, stop_at)
    overrides = check_request(chosen, out, overrides)
    check_losses_every(trained, overrides, out, data)

    from fedcohort.lab.training import Training  # Imported here: only training needs PyTorch.

    training = Training(out, data, deadline, on_progress, from_previous, stop_at)
    overrides = {"precision": "float32"} | with_suitable_fields(overrides, training)
    for name in trained:
        training.complete([shard_config(part, shard) for part in training_configs(name, overrides)])
    return training


def _train_shards(
    chosen: list[str],
    out: Path,
    workers: ShardWorkers,
    options: Mapping[str, Any],
    overrides: Overrides,
    on_progress: Progress | None,
) -> None:
    """Train all shards on devices or on Ray."""
    configs = [
        config for name in trained_artefacts(chosen) for config in training_configs(name, overrides)
    ]
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
        **overrides: Settings in `OVERRIDABLE` that the shown runs must have, such as `rounds`,
            `dataset` or `model`. Those in `RUN_CHOICES` choose none: all seeds, selectors,
            partitions and mus are shown.

    Returns:
        The reports, and the overrides that had an effect on them.

    Raises:
        ValueError: If a name is unknown, an override cannot be taken, or `source` is no folder
            with results.
    """
    shown = show_again(names, source, **overrides)
    if not holds_results(shown.results):
        raise ValueError(f"from must be a folder of results, got {source}, which holds none")
    return replace(shown, overrides=without_run_choices(overrides))


def show_again(names: Sequence[str], source: Path, **overrides: Any) -> Reproduction:
    """Report a folder as `show` does, even if it holds nothing, and keep all overrides.

    The page of a reproduction is drawn again with what it was asked for, also where the data
    were not at hand and nothing was trained.

    Args:
        names: Names of artefacts, or "all".
        source: Folder of a reproduction, or of exported results.
        **overrides: Settings in `OVERRIDABLE` that the reproduction was asked for.

    Raises:
        ValueError: If a name is unknown, an override cannot be taken, or `source` is no folder.
    """
    chosen = choose(names)
    checked = {name: value for name, value in overrides.items() if name != "precision"}
    check_overrides(checked, chosen)
    check_source(source)
    results = read_results(source, overrides)
    return Reproduction(make_reports(chosen, results, overrides), results, overrides)


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
