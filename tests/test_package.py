import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest

import fedcohort

HEAVY = (
    "torch",
    "flwr",
    "matplotlib",
    "sklearn",
    "typer",
    "rich",
    "pandas",
    "mlflow",
    "tensorboardX",
    "wandb",
    "prometheus_client",
)


def loaded_by(code):
    """Return the top-level modules that a fresh interpreter holds after running this code."""
    script = f"import sys; {code}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_importing_the_package_loads_nothing_heavy():
    modules = loaded_by("import fedcohort")
    assert "fedcohort" in modules
    assert set(HEAVY).isdisjoint(modules)


def test_importing_the_command_line_loads_neither_a_learning_nor_a_drawing_library():
    modules = loaded_by("import fedcohort.cli")
    assert "typer" in modules
    assert {
        "torch",
        "flwr",
        "matplotlib",
        "sklearn",
        "pandas",
        "mlflow",
        "tensorboardX",
        "wandb",
    }.isdisjoint(modules)


@pytest.mark.parametrize("name", fedcohort.__all__)
def test_every_public_name_exists(name):
    assert getattr(fedcohort, name) is not None


@pytest.mark.parametrize("name", sorted(set(fedcohort.__all__) - {"SELECTORS"}))
def test_every_public_name_explains_its_arguments_and_shows_an_example(name):
    documentation = inspect.getdoc(getattr(fedcohort, name))
    assert "Args:" in documentation or "Attributes:" in documentation
    assert "Examples:" in documentation
    assert ">>> " in documentation


def test_no_public_name_is_listed_twice_and_a_star_import_gives_them_all():
    assert len(set(fedcohort.__all__)) == len(fedcohort.__all__)
    names = {}
    exec("from fedcohort import *", names)
    assert set(fedcohort.__all__) <= names.keys()


def test_the_version_is_that_of_the_installed_distribution():
    assert fedcohort.__version__ == version("fedcohort")


def test_the_types_are_shipped():
    from importlib.resources import files

    assert files("fedcohort").joinpath("py.typed").is_file()
