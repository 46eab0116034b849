"""`fedcohort list`: everything that has a name."""

from collections.abc import Collection
from typing import Annotated

import typer
from rich.markup import escape

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.bench import BENCHES
from fedcohort.cli.console import console, print_json
from fedcohort.data import DATASETS, PARTITIONS
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.selection.registry import SELECTORS
from fedcohort.selection.sampling import SAMPLERS
from fedcohort.world.registry import WORLDS


def list_names(
    as_json: Annotated[bool, typer.Option("--json", help="Print the names as JSON.")] = False,
) -> None:
    """List everything that has a name.

    Selectors, samplers, worlds, data sets, partitions, models, aggregations, experiments and
    benchmarks.

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
        "benchmarks": BENCHES,
    }
    if as_json:
        print_json({title: list(names) for title, names in groups.items()})
        return
    for title, names in groups.items():
        console.print(f"[bold]{title}[/bold]: {escape(', '.join(names))}")


def _model_names() -> Collection[str]:
    """Return the names of the models, or what to install for them."""
    try:
        # Imported here, not at the top: other commands must not load PyTorch.
        from fedcohort.learning.models import MODELS
    except ModuleNotFoundError:
        return ["pip install 'fedcohort[learning]'"]
    return MODELS
