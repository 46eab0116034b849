"""Run folders of each kind: a file changed, exchanged, replaced or removed."""

import contextlib
import io
import os
import random
import shutil
from pathlib import Path
from typing import Any

from command_line import run, without_drawings
from folder_readers import read_folder
from fuzz_cases import Play, SilentAcceptance, Surface, require_name
from mutations import change_file

FOLDERS = Path(__file__).parents[1] / "compatibility" / "folders"
OLD_KINDS = ("compare", "compare-unfinished", "simulate", "reproduce", "export", "flower")
TINY = (
    "--selectors", "random,e3cs-0.5", "--clients", "6", "--cohort", "2", "--seeds", "1",
)  # fmt: skip
NEW_KINDS = {
    "compare": (
        "compare", *TINY, "--partitions", "iid", "--aggregations", "paper", "--rounds", "4",
        "--checkpoint-every", "2", "--epochs", "1", "--mode", "together", "--slots", "2",
    ),
    "simulate": ("simulate", *TINY, "--rounds", "6"),
    "reproduce": (
        "reproduce", "figure3", "table3", "--dataset", "digits", "--rounds", "2", "--seeds", "1",
        "--selectors", "random,fedcs", "--partitions", "iid", "--mus", "0",
    ),
}  # fmt: skip
NOT_READ = (".md", ".csv", ".tex", ".html", ".svg", ".png")


def prepare_old(scratch: Path) -> Play:
    """Folders of version 0.1.0, which have no checksums."""
    return play_on({name: FOLDERS / name for name in OLD_KINDS}, scratch)


def prepare_new(scratch: Path) -> Play:
    """Folders that the program writes now."""
    sources = {}
    with without_drawings():
        for name, command in NEW_KINDS.items():
            sources[name] = scratch / "sources" / name
            run([*command, "--out", str(sources[name])])
    return play_on(sources, scratch)


def play_on(sources: dict[str, Path], scratch: Path) -> Play:
    """Return a function that changes one file of one of the folders and reads the folder."""
    folder = scratch / "changed"
    expected = {}
    for name, source in sources.items():
        copy_to(source, folder)
        expected[name] = read_quietly(folder)

    def play(rng: random.Random) -> None:
        name = rng.choice(list(sources))
        copy_to(sources[name], folder)
        changed, is_removed = damage(rng, folder)
        try:
            found = read_quietly(folder)
        except ValueError as error:
            require_name(error, folder, changed)
            raise
        # Without a file a folder may hold less; with another content it must not hold other things.
        if not is_removed and found != expected[name]:
            raise SilentAcceptance(f"{name}: {changed} was changed and accepted")

    return play


def copy_to(source: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)


def damage(rng: random.Random, folder: Path) -> tuple[str, bool]:
    """Damage one file of a folder; return its name, and whether it is gone as a file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [path for path in files if path.suffix not in NOT_READ]
    path = rng.choice(files)
    how = rng.random()
    if how < 0.8:
        path.write_bytes(change_file(rng, path.name, path.read_bytes()))
    elif how < 0.88:
        # Two whole chunks of records that changed places fit each other's place.
        others = [one for one in files if one.parent != path.parent or one.stem.isalpha()]
        other = rng.choice(others)
        content = path.read_bytes()
        path.write_bytes(other.read_bytes())
        other.write_bytes(content)
    else:
        path.unlink()
        replace(rng, path)
        return path.name, True
    return path.name, False


def replace(rng: random.Random, path: Path) -> None:
    """Put something that is no file, or nothing, in the place of a file."""
    how = rng.randrange(5)
    if how == 0:
        path.mkdir()
    elif how == 1:
        os.mkfifo(path)
    elif how == 2:
        path.symlink_to("/dev/zero")
    elif how == 3:
        path.symlink_to(path.name)


def read_quietly(folder: Path) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return read_folder(folder)


SURFACES = (
    Surface("folders", prepare_new, 20),
    Surface("old folders", prepare_old, 10, sealed=False),
)
