"""Files that a run was begun with, sources and recorded worlds: are they still the same?"""

from collections.abc import Mapping
from pathlib import Path

from fedcohort.files import digest_file
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import Config
from fedcohort.lab.named_parts import find_references
from fedcohort.references import is_file, resolve, source_digest


def source_digests(config: Config) -> dict[str, str]:
    """Return the digest of each source that a configuration refers to, by reference.

    Args:
        config: The configuration. Registered names have no digest.

    Raises:
        ValueError: If a source is not there.
    """
    return {name: source_digest(kind, name) for name, kind in find_references(config).items()}


def check_sources(folder: Path, digests: Mapping[str, str]) -> None:
    """Refuse sources other than those that a run was begun with.

    Args:
        folder: The run folder.
        digests: The digest of each source now, by reference.

    Raises:
        ValueError: If a source has changed.
    """
    for name, digest in run_folder.read_sources(folder).items():
        if digests.get(name, digest) != digest:
            raise ValueError(
                f"{name} must be what the run in {folder} was begun with, got a changed source; "
                "choose another folder"
            )


def check_present_sources(folder: Path, config: Config) -> None:
    """Refuse files that have changed since a run was finished; it needs none of them.

    Args:
        folder: The run folder.
        config: Its configuration. Files that are gone and modules are not looked at.

    Raises:
        ValueError: If a file has changed.
    """
    digests = {}
    for name, kind in find_references(config).items():
        if is_file(name) and Path(name.rpartition(":")[0]).is_file():
            digests[name] = source_digest(kind, name)
    check_sources(folder, digests)


def digest_world(config: Config) -> str | None:
    """Return the digest of the recorded world that a configuration plays, None if none."""
    if config.world_file is None:
        return None
    return digest_file(Path(config.world_file))


def check_present_world(folder: Path, config: Config) -> None:
    """Refuse a recorded world that has changed since a run was begun.

    Args:
        folder: The run folder. Runs of older versions may not know the digest of their world.
        config: Its configuration. A file that is gone is not looked at.

    Raises:
        ValueError: If the file has changed.
    """
    if config.world_file is not None and Path(config.world_file).is_file():
        run_folder.check_world_digest(folder, digest_file(Path(config.world_file)))


def import_sources(config: Config, folder: Path | None) -> None:
    """Import all sources, so that a mistake is known before any data are loaded.

    Args:
        config: The configuration.
        folder: The folder of the run that goes on, None if a run begins. A source that has
            changed since then is not imported.

    Raises:
        ValueError: If a source has changed or cannot be imported.
    """
    if folder is not None:
        check_sources(folder, source_digests(config))
    for name, kind in find_references(config).items():
        resolve(kind, name, {})
