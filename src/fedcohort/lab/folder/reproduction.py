"""The folder of a reproduction: its request, its parts, and exported results."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedcohort.files import write_json
from fedcohort.lab.folder.comparison import COMPARISON_SETTINGS, has_comparison
from fedcohort.lab.folder.shared import read_if_there

REQUEST = "reproduce.json"
PARTS = "runs"
PART_NAME = re.compile(r"-T\d+-[0-9a-f]{8}$")  # how the name of a part's folder ends
EXPORTED = "exported.json"
RESULTS_SUFFIXES = (".parquet", ".npz")


def has_reproduction(folder: Path, artefacts: Collection[str] = ()) -> bool:
    """Return whether a folder holds something that was reproduced."""
    if (folder / REQUEST).exists() or any(map(_is_exported, folder.glob(f"{PARTS}-*"))):
        return True
    if any((folder / name).is_dir() for name in artefacts):
        return True
    # A folder `runs` alone says nothing: every command writes to one by default.
    return any(PART_NAME.search(path.name) for path in (folder / PARTS).glob("*"))


def write_request(folder: Path, request: Mapping[str, Any]) -> None:
    """Write what a reproduction was asked for, so that its page can be drawn again."""
    write_json(folder / REQUEST, request)


def read_request(folder: Path) -> dict[str, Any]:
    """Return what a reproduction was asked for, nothing if that is not known."""
    request = read_if_there(folder / REQUEST, "the request of a reproduction")
    if request and not isinstance(request.get("names"), list):
        raise ValueError(
            f"{folder / REQUEST} must name what was reproduced, got {', '.join(request)}"
        )
    return request


def parts_folder(folder: Path) -> Path:
    """Return the folder in which a reproduction keeps its comparisons."""
    return folder / PARTS


def find_results(folder: Path) -> Iterator[Path]:
    """Yield comparison folders and results files at any depth, in order of their paths."""
    for path in sorted(folder.rglob("*")):
        if path.name == COMPARISON_SETTINGS and has_comparison(path.parent):
            yield path.parent
        elif path.suffix in RESULTS_SUFFIXES and path.name.startswith(PARTS):
            yield path


def results_path(folder: Path, dataset: str, suffix: str) -> Path:
    """Return the path of the compact results of all runs on one data set."""
    return folder / f"{PARTS}-{dataset}{suffix}"


def _is_exported(path: Path) -> bool:
    """Return whether a path whose name begins like that of results is a file of results."""
    return path.suffix in RESULTS_SUFFIXES and path.is_file()


def write_exported(folder: Path, exported: Mapping[str, Any]) -> None:
    """Write what is kept of a simulation whose curves are too long to export."""
    write_json(folder / EXPORTED, exported, indent=None)


def read_exported(folder: Path) -> dict[str, Any]:
    """Return what `write_exported` kept of a simulation, nothing if there is nothing."""
    path = folder / EXPORTED
    exported = read_if_there(path, "exported by fedcohort")
    if not exported:
        return {}
    for name, kind in {"settings": dict, "rows": list, "room": dict}.items():
        if not isinstance(exported.get(name), kind):
            raise ValueError(
                f"{path} must hold tables settings and room and a list rows, "
                f"got {', '.join(exported)}"
            )
    if not all(isinstance(row, dict) for row in exported["rows"]):
        raise ValueError(f"{path} must hold rows that are tables, got others")
    return exported
