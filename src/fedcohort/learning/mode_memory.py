"""Remembers which mode trains a model faster on this machine.

Measuring takes a second, and two measurements may disagree. So a decision is kept as a small JSON
file, one for each machine and model, in `$FEDCOHORT_CACHE`, else in `fedcohort` below
`$XDG_CACHE_HOME` or `~/.cache`. `FEDCOHORT_CACHE=off` turns this off. A file that is missing,
damaged or not ours counts as no decision, and the next decision replaces it.
"""

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedcohort.files import read_json_table, write_json

FORMAT = 2  # counts up when the trainers change, so that they are measured anew
VARIABLE = "FEDCOHORT_CACHE"
OFF = "off"


def describe_training(module: nn.Module, **numbers: Any) -> dict[str, Any]:
    """Return what the faster mode depends on: machine, model and amount of work.

    Args:
        module: The model.
        numbers: Plain values that describe the work, by name.
    """
    return {
        "format": FORMAT,
        "machine": [platform.node(), platform.machine(), os.cpu_count()],
        "torch": torch.__version__,
        "model": hashlib.sha256(repr(module).encode()).hexdigest(),
        "parameters": [list(weight.shape) for weight in module.parameters()],
        **numbers,
    }


def recall_mode(training: Mapping[str, Any]) -> str | None:
    """Return the mode that was remembered for such a training, or None."""
    path = _path(training)
    if path is None:
        return None
    try:
        table = read_json_table(path, "the faster way to train")
    except ValueError:
        return None
    mode = table.get("mode")
    if table.get("training") != training or mode not in ("together", "one-by-one"):
        return None
    return str(mode)


def remember_mode(training: Mapping[str, Any], mode: str) -> None:
    """Keep a decision, if there is a folder that can be written to."""
    path = _path(training)
    if path is not None:
        with suppress(OSError):
            write_json(path, {"mode": mode, "training": dict(training)})


def _path(training: Mapping[str, Any]) -> Path | None:
    """Return the file of a decision, or None if nothing is to be remembered."""
    folder = _folder()
    if folder is None:
        return None
    content = json.dumps(training, sort_keys=True)
    return folder / f"mode-{hashlib.sha256(content.encode()).hexdigest()[:16]}.json"


def _folder() -> Path | None:
    chosen = os.environ.get(VARIABLE, "")
    if chosen == OFF:
        return None
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(caches):  # the standard says that other values are to be ignored
        return Path(caches) / "fedcohort"
    try:
        return Path.home() / ".cache" / "fedcohort"
    except RuntimeError:  # there is no home
        return None
