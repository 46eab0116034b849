"""What is shipped: a wheel and an sdist, installed into environments of their own.

The core is part of `make test`. Environments with an extra take longer, because PyTorch and Flower
are large: `make test-packaging`.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import fedcohort

pytest.importorskip("build", reason="packaging needs pip install 'fedcohort[dev]'")
pytest.importorskip("hatchling", reason="packaging needs pip install 'fedcohort[dev]'")
ROOT = Path(__file__).parents[2]
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
}


def run(*words, cwd, code=0):
    """Run a command and return what it said; another exit code than expected shows it."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, (
        f"{words} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    """Build the sdist, and the wheel from the sdist, so that both hold the same files."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return out


@pytest.fixture(scope="session")
def wheel(dist):
    (path,) = dist.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def install(wheel, tmp_path_factory):
    """Return a function that installs the wheel in a new environment and returns its programs."""

    def make(extra="", pinned=True):
        home = tmp_path_factory.mktemp(extra or "core")
        run(sys.executable, "-m", "venv", home, cwd=home)
        what = f"{wheel}[{extra}]" if extra else wheel
        pins = ("-c", ROOT / "constraints.txt") if pinned else ()
        run(
            home / "bin/python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *pins,
            what,
            cwd=home,
        )
        return home / "bin"

    return make


@pytest.fixture(scope="session")
def core(install):
    return install(pinned=False)  # as a user gets it, with the newest of the few packages it needs


def files_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.mark.slow
def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel):
    names = files_of(wheel)
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src/fedcohort").rglob("*")
        if path.is_file()
    }
    package = {name for name in package if "__pycache__" not in name}
    assert {
        name for name in names if not re.match(r"fedcohort-[\w.+]+\.dist-info/", name)
    } == package
    assert "fedcohort/py.typed" in names
    assert not any("alternate" in name for name in names)  # the app of benchmarks/flower
    assert {f"fedcohort/paper/tables/{name}.csv" for name in ("cifar10", "emnist-letters")} <= set(
        names
    )
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert not any("test" in name for name in names)


@pytest.mark.slow
def test_the_metadata_say_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
        text = archive.read(name).decode()
    assert f"\nVersion: {fedcohort.__version__}\n" in text
    assert "\nLicense-Expression: Apache-2.0\n" in text
    needed = {
        re.split(r"[<>=\[ ;]", line)[0]
        for line in re.findall(r"^Requires-Dist: (.*)$", text, re.M)
        if "extra ==" not in line
    }
    assert needed == {"numpy", "typer", "rich"}


@pytest.mark.slow
def test_the_sdist_holds_source_tests_and_documentation(dist):
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "src/fedcohort/py.typed",
        "tests/test_package.py",
        "docs/index.md",
        "mkdocs.yml",
        "LICENSE",
        "Makefile",
    } <= names
    assert not any(name.startswith((".venv", "site/", "runs/")) for name in names)


@pytest.mark.slow
def test_the_core_alone_imports_and_simulates(core, tmp_path):
    code = (
        "import fedcohort, sys; assert 'torch' not in sys.modules;"
        "print(fedcohort.__version__, fedcohort.__file__)"
    )
    version, file = run(core / "python", "-c", code, cwd=tmp_path).split()
    assert version == fedcohort.__version__
    assert str(core.parent) in file
    small = ("--rounds", "20", "--seeds", "2", "--clients", "12", "--cohort", "3")
    out = run(core / "fedcohort", "simulate", *small, cwd=tmp_path)
    assert "e3cs-0.5" in out
    assert "pip install 'fedcohort[plots]'" in out
    assert (tmp_path / "runs/simulate/summary.csv").exists()


@pytest.mark.slow
def test_the_core_alone_says_which_extra_is_missing(core, tmp_path):
    error = run(core / "fedcohort", "compare", cwd=tmp_path, code=2).strip()
    assert error.startswith("error: ")
    assert error.endswith("pip install 'fedcohort[learning]'")
    assert "\n" not in error
    assert "pip install 'fedcohort[learning]'" in run(core / "fedcohort", "list", cwd=tmp_path)
    assert "pip install 'fedcohort[flower]'" in run(
        core / "python", "-c", "import fedcohort.flower", cwd=tmp_path, code=1
    )


@pytest.mark.slow
def test_the_core_alone_is_typed(core, tmp_path):
    code = (
        "from importlib.resources import files;"
        "print(files('fedcohort').joinpath('py.typed').is_file())"
    )
    assert run(core / "python", "-c", code, cwd=tmp_path).strip() == "True"


@pytest.mark.packaging
def test_with_learning_a_comparison_trains(install, tmp_path):
    programs = install("learning")
    small = (
        "--rounds",
        "3",
        "--seeds",
        "1",
        "--selectors",
        "random,e3cs-0.5",
        "--partitions",
        "iid",
    )
    assert "pip install 'fedcohort[plots]'" in run(
        programs / "fedcohort", "compare", *small, cwd=tmp_path
    )
    assert (tmp_path / "runs/compare/checkpoint.safetensors").exists()


@pytest.mark.packaging
def test_with_plots_a_simulation_draws(install, tmp_path):
    run(install("plots") / "fedcohort", "simulate", "--rounds", "20", "--seeds", "2", cwd=tmp_path)
    assert (tmp_path / "runs/simulate/figure4.svg").exists()


@pytest.mark.packaging
def test_with_flower_a_strategy_and_an_app_are_made(install, tmp_path):
    code = (
        "from flwr.serverapp.strategy import FedAvg;"
        "from fedcohort.flower import CohortStrategy, client_app;"
        "client_app();"
        "strategy = CohortStrategy(FedAvg(), 'e3cs-0.5', cohort_size=3, deadline=9.0, folder='a');"
        "print(strategy.options.deadline)"
    )
    programs = install("flower")
    assert "9.0" in run(programs / "python", "-c", code, cwd=tmp_path)
    assert "e3cs-0.5" in run(programs / "fedcohort", "list", cwd=tmp_path)


@pytest.mark.packaging
def test_with_tracking_scalars_are_written(install, tmp_path):
    code = (
        "import fedcohort; from tensorboardX import SummaryWriter;"
        "SummaryWriter('log').add_scalar('a', 1.0, 1)"
    )
    programs = install("tracking")
    run(programs / "python", "-c", code, cwd=tmp_path)
    assert list((tmp_path / "log").glob("events*"))
    assert "selectors" in run(programs / "fedcohort", "list", cwd=tmp_path)


@pytest.mark.packaging
def test_with_docs_the_site_can_be_built(install, tmp_path):
    env = {**CLEAN, "NO_MKDOCS_2_WARNING": "1"}
    words = [
        install("docs") / "python",
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        tmp_path / "site",
    ]
    subprocess.run(words, cwd=ROOT, env=env, check=True)
    assert (tmp_path / "site/index.html").exists()


def test_a_source_tree_knows_its_own_version_whatever_is_installed(tmp_path):
    """As on a machine where only PYTHONPATH points to it."""
    shutil.copytree(ROOT / "src/fedcohort", tmp_path / "fedcohort")
    init = tmp_path / "fedcohort/__init__.py"
    init.write_text(init.read_text().replace(f'"{fedcohort.__version__}"', '"9.8.7"'))
    assert (
        run(
            sys.executable, "-c", "import fedcohort; print(fedcohort.__version__)", cwd=tmp_path
        ).strip()
        == "9.8.7"
    )


def test_a_tag_on_this_commit_says_the_version_of_the_source():
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: there are no tags")
    words = ["git", "tag", "--points-at", "HEAD", "--list", "v[0-9]*"]
    tags = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(tags) <= {f"v{fedcohort.__version__}"}


def test_the_version_is_one_that_can_be_released():
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc|\.dev)\d+)?", fedcohort.__version__)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in changes or f"## [{fedcohort.__version__}]" in changes
