"""What the page of a reproduction shows: all tables, and curves of the runs asked for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import NON_IDENTITY_FIELDS, Result, identity
from fedcohort.lab.runs import group_label
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.participation import SIMULATION
from fedcohort.paper.reproduce import Reproduction, show_again
from fedcohort.paper.request import training_configs
from fedcohort.paper.setting import COHORTS, TASKS
from fedcohort.reports.candidates import Candidate, Cases
from fedcohort.reports.findings import Findings, SchemeResults
from fedcohort.reports.pages.simulation import schemes as simulated_schemes
from fedcohort.reports.pages.training_answer import (
    PAPERS,
    UNIFORM,
    order_kinds,
    training_answer,
)
from fedcohort.reports.report import Report
from fedcohort.world.classes import class_of

FOLDERS = (*ARTEFACTS, SIMULATION.name)  # folders that a reproduction may hold
ENVIRONMENT = (
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


def save_request(
    folder: Path, names: Sequence[str], overrides: Mapping[str, Any], source: Path | None = None
) -> None:
    """Write down what was asked for, so that the page can be drawn again.

    Args:
        folder: Folder of the reports.
        names: Names of artefacts.
        overrides: Fields of the config that the user changed.
        source: Folder of the results, if they lie elsewhere.
    """
    request: dict[str, Any] = {"names": list(names), "changes": dict(overrides)}
    if source is not None:
        request["from"] = str(source.resolve())
    run_folder.write_request(folder, request)


def read_findings(folder: Path) -> Findings:
    """Return what a folder holds of what was asked for, or of everything if nobody knows."""
    request: dict[str, Any] = {"names": ["all"], "changes": {}}
    request |= run_folder.read_request(folder)
    try:
        names = list(request["names"])
        overrides = {}
        for name, value in dict(request["changes"]).items():
            if isinstance(value, list):
                value = tuple(value)
            overrides[name] = value
        source = Path(request.get("from", folder))
        reproduction = show_again(names, source, **overrides)
    except TypeError as error:
        path = folder / run_folder.REQUEST
        raise ValueError(f"{path} must say what was reproduced, got: {error}") from None
    return make_findings(reproduction)


def make_findings(reproduction: Reproduction) -> Findings:
    """Return what the page of a reproduction shows."""
    results = reproduction.results
    reports = reproduction.reports
    runs = _asked_runs(reproduction)
    groups, targets = group_runs(runs)
    worlds = {(run.config.clients, run.config.rates) for run in runs}
    for name in SIMULATION.older_folders:
        simulation = results.simulation(SIMULATION, name)
        if simulation is not None:
            title = f"{simulation.folder.name}: selection only"
            groups[title] = simulated_schemes(simulation.config, simulation.results)
            worlds.add((simulation.config.clients, simulation.config.rates))

    rates: Sequence[float] = ()
    classes = None
    if len(worlds) == 1:  # charts by class need the same clients everywhere
        ((clients, rates),) = worlds
        classes = class_of(clients, len(rates))

    tables = {}
    notes: list[str] = []
    for report in reports.values():
        notes += report.notes
        for title, rows in report.tables.items():
            tables[f"{report.title}; {title}"] = rows
    seeds = sorted({run.config.first_seed for run in runs})
    cases = _cases(groups)
    lead = _lead(reports, runs)
    answer = training_answer(cases)
    if answer is not None and "claims" in reports:
        answer = replace(answer, sentence=lead[0], basis=[answer.sentence, *answer.basis])
    return Findings(
        title=f"The paper reproduced: {', '.join(reports)}",
        kinds=order_kinds(groups, cases),
        answer=answer,
        tables=tables,
        targets=targets,
        rates=rates,
        classes=classes,
        lead=lead,
        notes=notes,
        settings=dict(reproduction.overrides),
        seeds=", ".join(map(str, seeds)),
        environment=_environment(runs),
    )


def _asked_runs(reproduction: Reproduction) -> Sequence[Result]:
    """Return the runs on the data and with the cohort sizes that the reports are about.

    If there are none, these are all runs.
    """
    kinds: set[tuple[str, int]] = set()
    for name in reproduction.reports:
        trained = {(config.dataset, config.cohort) for config in training_configs(name, {})}
        kinds |= trained or set(product(TASKS, COHORTS))
    given = reproduction.overrides
    asked = {(given.get("dataset", data), given.get("cohort", size)) for data, size in kinds}
    runs = reproduction.results.runs
    return [run for run in runs if (run.config.dataset, run.config.cohort) in asked] or runs


def _cases(groups: Mapping[str, Mapping[str, SchemeResults]]) -> Cases:
    """Return the schemes of every kind of run as candidates of a case of their own."""
    cases = {}
    for kind, schemes in groups.items():
        candidates = []
        for name, scheme in schemes.items():
            candidates.append(
                Candidate(
                    name=name,
                    selector=name,
                    rule="",
                    kind=kind,
                    scheme=scheme,
                    is_uniform=name == UNIFORM,
                    is_papers=name in PAPERS,
                )
            )
        cases[kind] = candidates
    return cases


def _environment(runs: Sequence[Result]) -> dict[str, str]:
    """Return the versions and machines that runs were computed with."""
    environment = {}
    for name in ENVIRONMENT:
        values = {str(run.provenance[name]) for run in runs if run.provenance.get(name)}
        if values:
            environment[name] = ", ".join(sorted(values))
    return environment


def _lead(reports: Mapping[str, Report], runs: Sequence[Result]) -> list[str]:
    """Say how many claims hold, if they were judged, and how many runs there are."""
    sentences = []
    if "claims" in reports:
        rows = reports["claims"].tables["Verdicts"]
        counts = Counter(str(row["verdict"]) for row in rows)
        words = ", ".join(f"{verdict} {count}" for verdict, count in counts.most_common())
        sentences.append(
            f"{counts.total()} verdicts on the paper's claims, one for each data set that a "
            f"claim is about: {words}."
        )
    if runs:
        unfinished = sum(not run.finished for run in runs)
        sentence = f"{len(runs)} training runs are at hand"
        if unfinished:
            sentence += f", {unfinished} of them not finished"
        sentences.append(f"{sentence}.")
    return sentences


def group_runs(
    runs: Sequence[Result],
) -> tuple[dict[str, dict[str, SchemeResults]], dict[str, Sequence[float]]]:
    """Group runs that differ in selector and seed alone.

    Returns:
        The schemes of each group, and its target accuracies, both by the label of the group.
    """
    groups: dict[str, dict[str, list[Result]]] = {}
    configs: dict[str, ComparisonConfig] = {}
    for run in runs:
        shared = replace(run.config, selectors=("random",), first_seed=0)
        group = identity(shared)
        configs.setdefault(group, shared)
        groups.setdefault(group, {}).setdefault(run.config.selectors[0], []).append(run)

    schemes: dict[str, dict[str, SchemeResults]] = {}
    targets: dict[str, Sequence[float]] = {}
    for group, by_selector in groups.items():
        label = _full_label(configs[group], list(configs.values()))
        targets[label] = configs[group].targets
        schemes[label] = {}
        for selector, selector_runs in by_selector.items():
            schemes[label][selector] = _scheme(selector_runs)
    return schemes, targets


def _full_label(config: ComparisonConfig, configs: Sequence[ComparisonConfig]) -> str:
    """Return the label of a group, and how it differs from others with the same label."""
    label = _short_label(config)
    namesakes = [other for other in configs if _short_label(other) == label]
    words = [label]
    for name, value in vars(config).items():
        if name == "selectors" or name in NON_IDENTITY_FIELDS:
            continue
        values = {str(getattr(other, name)) for other in namesakes}
        if len(values) > 1:
            words.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(words)


def _short_label(config: ComparisonConfig) -> str:
    group = group_label(config.partitions[0], config.aggregations[0], config.mus[0])
    label = f"{config.dataset}, k={config.cohort}, {group}, {config.sampler}"
    if config.server_rate != 1:
        label += f", server rate {config.server_rate:g}"
    return label


def _scheme(runs: list[Result]) -> SchemeResults:
    """Return the runs of one selector; rounds that were not played are nan."""
    runs = sorted(runs, key=lambda run: run.config.first_seed)
    rounds = max(run.config.rounds for run in runs)
    successes = np.stack([_padded(run.valid, rounds, np.float64) for run in runs])
    # Accuracies stay in float32: in float64, 0.45 would be below a target of 0.45.
    accuracy = np.stack([_padded(run.accuracy, rounds, np.float32) for run in runs])
    return SchemeResults(
        seeds=[run.config.first_seed for run in runs],
        asked=np.where(np.isnan(successes), np.nan, float(runs[0].config.cohort)),
        successes=successes,
        counts=np.stack([run.counts for run in runs]).astype(np.int64),
        accuracy=accuracy,
    )


def _padded(values: Any, rounds: int, kind: Any) -> Any:
    missing = np.full(rounds - len(values), np.nan, kind)
    return np.concatenate([values.astype(kind), missing])
