"""What all tests share: the mark of those that start a federation, and a package for a moment."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

DEPLOYMENT_FOLDERS = ("flower", "chaos")  # their slow tests start a SuperLink and its nodes


def pytest_configure(config):
    """Measure the faster mode of a model once for all tests, not once for each training.

    What this machine remembers about the user's trainings is neither used nor changed.
    """
    # Several processes run tests at once, so the threads of one operation would only wait for
    # each other. Our own threads are as many as ever: they are counted in another way.
    os.environ.setdefault("MKL_NUM_THREADS", "1")
    if not hasattr(config, "workerinput"):  # the process that starts the others
        folder = TemporaryDirectory(prefix="fedcohort-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["FEDCOHORT_CACHE"] = folder.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests with real processes and deadlines: they run alone, one after the other."""
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        if is_slow and item.path.parent.name in DEPLOYMENT_FOLDERS:
            item.add_marker(pytest.mark.deployment)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a package: a module, and its entry points by group."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    before = set(sys.modules)

    def write(package: str, module: str, source: str, groups: dict[str, dict[str, str]]) -> Path:
        path = site / f"{module}.py"
        path.write_text(source)
        about = site / f"{package.replace('-', '_')}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = []
        for group, names in groups.items():
            lines.append(f"[{group}]")
            lines += [f"{name} = {target}" for name, target in names.items()]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
        return path

    yield write
    for name in set(sys.modules) - before:
        if str(site) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
