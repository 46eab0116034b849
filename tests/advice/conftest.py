"""The benchmark of the advice, whose worlds with known parameters the tests use too."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def truth():
    spec = importlib.util.spec_from_file_location(
        "advice_truth", ROOT / "benchmarks/advice_truth.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["advice_truth"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["advice_truth"]
