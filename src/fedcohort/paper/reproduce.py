"""Everything behind `fedcohort reproduce`, without a terminal: train what is missing, then report what there is.

Parts of the training lie under `runs` in the folder `out`, the reports of each artefact in a folder of its name. The same call
goes on where an earlier one stopped; a finished artefact is only reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from fedcohort.checks import check_choice, check_positive
from fedcohort.data import load
from fedcohort.files import check_folder
from fedcohort.lab.archive import Result, gather_results, save
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.folder import has_comparison, has_simulation
from fedcohort.lab.simulation import Progress
from fedcohort.paper import simulated
from fedcohort.paper.artefact import Changes, Pool
from fedcohort.paper.cells import FITTED, Quantity, values
from fedcohort.paper.claims import verdicts as claims
from fedcohort.paper.claims.evidence import BySeed, Evidence
from fedcohort.paper.registry import EXPERIMENTS, NAMES, artefacts
from fedcohort.paper.setting import COHORTS, SUBSETS, TASKS, check_changes, fitted, whole_setting
from fedcohort.paper.tabulate import heading
from fedcohort.reports.report import Report
from fedcohort.reports.report import write as write
from fedcohort.world.classes import class_of


@dataclass(frozen=True, eq=False)
class Done:
    """What a call came to: reports by name, under which changes, which data could not be had and why, where the time was up."""

    reports: Mapping[str, Report]
    changes: Changes
    absent: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""


def run(
    names: Sequence[str],
    out: Path,
    *,
    data: Path | None = None,
    minutes: float | None = None,
    overwrite: bool = False,
    told: Progress | None = None,
    **changes: Any,
) -> Done:
    """Simulate and train what the named artefacts lack, within so many minutes, and return their reports.

    changes: settings of `Comparison`; `selectors`, `partitions` and `mus` ask for a subset of an artefact's runs.
    """
    chosen = chosen_of(names)
    wanted = [name for name in chosen if name in artefacts()]
    experiments = {name: simulated.changed(name, changes) for name in chosen if name in EXPERIMENTS}
    if set(chosen) <= set(EXPERIMENTS):
        simulated.check_concerned(chosen, changes)
    until = inf if minutes is None else monotonic() + 60 * check_positive("time_budget", minutes)
    if wanted and "device" in changes:
        from fedcohort.learning.options import find_device  # PyTorch is loaded by who trains

        changes["device"] = str(find_device(changes["device"]))
    check_changes(changes, chosen)
    if wanted and not any(artefacts()[name].settings(changes) for name in wanted):
        subset = "; ".join(
            f"{name} {', '.join(map(str, changes[name]))}" for name in SUBSETS if name in changes
        )
        raise ValueError(
            f"selectors, partitions and mus must leave a run of {', '.join(wanted)}, got {subset}"
        )
    check_folder("out", out)
    if has_comparison(out) or has_simulation(out):
        raise ValueError(
            f"out must not hold a run of compare or simulate, got {out}; choose another"
        )
    if wanted and str(changes.get("dataset", "")).endswith(".npz"):
        load(
            changes["dataset"]
        )  # a file of one's own that cannot be read is a mistake, not data that are still to come
    for name, experiment in experiments.items():
        simulated.played(name, experiment, out / name, overwrite, told)
    if not wanted:
        return Done(reports(chosen, out, changes), changes)
    from fedcohort.lab.training import Training

    training = Training(out, data, until, told)
    changes = {"precision": "float32"} | _fitted(
        changes, training
    )  # what is shown is what was asked for
    for name in wanted:
        training.complete(artefacts()[name].settings(changes))
    return Done(reports(chosen, out, changes), changes, training.absent, training.stopped)


def shown(names: Sequence[str], source: Path, **changes: Any) -> Done:
    """Return the reports of the results in a folder, run folders or results files; nothing is trained."""
    chosen = chosen_of(names)
    check_changes({name: value for name, value in changes.items() if name != "precision"}, chosen)
    if not source.is_dir():
        raise ValueError(f"from must be a folder of results, got {source}")
    return Done(reports(chosen, source, changes), changes)


def chosen_of(names: Sequence[str]) -> list[str]:
    """Return the artefacts that are named, each once, in the order of the list of all; all for "all"."""
    wanted = [check_choice("name", name, [*NAMES, "all"]) for name in names]
    return [name for name in NAMES if name in wanted or "all" in wanted]


def _fitted(changes: Changes, training: Any) -> dict[str, Any]:
    """Return the changes with a model and a size that suit a data set that is not the paper's for this task."""
    if "dataset" not in changes or (data := training.dataset(changes["dataset"])) is None:
        return dict(changes)
    own = TASKS.get(changes["dataset"])
    suits = {"model": own["model"]} if own else fitted(data, changes.get("clients", 100))
    return {**suits, **changes}


def reports(names: Sequence[str], source: Path, changes: Changes) -> dict[str, Report]:
    """Return the reports of what lies in a folder; of simulations, those that it holds."""
    changes = dict(changes)
    if changes.get("precision", "float32") != "float32":
        changes.setdefault("device", "cuda")  # read, not used: results of a GPU are shown anywhere
    asked = (
        {"model", "samples_per_client"} if "dataset" not in changes else set()
    )  # the paper's, on the paper's data
    pool = Pool(gather_results(source), asked | (set(FITTED) & changes.keys()))
    made: dict[str, Report] = {}
    for name in chosen_of(names):
        if name in EXPERIMENTS:
            made[name] = simulated.report_in(source / name, partial(powd, pool, changes))
        elif name == "claims":
            made[name] = claims.report(evidence(source, pool, changes))
        else:
            made[name] = artefacts()[name].report(changes, pool)
    return made


def powd(pool: Pool, changes: Changes, like: SimulationConfig) -> dict[int, Result]:
    """Return the finished training runs of pow-d that figures 3 and 4 can show, by seed: non-iid, FedAvg, as many clients."""
    own = {"rounds": like.rounds, "clients": like.clients, "cohort": like.cohort}
    (found,), _ = pool.cells(whole_setting("cifar10", changes, **own))
    return {
        run.config.first_seed: run
        for run in found["pow-d", "primary-label", "paper", 0.0]
        if run.finished
    }


def evidence(source: Path, pool: Pool, changes: Changes) -> Evidence:
    """Return what the claims are judged by: trained runs, and simulations where a folder holds them."""
    asked = {
        (task, cohort): whole_setting(task, changes, cohort=cohort)
        for task in TASKS
        for cohort in COHORTS
    }
    tables, others = pool.cells(*asked.values())
    found = dict(zip(asked, tables, strict=True))
    tasks = {task: of for (task, _), of in asked.items()}
    played, datasets = (
        {task: getattr(of, name) for task, of in tasks.items()} for name in ("rounds", "dataset")
    )
    labels = {
        task: f"{of.dataset}, T={of.rounds}, {heading(of.targets[0])}"
        for task, of in tasks.items()
        if (of.dataset, of.rounds) != (task, TASKS[task]["rounds"])
    }

    def trained(
        task: str, selector: str, partition: str, mu: float, cohort: int, quantity: Quantity
    ) -> BySeed:
        return values(found[task, cohort][selector, partition, "paper", mu], quantity)

    more: dict[str, Any] = {"datasets": datasets, "labels": labels, "left_out": others}
    for name in [name for name in ("figure3", "figure4") if has_simulation(source / name)][:1]:
        kept, results = simulated.stored(source / name)
        if kept.rounds != EXPERIMENTS[name].setting.rounds:
            labels["selection"] = f"selection, T={kept.rounds}"
        more["asked"] = simulated.asked(kept, results, powd(pool, changes, kept))
        more["classes"], more["cohort"] = (
            class_of(kept.clients, len(kept.rates)),
            kept.cohort,
        )
    more["regret"] = simulated.room(source / "regret")
    return Evidence(trained, played, **more)


def check_export(to: Path) -> None:
    """Refuse a folder that results cannot be added to, before anything is computed for it."""
    check_folder("export", to)
    gather_results(to)


def export(out: Path, to: Path, ending: str = ".parquet") -> list[Path]:
    """Write all results under `out` as one small file per data set; what `to` held of other runs stays. Return the paths.

    ending: .parquet, or .npz where there is no pyarrow; both are read by `reports`.
    """
    check_choice("ending", ending, (".parquet", ".npz"))
    if not out.is_dir():
        raise ValueError(f"out must be a folder of results, got {out}")
    check_folder("export", to)
    by_set: dict[str, list[Result]] = {}
    for result in gather_results(out, to):
        by_set.setdefault(Path(result.config.dataset).stem, []).append(result)
    if out != to:
        simulated.export(out, to)
    paths = []
    for name, results in sorted(by_set.items()):
        paths.append(to / f"runs-{name}{ending}")
        save(paths[-1], results)
    return paths
