"""Experiments without training: play once, keep, report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.lab.archive import Result
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.folder import (
    copy_simulation,
    has_simulation,
    read_exported,
    read_simulation_settings,
    write_exported,
)
from fedcohort.lab.simulation import (
    Progress,
    SimulationResult,
    load_or_simulate,
    load_simulation,
    selector_shapes,
    simulation_config,
)
from fedcohort.paper import regret
from fedcohort.paper.claims.evidence import Asked
from fedcohort.paper.registry import EXPERIMENTS, Experiment
from fedcohort.reports.report import Report
from fedcohort.reports.words import counted

CONCERNS = (
    "seeds",
    "first_seed",
    "rounds",
    "sampler",
)  # what of a user's changes concerns who trains nothing


def played(
    name: str, experiment: Experiment, folder: Path, overwrite: bool, told: Progress | None = None
) -> dict[str, SimulationResult]:
    """Return the results that a folder holds of an experiment, or play and store it."""
    simulation = load_or_simulate(
        name,
        experiment.setting,
        folder,
        run=experiment.run,
        shapes=regret_shapes if name == "regret" else selector_shapes,
        overwrite=overwrite,
        on_progress=told,
    )
    return simulation.results


def regret_shapes(config: SimulationConfig) -> dict[str, tuple[int, int]]:
    """Return the rounds and clients of every case of the regret."""
    return {case.name: (len(case.fractions), case.num_clients) for case in regret.cases(config)}


def stored(folder: Path) -> tuple[SimulationConfig, dict[str, SimulationResult]]:
    """Return the setting and the results that a folder holds."""
    simulation = load_simulation(folder, regret_shapes if folder.name == "regret" else None)
    return simulation.config, simulation.results


def report_of(
    name: str,
    experiment: Experiment,
    results: dict[str, SimulationResult],
    powd: Mapping[int, Result],
) -> Report:
    """Return the table and the figures; figures 3 and 4 show pow-d, too, where its training runs are at hand."""
    setting, shown, notes = experiment.setting, results, [experiment.caption]
    if powd and name in ("figure3", "figure4"):
        shown = results | {"pow-d": _of_training(list(powd.values()))}
        data = ", ".join(sorted({run.config.dataset for run in powd.values()}))
        notes.append(
            f"pow-d: from its training runs on {data}, non-iid, FedAvg, {counted(len(powd), 'seed')}."
        )
    rows = experiment.rows(setting, shown)
    figures = experiment.report(setting, shown)
    return Report(name, _title(name, setting), {"Summary": rows}, notes, {"summary": rows}, figures)


def report_in(folder: Path, powd: Callable[[SimulationConfig], Mapping[int, Result]]) -> Report:
    """Return what a folder holds of the experiment of its name; powd: finished runs of that setting, by seed."""
    name = folder.name
    if has_simulation(folder):
        setting, results = stored(folder)
        return report_of(name, replace(EXPERIMENTS[name], setting=setting), results, powd(setting))
    kept = read_exported(folder)
    if not kept:
        return Report(name, name, {}, [f"Not run: {folder.parent} holds nothing of it."])
    notes = [
        EXPERIMENTS[name].caption,
        f"Its curves were not exported; `fedcohort reproduce {name}` draws them.",
    ]
    title = _title(name, simulation_config(folder, kept["settings"]))
    rows = [
        {key: nan if value is None else value for key, value in row.items()} for row in kept["rows"]
    ]
    return Report(name, title, {"Summary": rows}, notes, {"summary": rows})


def _title(name: str, of: SimulationConfig) -> str:
    sampler = "" if name == "regret" else f", {of.sampler}"  # which plays several
    return f"{name}: K={of.clients}, k={of.cohort}, T={of.rounds}, {counted(of.seeds, 'seed')}{sampler}"


def _of_training(runs: list[Result]) -> SimulationResult:
    """Return what figures 3 and 4 show of trained runs; what would have answered is not recorded there."""
    successes, counts = (
        np.stack([getattr(run, name) for run in runs]).astype(np.int64)
        for name in ("valid", "counts")
    )
    unknown = np.zeros(successes.shape)
    return SimulationResult(successes, unknown.astype(np.int64), unknown, counts)


def asked(
    setting: SimulationConfig, results: dict[str, SimulationResult], powd: Mapping[int, Result]
) -> dict[str, Asked]:
    """Return who was asked and who answered, for the claims."""
    found = {
        name: Asked(tuple(setting.seed_list), one.successes, one.counts)
        for name, one in results.items()
    }
    if powd:
        one = _of_training(list(powd.values()))
        found["pow-d"] = Asked(tuple(powd), one.successes, one.counts)
    return found


def export(out: Path, to: Path) -> None:
    """Copy what is small: figures 3 and 4, and of the regret, whose curves are long, its table and the end of each.

    Simulations of other settings that lie there are refused before anything is written.
    """
    here = [name for name in EXPERIMENTS if has_simulation(out / name)]
    for name in here:
        kept = read_exported(to / name).get("settings")
        if has_simulation(to / name):
            kept = read_simulation_settings(to / name)
        if kept not in (None, read_simulation_settings(out / name)):
            raise ValueError(
                f"export must not be a folder that holds {name} of other settings, got {to}; choose another"
            )
    for name in here:
        if name == "regret":
            setting, results = stored(out / name)
            shown = [
                {key: _plain(value) for key, value in row.items()}
                for row in regret.rows(setting, results)
            ]
            settings = read_simulation_settings(out / name)
            write_exported(
                to / name, {"settings": settings, "rows": shown, "room": room(out / name)}
            )
            continue
        copy_simulation(out / name, to / name)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and isnan(value) else value


def room(folder: Path) -> dict[str, list[float]]:
    """Return the paper's bound less regret, by case and seed, from what a folder holds; nothing if it holds nothing."""
    if not has_simulation(folder):
        return dict(read_exported(folder).get("room", {}))
    setting, results = stored(folder)
    return {
        case.name: (
            regret.bound_so_far(case, sharp=False)[-1]
            - regret.regret_so_far(case, results[case.name])[:, -1]
        ).tolist()
        for case in regret.cases(setting)
    }


def changed(name: str, changes: Mapping[str, Any]) -> Experiment:
    """Return an experiment with those of a user's changes that concern it."""
    concerns = [
        key for key in CONCERNS if (name, key) != ("regret", "sampler")
    ]  # which plays several
    known = {key: value for key, value in changes.items() if key in concerns}
    return replace(EXPERIMENTS[name], setting=replace(EXPERIMENTS[name].setting, **known))


def check_concerned(names: Sequence[str], changes: Mapping[str, Any]) -> None:
    """Refuse changes that concern none of these experiments, which train nothing."""
    for change, value in changes.items():
        if change not in CONCERNS:
            raise ValueError(
                f"{change} must not be given for {', '.join(names)} alone, which it does not concern, got {value}"
            )
