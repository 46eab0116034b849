"""`fedcohort list`: everything that has a name."""

from collections.abc import Collection
from typing import Annotated, Any

import typer
from rich.markup import escape

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.bench import BENCHES
from fedcohort.cli.console import console, print_json
from fedcohort.cli.study import STUDIES
from fedcohort.data import DATASETS, PARTITIONS
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.references import installed_names
from fedcohort.selection.registry import SELECTORS
from fedcohort.selection.sampling import SAMPLERS
from fedcohort.world.registry import WORLDS

KINDS = {  # of names that other packages may register, by title
    "selectors": "selector",
    "worlds": "world",
    "data sets": "dataset",
    "models": "model",
    "aggregations": "aggregation",
    "partitions": "partition",
}


def list_names(
    as_json: Annotated[bool, typer.Option("--json", help="Print the names as JSON.")] = False,
) -> None:
    """List everything that has a name.

    Selectors, samplers, worlds, data sets, partitions, models, aggregations, experiments,
    studies and benchmarks. Names that another installed package registers have its name in
    brackets.

    Example: fedcohort list --json
    """
    groups: dict[str, Collection[str]] = {
        "selectors": SELECTORS,
        "samplers": SAMPLERS,
        "worlds": WORLDS,
        "data sets": DATASETS,
        "partitions": PARTITIONS,
        "models": _model_names(),
        "aggregations": AGGREGATIONS,
        "experiments": ARTEFACTS,
        "studies": STUDIES,
        "benchmarks": BENCHES,
    }
    installed = {title: installed_names(kind) for title, kind in KINDS.items()}
    if as_json:
        listed: dict[str, Any] = {title: list(names) for title, names in groups.items()}
        if any(installed.values()):
            listed["installed"] = {title: names for title, names in installed.items() if names}
        print_json(listed)
        return
    for title, names in groups.items():
        words = [*names]
        for name, packages in installed.get(title, {}).items():
            words.append(f"{name} ({', '.join(packages)})")
        console.print(f"[bold]{title}[/bold]: {escape(', '.join(words))}")


def _model_names() -> Collection[str]:
    """Return the names of the models, or what to install for them."""
    try:
        # Imported here, not at the top: other commands must not load PyTorch.
        from fedcohort.learning.models import MODELS
    except ModuleNotFoundError:
        return ["pip install 'fedcohort[learning]'"]
    return MODELS
