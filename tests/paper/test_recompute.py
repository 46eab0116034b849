"""An independent recomputation of the committed tables and claims finds no mismatch."""

import ast
import csv
import re
from pathlib import Path

import pytest
import recompute
import recompute_claims
import recompute_fit
import recompute_regret
import recompute_selection
import recompute_selection_claims

RESULTS = Path(__file__).parents[2] / "results"
CIFAR = {"cohort": 20, "server_rate": 1.0, "sampler": "successive", "refill": True}
BEFORE = CIFAR | {"model": "cifar-cnn-pool3"}
DIGITS = {"rounds": 800, "sampler": "successive", "server_rate": 1.0, "candidates": None}
PLAIN = {"csv", "functools", "itertools", "json", "math", "re", "pathlib", "numpy", "pyarrow"}
RECOMPUTATIONS = (
    recompute, recompute_claims, recompute_fit, recompute_regret, recompute_selection,
    recompute_selection_claims,
)  # fmt: skip
TABLE_3 = (0.45, 0.55, 0.65)  # target accuracies
ANY_CIFAR = {"rounds": 2500, "server_rate": 1.0, "sampler": "successive", "refill": True}
# What the claims are about, as their files call it; its runs, and the targets.
CLAIMS = {
    "cifar10/cifar-cnn-pool3-ceil": (
        "cifar10", "cifar10", ANY_CIFAR | {"model": "cifar-cnn-pool3-ceil"}, TABLE_3,
    ),
    "cifar10/cifar-cnn": ("cifar10", "cifar10", ANY_CIFAR | {"model": "cifar-cnn"}, TABLE_3),
    "cifar10/cifar-cnn-pool3": (
        "cifar10", "cifar10", ANY_CIFAR | {"model": "cifar-cnn-pool3"}, TABLE_3,
    ),
    "digits/mlp": ("digits", "digits, T=800, @45", DIGITS | {"refill": True}, TABLE_3),
    "nist-letters-mix/emnist-cnn": (
        "nist-letters-mix", "nist-letters-mix, T=400, @65", {"rounds": 400}, (0.65, 0.75, 0.85),
    ),
}  # fmt: skip


@pytest.mark.parametrize("module", RECOMPUTATIONS)
def test_the_recomputation_shares_no_code_with_the_package(module):
    tree = ast.parse(Path(module.__file__).read_text())
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        if isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    assert modules <= PLAIN | {module.__name__ for module in RECOMPUTATIONS}


def claims_again(name, path):
    """Return how many comparisons of a folder of claims were compared, and the mismatches."""
    dataset, on, wanted, targets = CLAIMS[name]
    runs = recompute.read_runs(RESULTS / f"runs-{dataset}.parquet")
    records = recompute_claims.Records(runs, wanted, targets)
    return recompute_claims.check_claims(path, on, records)


@pytest.mark.parametrize("name", CLAIMS)
def test_every_comparison_of_two_schemes_comes_out_of_the_records(name):
    compared, mismatches = claims_again(name, RESULTS / name / "claims/claims.csv")
    assert mismatches == []
    assert compared == 564


@pytest.mark.parametrize(
    ("column", "value"), [("support", "0.5"), ("corrected p", "0.04"), ("verdict", "fails")]
)
def test_a_wrong_comparison_is_found(column, value, tmp_path):
    name = "cifar10/cifar-cnn-pool3-ceil"
    lines = (RESULTS / name / "claims/claims.csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(lines))
    row = next(row for row in rows if row["claim"] == "FedCS lowest" and row["verdict"] == "holds")
    row[column] = value
    with (tmp_path / "claims.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    _, mismatches = claims_again(name, tmp_path / "claims.csv")
    assert len(mismatches) == 1


def fit_again(report):
    """Return how many rows of the fit were compared, and the mismatches."""
    folder = RESULTS / "cifar10/cifar-cnn-pool3-ceil/table3"
    runs = recompute.read_runs(RESULTS / "runs-cifar10.parquet")
    fit = recompute_fit.Fit(runs, recompute_fit.read_paper(folder / "table3.csv"))
    return recompute_fit.check_fit(report or folder / "table3.md", fit)


def test_the_fit_to_the_paper_comes_out_of_the_records():
    compared, mismatches = fit_again(None)
    assert mismatches == []
    assert compared >= 16 + 5


def test_a_wrong_fit_is_found(tmp_path):
    source = RESULTS / "cifar10/cifar-cnn-pool3-ceil/table3/table3.md"
    head, _, fit = source.read_text(encoding="utf-8").partition("## Fit to the paper\n")
    changed = tmp_path / "table3.md"
    fit = re.sub(r"\d\.\d %", "9.9 %", fit, count=1)
    changed.write_text(f"{head}## Fit to the paper\n{fit}", encoding="utf-8")
    assert len(fit_again(changed)[1]) == 1


def test_students_t_of_the_recomputation_is_that_of_printed_tables():
    assert recompute_claims.student(2.101, 18) == pytest.approx(0.05, abs=2e-5)
    assert recompute_claims.student(-2.92, 2) == pytest.approx(0.1, abs=2e-5)
    assert recompute_claims.student(0.0, 7.5) == pytest.approx(1.0)


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
            "cifar10/cifar-cnn-pool3-ceil-float32/server_step/server_step.csv",
            "cifar10",
            CIFAR | {"model": "cifar-cnn-pool3-ceil", "precision": "float32"},
            False,
        ),
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
