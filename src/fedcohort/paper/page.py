"""What a page shows of a reproduction: every artefact's tables, and the curves of all runs that the folder holds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.lab.archive import NON_IDENTITY_FIELDS, Result, gather_results, identity
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.folder import has_reproduction, has_simulation, read_request, write_request
from fedcohort.paper import simulated
from fedcohort.paper.registry import NAMES
from fedcohort.paper.reproduce import shown
from fedcohort.reports.findings import Findings, Scheme
from fedcohort.reports.pages.simulation import schemes as simulated_schemes
from fedcohort.reports.report import Report
from fedcohort.world.classes import class_of

ONE = ("figure3", "figure4")


def is_one(folder: Path) -> bool:
    """Return whether a folder holds something that was reproduced."""
    return has_reproduction(folder, NAMES)


def remember(
    folder: Path, names: Sequence[str], changes: Mapping[str, Any], source: Path | None = None
) -> None:
    """Write down what was asked for, so that the page can be drawn again; source: where the results lie, if not there."""
    asked: dict[str, Any] = {"names": list(names), "changes": dict(changes)}
    if source is not None:
        asked["from"] = str(source.resolve())
    write_request(folder, asked)


def findings(folder: Path) -> Findings:
    """Return what a folder holds of what was asked for, or of everything if that is not known."""
    asked: dict[str, Any] = {"names": ["all"], "changes": {}}
    source = folder
    try:
        asked |= read_request(folder)
        asked |= {"names": list(asked["names"]), "changes": dict(asked["changes"])}
        source = Path(asked.get("from", folder))
    except TypeError as error:
        raise ValueError(
            f"{folder} must say in reproduce.json what was reproduced, got: {error}"
        ) from None
    changes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in asked["changes"].items()
    }
    try:
        done = shown(asked["names"], source, **changes)
    except TypeError as error:
        raise ValueError(
            f"{folder} must say in reproduce.json what was reproduced, got: {error}"
        ) from None
    return of_reports(source, done.reports, changes)


def of_reports(folder: Path, reports: Mapping[str, Report], changes: Mapping[str, Any]) -> Findings:
    """Return the findings of reports that are already made."""
    results = [result for result in gather_results(folder) if len(result.accuracy)]
    kinds, targets = trained_kinds(results)
    worlds = {(result.config.clients, result.config.rates) for result in results}
    for name in ONE:
        if has_simulation(folder / name):
            setting, played = simulated.stored(folder / name)
            kinds[f"{name}: selection only"] = simulated_schemes(setting, played)
            worlds.add((setting.clients, setting.rates))
    more: dict[str, Any] = {}
    if len(worlds) == 1:  # pictures by class need the same clients everywhere
        ((clients, rates),) = worlds
        more = {"rates": rates, "classes": class_of(clients, len(rates))}
    about = [dict(result.provenance) for result in results]
    return Findings(
        title=f"The paper reproduced: {', '.join(reports)}",
        kinds=kinds,
        tables={
            f"{report.title}; {title}": rows
            for report in reports.values()
            for title, rows in report.tables.items()
        },
        targets=targets,
        lead=_lead(reports, results),
        notes=[note for report in reports.values() for note in report.notes],
        settings=dict(changes),
        seeds=", ".join(map(str, sorted({result.config.first_seed for result in results}))),
        environment={
            k: ", ".join(sorted({str(a[k]) for a in about if a.get(k)}))
            for k in _KEPT
            if any(a.get(k) for a in about)
        },
        **more,
    )


_KEPT = (
    "python",
    "machine",
    "gpu",
    "fedcohort",
    "numpy",
    "torch",
    "safetensors",
    "scikit-learn",
    "commit",
)


def _lead(reports: Mapping[str, Report], results: Sequence[Result]) -> list[str]:
    """Say how the paper's claims fared, if they were asked for, and how much there is to judge by."""
    said = []
    if "claims" in reports:
        counts = Counter(str(row["verdict"]) for row in reports["claims"].tables["Verdicts"])
        if counts:
            words = ", ".join(f"{word} {count}" for word, count in counts.most_common())
            said.append(
                f"{counts.total()} verdicts on the paper's claims, one for each data set that a claim is about: {words}."
            )
    if results:
        unfinished = sum(not result.finished for result in results)
        said.append(
            f"{len(results)} training runs are at hand"
            + (f", {unfinished} of them not finished." if unfinished else ".")
        )
    return said


def trained_kinds(
    results: Sequence[Result],
) -> tuple[dict[str, dict[str, Scheme]], dict[str, Sequence[float]]]:
    """Return runs that differ in scheme and seed alone as one kind, and the kinds' targets."""
    groups: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        alike = identity(replace(result.config, selectors=("random",), first_seed=0))
        groups.setdefault(alike, {}).setdefault(result.config.selectors[0], []).append(result)
    found: dict[str, dict[str, Scheme]] = {}
    targets: dict[str, Sequence[float]] = {}
    first = {alike: next(iter(by_scheme.values()))[0].config for alike, by_scheme in groups.items()}
    for alike, by_scheme in groups.items():
        name = _kind(
            first[alike], [of for of in first.values() if _short(of) == _short(first[alike])]
        )
        found[name], targets[name] = (
            {scheme: _scheme(runs) for scheme, runs in by_scheme.items()},
            first[alike].targets,
        )
    return found, targets


def _kind(of: ComparisonConfig, namesakes: Sequence[ComparisonConfig]) -> str:
    """Return the name of a kind: what it is in short, and in what it differs from others of that short name."""
    names = [name for name in vars(of) if name not in ("selectors", *NON_IDENTITY_FIELDS)]
    differ = [name for name in names if len({str(getattr(one, name)) for one in namesakes}) > 1]
    return ", ".join(
        [_short(of), *(f"{name.replace('_', ' ')} {getattr(of, name)}" for name in differ)]
    )


def _short(of: ComparisonConfig) -> str:
    rule = f"{of.aggregations[0]} rule" + (
        "" if of.server_rate == 1 else f" times {of.server_rate:g}"
    )
    return f"{of.dataset}, k={of.cohort}, {of.partitions[0]} data, {rule}, mu {of.mus[0]:g}, {of.sampler}"


def _scheme(runs: list[Result]) -> Scheme:
    runs = sorted(runs, key=lambda run: run.config.first_seed)
    rounds = max(run.config.rounds for run in runs)

    def padded(values: Any, kind: Any) -> Any:
        return np.concatenate([values.astype(kind), np.full(rounds - len(values), np.nan, kind)])

    successes = np.stack([padded(run.valid, np.float64) for run in runs])
    accuracy = np.stack(
        [padded(run.accuracy, np.float32) for run in runs]
    )  # as kept: 0.45 is not below a target of 0.45 then
    return Scheme(
        seeds=[run.config.first_seed for run in runs],
        asked=np.where(np.isnan(successes), np.nan, float(runs[0].config.cohort)),
        successes=successes,
        counts=np.stack([run.counts for run in runs]).astype(np.int64),
        accuracy=accuracy,
    )
