"""What `fedcohort reproduce` is asked for: which artefacts, with which settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.checks import check_choice
from fedcohort.data import load
from fedcohort.lab.folder import (
    check_not_advice,
    check_out,
    has_comparison,
    has_flower_run,
    has_simulation,
)
from fedcohort.lab.named_parts import is_own_data
from fedcohort.lab.parts import identities
from fedcohort.lab.result import identity
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.results import Results
from fedcohort.paper.setting import (
    SUBSETS,
    Overrides,
    check_overrides,
    fields_for,
    has_papers_data,
)
from fedcohort.paper.simulations import check_simulation_overrides
from fedcohort.reports.words import listed

if TYPE_CHECKING:
    from fedcohort.lab.training import Training


def choose(names: Sequence[str]) -> list[str]:
    """Return the named artefacts, each once and in the order of ARTEFACTS; all for "all"."""
    for name in names:
        check_choice("name", name, [*ARTEFACTS, "all"])
    if "all" in names:
        return list(ARTEFACTS)
    return [name for name in ARTEFACTS if name in names]


def check_request(chosen: list[str], out: Path, overrides: dict[str, Any]) -> dict[str, Any]:
    """Refuse what cannot be done before anything is computed; return resolved overrides."""
    for name in chosen:
        spec = ARTEFACTS[name].simulation
        if spec is not None:
            spec.with_overrides(overrides)
    if all(ARTEFACTS[name].simulation is not None for name in chosen):
        check_simulation_overrides(chosen, overrides)

    trained = trained_artefacts(chosen)
    if trained and "device" in overrides:
        from fedcohort.learning.options import find_device  # Imported here: it needs PyTorch.

        overrides = overrides | {"device": str(find_device(overrides["device"]))}
    check_overrides(overrides, chosen)
    if trained and not any(training_configs(name, overrides) for name in trained):
        raise ValueError(
            f"selectors, partitions and mus must leave a run of {', '.join(trained)}, "
            f"got {_describe_subsets(overrides)}"
        )

    check_home(out)
    dataset = str(overrides.get("dataset", ""))
    if trained and is_own_data(dataset):
        load(dataset)  # A user's data that cannot be read is an error, not missing data.
    return overrides


def check_home(out: Path) -> None:
    """Refuse a folder whose page reports of a reproduction must not replace.

    Args:
        out: The folder; it need not exist.

    Raises:
        ValueError: If the path is a file, or the folder holds a run of something else, or advice.
    """
    check_out(out)
    if has_comparison(out) or has_simulation(out) or has_flower_run(out):
        raise ValueError(
            f"out must not hold a run of compare, simulate or Flower, got {out}; "
            "choose another with --out"
        )


def check_source(source: Path) -> None:
    """Refuse a path that holds no results to show: no folder, or advice.

    Args:
        source: Folder of a reproduction, or of exported results.

    Raises:
        ValueError: If it is none.
    """
    if not source.is_dir():
        reason = "which is a file" if source.exists() else "which does not exist"
        raise ValueError(f"from must be a folder of results, got {source}, {reason}")
    check_not_advice("from", source)


def check_losses_every(
    trained: Sequence[str], overrides: Overrides, out: Path, data: Path | None
) -> None:
    """Refuse a losses_every that runs in the folder were not begun with.

    Finished runs are only reported, and others go on with the records that they began with, so
    another value would change nothing.

    Args:
        trained: The artefacts that are trained.
        overrides: Fields of the config that the user changed.
        out: Folder of the runs; it need not exist.
        data: Folder with data sets.

    Raises:
        ValueError: If a run of these artefacts is there with another value.
    """
    if not trained or "losses_every" not in overrides:
        return
    from fedcohort.lab.training import Training  # Imported here: only training needs PyTorch.

    training = Training(out, data)
    suitable = with_suitable_fields(overrides, training)
    wanted = set()
    for name in trained:
        for config in training_configs(name, suitable):
            wanted |= identities(config)
    found = set()
    for run in training.results:
        if identity(run.config) in wanted:
            found.add(run.config.losses_every)

    asked = overrides["losses_every"]
    if found - {asked}:
        values = listed([str(value) for value in sorted(found)])
        raise ValueError(
            f"losses_every must be that of the runs in {out}, {values}, got {asked}; "
            "leave it out to go on with them, or choose another folder with --out"
        )


def check_trained(trained: Sequence[str], chosen: Sequence[str], name: str, value: object) -> None:
    """Refuse to share the seeds of artefacts that have none.

    Args:
        trained: The artefacts that are trained.
        chosen: All artefacts.
        name: The argument that shares the seeds, for the message.
        value: Its value.
    """
    if not trained:
        raise ValueError(
            f"{name} must not be given for {', '.join(chosen)} alone, which train nothing, "
            f"got {value}"
        )


def holds_results(results: Results) -> bool:
    """Return whether there is a training run, or a simulation of any artefact."""
    if results.runs:
        return True
    for artefact in ARTEFACTS.values():
        spec = artefact.simulation
        if spec is None or results.source is None:
            continue
        if spec.find(results.source, artefact.name) or results.exported_summary(spec):
            return True
    return False


def _describe_subsets(overrides: Overrides) -> str:
    words = []
    for name in SUBSETS:
        if name in overrides:
            words.append(f"{name} {', '.join(map(str, overrides[name]))}")
    return "; ".join(words)


def trained_artefacts(names: Sequence[str]) -> list[str]:
    """Return the artefacts that need training."""
    return [name for name in names if ARTEFACTS[name].training is not None]


def training_configs(name: str, overrides: Overrides) -> list[Any]:
    """Return what an artefact trains; nothing for one that is simulated."""
    training = ARTEFACTS[name].training
    if training is None:
        return []
    return training(overrides)


def with_suitable_fields(overrides: Overrides, training: "Training") -> dict[str, Any]:
    """Add a model and a size that suit a data set other than the paper's."""
    if has_papers_data(overrides):
        return dict(overrides)
    dataset = training.dataset(overrides["dataset"])
    if dataset is None:
        return dict(overrides)
    return fields_for(dataset, overrides.get("clients", 100)) | dict(overrides)
