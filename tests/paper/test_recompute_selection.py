"""An independent recomputation of the reports about selection finds no mismatch."""

import csv
import json
from pathlib import Path

import pytest
import recompute
import recompute_regret
import recompute_selection
import recompute_selection_claims

RESULTS = Path(__file__).parents[2] / "results"
CEIL = "cifar10/cifar-cnn-pool3-ceil"
BF16 = {"precision": "bf16"}
# Folders of claims: the data and the settings of their runs of pow-d, and how many comparisons.
CLAIMS = {
    CEIL: ("cifar10", BF16 | {"model": "cifar-cnn-pool3-ceil"}, 50),
    "cifar10/cifar-cnn": ("cifar10", BF16 | {"model": "cifar-cnn"}, 50),
    "cifar10/cifar-cnn-pool3": ("cifar10", BF16 | {"model": "cifar-cnn-pool3"}, 50),
    "digits/mlp": ("digits", {}, 50),
    "nist-letters-mix/emnist-cnn": ("nist-letters-mix", {}, 39),  # no run of 2,500 rounds
}


def schemes(name):
    """Return the schemes that a folder of claims is about."""
    dataset, wanted, _ = CLAIMS[name]
    runs = recompute.read_runs(RESULTS / f"runs-{dataset}.parquet")
    return recompute_selection.read_schemes(RESULTS / "participation", runs, wanted)


def exported():
    """Return what is stored of the regret."""
    return json.loads((RESULTS / "regret/exported.json").read_text(encoding="utf-8"))


def claims_again(name, path):
    """Return how many values of a folder of claims were compared, and the mismatches."""
    records = recompute_selection.Records(schemes(name), exported()["room"])
    return recompute_selection_claims.check_claims(path, records)


@pytest.mark.parametrize("figure", ["figure3", "figure4"])
def test_the_summary_of_a_figure_comes_out_of_the_records(figure):
    report = RESULTS / figure / f"{figure}.md"
    compared, mismatches = recompute_selection.check_participation(report, schemes(CEIL))
    assert mismatches == []
    assert compared == 7 * 6


def test_the_regret_comes_out_of_its_margins_and_formulas():
    report = RESULTS / "regret/regret.md"
    compared, mismatches = recompute_regret.check_regret(report, exported())
    assert mismatches == []
    assert compared == 27 * 9


def test_the_margins_of_the_regret_are_what_the_asked_clients_can_earn():
    compared, mismatches = recompute_regret.check_margins(exported(), schemes(CEIL))
    assert mismatches == []
    assert compared == 27 * 100 + 4 * 20


@pytest.mark.parametrize(
    ("case", "step"),
    [("switch, robust, eta 0.0118", 0.05), ("e3cs-0, successive, eta 0.5000", 1.0)],
)
def test_a_wrong_margin_is_found(case, step):
    record = exported()
    record["room"][case][3] += step
    _, mismatches = recompute_regret.check_margins(record, schemes(CEIL))
    assert len(mismatches) == 1
    assert mismatches[0].startswith(f"{case}, seed 3:")


@pytest.mark.parametrize("name", CLAIMS)
def test_every_comparison_of_selection_comes_out_of_the_records(name):
    compared, mismatches = claims_again(name, RESULTS / name / "claims/claims.csv")
    assert mismatches == []
    assert compared == CLAIMS[name][-1] * 9


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("worlds", "19"),
        ("decided by", "signs"),
        ("support", "0.04449"),
        ("in words", "+0.0446"),
        ("standard error", "0.00383687"),
        ("df", "18.0"),
        ("corrected p", "4.63133e-10"),
        ("smallest effect", "+0.0107"),
        ("verdict", "fails"),
    ],
)
def test_a_wrong_comparison_of_selection_is_found(column, value, tmp_path):
    source = RESULTS / CEIL / "claims/claims.csv"
    rows = list(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))
    row = next(row for row in rows if row["comparison"] == "ratio: fedcs above e3cs-0")
    assert row[column] != value
    row[column] = value
    changed = tmp_path / "claims.csv"
    with changed.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    _, mismatches = claims_again(CEIL, changed)
    assert len(mismatches) == 1
    assert "fedcs above e3cs-0" in mismatches[0]


def test_a_comparison_of_another_kind_is_refused():
    records = recompute_selection.Records({}, {})
    with pytest.raises(ValueError, match="another kind: fairness of all"):
        recompute_selection_claims.supports_of(records, "fairness of all")


def change_cell(source, row, column, value, folder):
    """Write a copy of a report in which one cell of its summary is another; return its path."""
    lines = source.read_text(encoding="utf-8").splitlines()
    first = lines.index("## Summary") + 2
    columns = lines[first].split(" | ")
    place = [name.strip("| ") for name in columns].index(column)
    cells = lines[first + 2 + row].strip("| ").split(" | ")
    assert cells[place] != value
    cells[place] = value
    lines[first + 2 + row] = f"| {' | '.join(cells)} |"
    changed = folder / source.name
    changed.write_text("\n".join(lines), encoding="utf-8")
    return changed


@pytest.mark.parametrize("row", [0, 6])  # a simulated scheme, and pow-d
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("selector", "fedcs"),
        ("success ratio", "0.856"),
        ("CEP", "42,765"),
        ("CEP sd", "881"),
        ("Jain", "0.27"),
        ("asked, by class", "4/6/33/1981"),
    ],
)
def test_a_wrong_cell_of_a_figure_is_found(row, column, value, tmp_path):
    source = RESULTS / "figure3/figure3.md"
    changed = change_cell(source, row, column, value, tmp_path)
    _, mismatches = recompute_selection.check_participation(changed, schemes(CEIL))
    assert len(mismatches) == 1


@pytest.mark.parametrize("row", [8, 25])  # E3CS-0.5 that is robust, and the switch with a floor
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("case", "e3cs-0, exact"),
        ("eta", "0.137"),
        ("regret, best fixed", "1,062"),
        ("standard error", "5.88"),
        ("regret, clairvoyant", "3,700"),
        ("paper's bound", "6,785"),
        ("corrected bound", "-"),
        ("corrected theorem applies", "no"),
        ("within paper's bound", "no"),
    ],
)
def test_a_wrong_cell_of_the_regret_is_found(row, column, value, tmp_path):
    changed = change_cell(RESULTS / "regret/regret.md", row, column, value, tmp_path)
    _, mismatches = recompute_regret.check_regret(changed, exported())
    assert len(mismatches) == 1


def test_a_row_too_few_is_found(tmp_path):
    source = RESULTS / "regret/regret.md"
    lines = source.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not line.startswith("| switch, robust")]
    (tmp_path / "regret.md").write_text("\n".join(lines), encoding="utf-8")
    _, mismatches = recompute_regret.check_regret(tmp_path / "regret.md", exported())
    assert mismatches == ["26 rows instead of 27"]
