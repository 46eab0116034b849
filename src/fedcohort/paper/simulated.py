"""Experiments without training: play once, keep, report."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort import __version__
from fedcohort.files import atomic_write, claim, load, read_settings, save
from fedcohort.lab import folder as rundir
from fedcohort.lab.archive import Result
from fedcohort.lab.simulation import Progress, SimulationConfig, SimulationResult, arrays
from fedcohort.paper import regret
from fedcohort.paper.claims.evidence import Asked
from fedcohort.paper.registry import EXPERIMENTS, Experiment
from fedcohort.reports.report import Report
from fedcohort.reports.words import counted

EXPORTED = "exported.json"
CONCERNS = (
    "seeds",
    "first_seed",
    "rounds",
    "sampler",
)  # what of a user's changes concerns who trains nothing


def played(
    name: str, experiment: Experiment, folder: Path, overwrite: bool, told: Progress | None = None
) -> dict[str, SimulationResult]:
    """Return what a folder holds of these settings, or play and save it; a folder of other results is refused before that."""
    settings = settings_of(name, experiment.setting)
    claim(folder, settings, overwrite)
    if (folder / "settings.json").exists() and not overwrite:
        return stored(folder)[1]
    results = experiment.run(experiment.setting, told)
    rundir.discard_arrays(folder / "allocations")  # of the selectors before
    save(folder, settings, arrays(results))
    rundir.write_environment(folder)
    return results


def settings_of(name: str, setting: SimulationConfig) -> dict[str, Any]:
    """Return the settings as they are kept."""
    return {"experiment": name, "version": __version__, **setting.as_dict()}


def stored(folder: Path) -> tuple[SimulationConfig, dict[str, SimulationResult]]:
    """Return the setting and the results that a folder holds."""
    settings, kept = load(folder)
    names = dict.fromkeys(name.rpartition("/")[0] for name in kept)
    try:
        played = {
            name: SimulationResult(
                **{field: kept[f"{name}/{field}"] for field in SimulationResult.__annotations__}
            )
            for name in names
        }
    except (TypeError, KeyError) as error:
        raise ValueError(f"{folder} must hold results of fedcohort, got: {error}") from None
    setting = _setting(folder, settings)
    _check(folder, setting, played, settings.get("experiment") == "regret")
    return setting, played


def _check(
    folder: Path, of: SimulationConfig, played: Mapping[str, SimulationResult], cases: bool
) -> None:
    """Refuse results of other schemes, seeds, rounds or clients than the settings beside them say."""
    wanted = dict.fromkeys(of.selectors, (of.rounds, of.clients))
    if cases:
        wanted = {case.name: (len(case.fractions), case.num_clients) for case in regret.cases(of)}
    for name, (rounds, clients) in wanted.items():
        if name not in played:
            raise ValueError(
                f"{folder} must hold results of {name}, got those of {', '.join(played) or 'nothing'}"
            )
        shapes = {
            field: getattr(played[name], field).shape for field in SimulationResult.__annotations__
        }
        if shapes != dict.fromkeys(shapes, (of.seeds, rounds)) | {"counts": (of.seeds, clients)}:
            raise ValueError(
                f"{folder} must hold {of.seeds} seeds, {rounds} rounds and {clients} clients of {name}, got {shapes}"
            )


def _setting(folder: Path, settings: Mapping[str, Any]) -> SimulationConfig:
    values = {key: value for key, value in settings.items() if key not in ("experiment", "version")}
    try:
        return SimulationConfig.from_dict(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder} must hold the settings of a simulation, got: {error}") from None


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
    if (folder / "settings.json").exists():
        setting, results = stored(folder)
        return report_of(name, replace(EXPERIMENTS[name], setting=setting), results, powd(setting))
    kept = exported(folder)
    if not kept:
        return Report(name, name, {}, [f"Not run: {folder.parent} holds nothing of it."])
    notes = [
        EXPERIMENTS[name].caption,
        f"Its curves were not exported; `fedcohort reproduce {name}` draws them.",
    ]
    title = _title(name, _setting(folder, kept["settings"]))
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
    here = [name for name in EXPERIMENTS if (out / name / "settings.json").exists()]
    for name in here:
        kept = exported(to / name)["settings"] if (to / name / EXPORTED).exists() else None
        if (to / name / "settings.json").exists():
            kept = read_settings(to / name)
        if kept not in (None, read_settings(out / name)):
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
            text = (
                json.dumps(
                    {"settings": read_settings(out / name), "rows": shown, "room": room(out / name)}
                )
                + "\n"
            )
            with atomic_write(to / name / EXPORTED) as draft:
                draft.write_text(text)
            continue
        for file in ("results.npz", "settings.json"):
            with atomic_write(to / name / file) as draft:
                draft.write_bytes((out / name / file).read_bytes())


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and isnan(value) else value


def exported(folder: Path) -> dict[str, Any]:
    """Return what `export` kept of a simulation in place of its curves; nothing if there is nothing."""
    path = folder / EXPORTED
    try:
        found = dict(json.loads(path.read_text())) if path.exists() else {}
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{path} must be exported by fedcohort, got: {error}") from None
    kinds = {"settings": dict, "rows": list, "room": dict}
    if found and not all(isinstance(found.get(name), kind) for name, kind in kinds.items()):
        raise ValueError(
            f"{path} must hold tables settings and room and a list rows, got {', '.join(found)}"
        )
    if found and not all(isinstance(row, dict) for row in found["rows"]):
        raise ValueError(f"{path} must hold rows that are tables, got others")
    return found


def room(folder: Path) -> dict[str, list[float]]:
    """Return the paper's bound less regret, by case and seed, from what a folder holds; nothing if it holds nothing."""
    if not (folder / "settings.json").exists():
        return dict(exported(folder).get("room", {}))
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
