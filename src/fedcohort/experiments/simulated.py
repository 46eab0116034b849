"""Experiments without training: play once, keep, report."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort import __version__, rundir
from fedcohort.experiments import regret
from fedcohort.experiments.evidence import Asked
from fedcohort.experiments.registry import EXPERIMENTS, Experiment
from fedcohort.experiments.results import Result
from fedcohort.experiments.simulation import Played, Progress, Setting, arrays
from fedcohort.reports.report import Report
from fedcohort.store import claim, load, save, written_whole

ROOM = "room.json"


def played(name: str, experiment: Experiment, folder: Path, overwrite: bool, told: Progress | None = None) -> dict[str, Played]:
    """Return what a folder holds of these settings, or play and save it; a folder of other results is refused before that."""
    settings = settings_of(name, experiment.setting)
    claim(folder, settings, overwrite)
    if (folder / "settings.json").exists() and not overwrite:
        return stored(folder)[1]
    results = experiment.run(experiment.setting, told)
    save(folder, settings, arrays(results))
    rundir.write_environment(folder)
    return results


def settings_of(name: str, setting: Setting) -> dict[str, Any]:
    """Return the settings as they are kept."""
    return {"experiment": name, "version": __version__, **setting.as_dict()}


def stored(folder: Path) -> tuple[Setting, dict[str, Played]]:
    """Return the setting and the results that a folder holds."""
    settings, kept = load(folder)
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    try:
        setting = Setting(**{key: value for key, value in values.items() if key not in ("experiment", "version")})
        names = dict.fromkeys(name.rpartition("/")[0] for name in kept)
        return setting, {name: Played(**{field: kept[f"{name}/{field}"] for field in Played.__annotations__}) for name in names}
    except (TypeError, KeyError) as error:
        raise ValueError(f"{folder} must hold results of fedcohort, got: {error}") from None


def report_of(name: str, experiment: Experiment, results: dict[str, Played], powd: Mapping[int, Result]) -> Report:
    """Return the table and the figures; figures 3 and 4 show pow-d, too, where its training runs are at hand."""
    setting, shown, notes = experiment.setting, results, [experiment.caption]
    if powd and name in ("figure3", "figure4"):
        shown = results | {"pow-d": _of_training(list(powd.values()))}
        notes.append(f"pow-d: from its training runs, non-iid, FedAvg, {len(powd)} seeds.")
    where = f"K={setting.num_clients}, k={setting.cohort_size}, T={setting.rounds}, {setting.seeds} seeds, {setting.sampler}"
    rows = experiment.rows(setting, shown)
    return Report(
        name, f"{name}: {where}", {"Summary": rows}, notes, {"summary": rows}, lambda: experiment.report(setting, shown)
    )


def _of_training(runs: list[Result]) -> Played:
    """Return what figures 3 and 4 show of trained runs; what would have answered is not recorded there."""
    successes, counts = (np.stack([getattr(run, name) for run in runs]).astype(np.int64) for name in ("valid", "counts"))
    unknown = np.zeros(successes.shape)
    return Played(successes, unknown.astype(np.int64), unknown, counts)


def asked(setting: Setting, results: dict[str, Played], powd: Mapping[int, Result]) -> dict[str, Asked]:
    """Return who was asked and who answered, for the claims."""
    found = {name: Asked(tuple(setting.seed_list), one.successes, one.counts) for name, one in results.items()}
    if powd:
        one = _of_training(list(powd.values()))
        found["pow-d"] = Asked(tuple(powd), one.successes, one.counts)
    return found


def export(out: Path, to: Path) -> None:
    """Copy what is small: figures 3 and 4, and of the regret, whose curves are long, the end of each."""
    for name in EXPERIMENTS:
        if not (out / name / "settings.json").exists():
            continue
        if name == "regret":
            with written_whole(to / name / ROOM) as draft:
                draft.write_text(json.dumps(room(out / name)) + "\n")
            continue
        for file in ("results.npz", "settings.json"):
            with written_whole(to / name / file) as draft:
                draft.write_bytes((out / name / file).read_bytes())


def room(folder: Path) -> dict[str, list[float]]:
    """Return the paper's bound less regret, by case and seed, from what a folder holds; nothing if it holds nothing."""
    if not (folder / "settings.json").exists():
        return dict(json.loads((folder / ROOM).read_text())) if (folder / ROOM).exists() else {}
    setting, results = stored(folder)
    return {
        case.name: (regret.bound_so_far(case, sharp=False)[-1] - regret.regret_so_far(case, results[case.name])[:, -1]).tolist()
        for case in regret.cases(setting)
    }


def changed(name: str, changes: Mapping[str, Any]) -> Experiment:
    """Return an experiment with those of a user's changes that concern it."""
    known = {key: value for key, value in changes.items() if key in ("seeds", "first_seed", "rounds", "sampler")}
    return replace(EXPERIMENTS[name], setting=replace(EXPERIMENTS[name].setting, **known))
