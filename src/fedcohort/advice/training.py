"""Compare by training: the settings of an advice, trained on a data set."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedcohort.advice.advisor import Advice
from fedcohort.advice.settings import settings_text
from fedcohort.lab.comparison import run_comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.summary import comparison_rows


def train(
    advice: Advice,
    folder: Path,
    changes: dict[str, Any],
    data: Path | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Advice:
    """Return the advice with what its selectors learn.

    Args:
        advice: The advice.
        folder: Run folder of the comparison; a finished one with the same settings is only read.
        changes: Settings of the comparison that differ: dataset, model, selectors, rounds, seeds.
        data: Folder with data sets.
        on_progress: Called with a few words, the rounds done and the rounds in all.
    """
    settings = {**advice.settings, **changes}
    config = ComparisonConfig.from_dict(settings)
    comparison = run_comparison(config, folder, data=data, resume=True, on_progress=on_progress)
    rows = comparison_rows(config, comparison.records)
    return replace(
        advice,
        settings=settings,
        settings_toml=settings_text(settings, advice.used, advice.together, advice.cohort.enough),
        training=rows,
    )
