"""An independent recomputation of the committed tables finds no mismatch."""

import ast
from pathlib import Path

import pytest
import recompute

RESULTS = Path(__file__).parents[2] / "results"
CIFAR = {"cohort": 20, "server_rate": 1.0, "sampler": "successive", "refill": True}
BEFORE = CIFAR | {"model": "cifar-cnn-pool3"}
DIGITS = {"rounds": 800, "sampler": "successive", "server_rate": 1.0}


def test_the_recomputation_shares_no_code_with_the_package():
    tree = ast.parse(Path(recompute.__file__).read_text())
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        if isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    assert modules == {"csv", "json", "math", "pathlib", "numpy", "pyarrow"}


@pytest.mark.parametrize(
    ("table", "dataset", "wanted", "worlds"),
    [
        ("cifar10/cifar-cnn-pool3-ceil/table3/table3.csv", "cifar10", CIFAR, True),
        ("cifar10/cifar-cnn-pool3/table3/table3.csv", "cifar10", BEFORE, True),
        (
            "cifar10/cifar-cnn-pool3-disjoint/table3/table3.csv",
            "cifar10",
            BEFORE | {"refill": False},
            True,
        ),
        ("cifar10/cifar-cnn-pool3/figure7/figure7.csv", "cifar10", BEFORE, False),
        ("cifar10/cifar-cnn-pool3/server_step/server_step.csv", "cifar10", BEFORE, False),
        (
            "digits/mlp/server_step/server_step.csv",
            "digits",
            DIGITS | {"cohort": 20, "mus": [0.0]},
            False,
        ),
        ("digits/mlp/table3/table3.csv", "digits", DIGITS | {"cohort": 20}, False),
        ("digits/mlp/figure7/figure7.csv", "digits", DIGITS | {"mus": [0.0]}, False),
        ("fashion-mnist/emnist-cnn/table2/table2.csv", "fashion-mnist", {}, False),
        ("nist-letters-mix/emnist-cnn/table2/table2.csv", "nist-letters-mix", {}, False),
    ],
)
def test_every_number_of_a_table_comes_out_of_the_records(table, dataset, wanted, worlds):
    runs = recompute.read_runs(RESULTS / f"runs-{dataset}.parquet")
    compared, mismatches = recompute.check_table(RESULTS / table, runs, wanted, worlds)
    assert mismatches == []
    assert compared >= 5 * 8


def test_pairs_of_one_scheme_that_are_equal_bit_by_bit_are_counted():
    runs = recompute.read_runs(RESULTS / "runs-cifar10.parquet")
    equal, pairs = recompute.equal_until(runs, last=624)
    assert f"-->{equal} of {pairs}<!--" in (RESULTS / "cost.md").read_text(encoding="utf-8")


def test_a_wrong_number_is_found(tmp_path):
    source = RESULTS / "fashion-mnist/emnist-cnn/table2/table2.csv"
    lines = source.read_text(encoding="utf-8").splitlines()
    cells = lines[1].split(",")
    place = lines[0].split(",").index("mean")
    cells[place] = str(float(cells[place]) + 1)
    lines[1] = ",".join(cells)
    changed = tmp_path / "table2.csv"
    changed.write_text("\n".join(lines), encoding="utf-8")
    runs = recompute.read_runs(RESULTS / "runs-fashion-mnist.parquet")
    assert len(recompute.check_table(changed, runs, {}, worlds=False)[1]) == 1
