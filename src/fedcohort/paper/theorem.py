"""Theorem 1: the regret of E3CS beside the paper's bound and the corrected one.

Regret is measured against the best fixed allocation and against a clairvoyant.
"""

from collections.abc import Mapping
from math import nan
from pathlib import Path
from typing import Any

from fedcohort.arrays import Floats
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import Simulation, simulation_config
from fedcohort.lab.simulation_arrays import Shapes
from fedcohort.lab.simulation_result import SimulationResult
from fedcohort.metrics import clairvoyant_value
from fedcohort.paper import regret
from fedcohort.paper.participation import describe_simulation
from fedcohort.paper.results import Results
from fedcohort.paper.setting import Overrides
from fedcohort.paper.simulations import SIMULATION_FIELDS, Schemes, SimulationSpec
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.curves import regret_and_bounds
from fedcohort.reports.report import Report
from fedcohort.statistics import estimate

CAPTION = (
    "Lines are mean regrets over seeds, bands one standard deviation, grey lines bounds. "
    "The last panel is a world that refutes Theorem 1 at sigma = 0."
)


def case_shapes(config: SimulationConfig) -> Shapes:
    """Return the rounds and clients of every case."""
    return {case.name: (case.fractions.size, case.num_clients) for case in regret.cases(config)}


SIMULATION = SimulationSpec(
    name="regret",
    config=SimulationConfig(selectors=("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc"), seeds=100),
    run=regret.play,
    shapes=case_shapes,
    fields=tuple(name for name in SIMULATION_FIELDS if name != "sampler"),  # it plays several
)


def report(results: Results, overrides: Overrides) -> Report:
    """Report regrets and bounds; an export has no curves, so it gives no figure."""
    notes = [CAPTION]
    figures: dict[str, Chart] = {}
    stored = results.simulation(SIMULATION)
    if stored is not None:
        config = stored.config
        folder = stored.folder
        rows = summarise(config, stored.results)
        figures["regret"] = regret_chart(config, stored.results)
    else:
        exported = results.exported_summary(SIMULATION)
        if not exported:
            return results.report_missing("regret")
        folder = _exported_folder(results)
        config = simulation_config(folder, exported["settings"])
        rows = [_with_nan(row) for row in exported["rows"]]
        notes.append("Its curves were not exported; `fedcohort reproduce regret` draws them.")
    difference = SIMULATION.describe_difference(config, overrides)
    if difference:
        return results.report_other("regret", folder, difference)
    title = f"regret: {describe_simulation(config)}"
    return Report("regret", title, {"Summary": rows}, notes, {"summary": rows}, figures)


def _exported_folder(results: Results) -> Path:
    """Return the folder that an exported summary was read from, for messages."""
    return (results.source or Path()) / SIMULATION.name


def summarise(config: SimulationConfig, schemes: Schemes) -> list[dict[str, Any]]:
    """Return one row per case: regret, bounds, and which theorem applies and holds."""
    return [_row(case, schemes[case.name]) for case in regret.cases(config)]


def _row(case: regret.Case, played: SimulationResult) -> dict[str, Any]:
    spare, floors = case.spare_and_floors
    final = regret.regret_so_far(case, played)[:, -1]
    ahead = clairvoyant_value(played.answering, spare, floors) - played.successes
    bound = float(regret.paper_bound_so_far(case)[-1])
    corrected = nan
    if case.is_covered:
        corrected = float(regret.corrected_bound_so_far(case)[-1])
    return {
        "case": f"{case.group}, {case.variant}",
        "eta": case.eta,
        "regret, best fixed": float(final.mean()),
        "standard error": estimate(final.tolist()).error,
        "regret, clairvoyant": float(ahead.sum(axis=-1).mean()),
        "paper's bound": bound,
        "corrected bound": corrected,
        "corrected theorem applies": case.is_covered,
        "within paper's bound": bool(final.mean() <= bound),
    }


def regret_chart(config: SimulationConfig, schemes: Schemes) -> Chart:
    """Show regret over rounds at the theorem's rate: one panel per floor, and the switch."""
    panels: dict[str, dict[str, Floats]] = {}
    bounds: dict[str, dict[str, Floats]] = {}
    for case in regret.cases(config):
        if case.eta == regret.PAPER_ETA:
            continue
        panel = panels.setdefault(case.group, {})
        panel[case.variant] = regret.regret_so_far(case, schemes[case.name])
        panel_bounds = bounds.setdefault(case.group, {})
        panel_bounds.setdefault("paper's bound", regret.paper_bound_so_far(case))
        if case.is_covered and case.update == "paper":
            panel_bounds.setdefault("corrected bound", regret.corrected_bound_so_far(case))
    return regret_and_bounds(panels, bounds)


def bound_margins(results: Results) -> Mapping[str, list[float]]:
    """Return the paper's bound less the regret in the end, one number per seed, by case."""
    stored = results.simulation(SIMULATION)
    if stored is not None:
        return margins_of(stored)
    return dict(results.exported_summary(SIMULATION).get("room", {}))


def margins_of(stored: Simulation) -> dict[str, list[float]]:
    """Return the same of a stored simulation."""
    margins = {}
    for case in regret.cases(stored.config):
        final = regret.regret_so_far(case, stored.results[case.name])[:, -1]
        margins[case.name] = (regret.paper_bound_so_far(case)[-1] - final).tolist()
    return margins


def export_summary(stored: Simulation) -> dict[str, Any]:
    """Return what is exported of the simulation in place of its long curves."""
    rows = [_with_none(row) for row in summarise(stored.config, stored.results)]
    return {"settings": dict(stored.settings), "rows": rows, "room": margins_of(stored)}


def _with_none(row: Mapping[str, Any]) -> dict[str, Any]:
    """Replace nan, which JSON does not have, by None."""
    plain = dict(row)
    for column, value in row.items():
        if isinstance(value, float) and value != value:
            plain[column] = None
    return plain


def _with_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    filled = dict(row)
    for column, value in row.items():
        if value is None:
            filled[column] = nan
    return filled
