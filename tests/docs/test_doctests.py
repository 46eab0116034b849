"""Run the examples in the docstrings of every module of the package."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import fedcohort

EXTRAS = {"torch", "sklearn", "safetensors", "pyarrow", "flwr", "matplotlib", "triton"}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(fedcohort.__path__, "fedcohort.", onerror=print)
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["fedcohort", *MODULES])
def test_the_examples_of_a_module_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"needs {error.name}")

    failed, _ = doctest.testmod(module, optionflags=FLAGS)
    assert failed == 0
