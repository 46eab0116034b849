"""Versions and machine: results are equal to the bit where these are equal."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import fedcohort

PACKAGES = ("numpy", "torch", "safetensors", "scikit-learn", "flwr")
UNKNOWN = "-"


def describe_environment() -> dict[str, str]:
    """Return the versions of Python, the machine, fedcohort and the libraries it uses."""
    environment = {
        "python": platform.python_version(),
        "machine": platform.platform(),
        # The version that runs; the one that pip knows may be another, or none.
        "fedcohort": fedcohort.__version__,
    }
    for package in PACKAGES:
        try:
            environment[package] = version(package)
        except PackageNotFoundError:
            environment[package] = UNKNOWN
    environment["commit"] = git_commit(Path(__file__))
    return environment


def git_commit(file: Path) -> str:
    """Return the git commit that a file belongs to, "-" where git does not know the file.

    Args:
        file: A file in a repository.

    Returns:
        Twelve hexadecimal digits, followed by "+" if files in the same folder have changed since.
    """
    try:
        if _git(file.parent, "ls-files", "--error-unmatch", file.name).returncode:
            return UNKNOWN
        head = _git(file.parent, "rev-parse", "HEAD")
        has_changed = _git(file.parent, "diff", "--quiet", "HEAD", "--", ".").returncode != 0
    except OSError:
        return UNKNOWN
    if head.returncode:
        return UNKNOWN
    commit = head.stdout.strip()[:12]
    return f"{commit}+" if has_changed else commit


def _git(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    command = ["git", "-C", str(folder), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)
