"""A study from its blocks to its report, on a few rounds of digits."""

import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from fedcohort.files import save_csv
from fedcohort.lab.comparison import Comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.reports.report import write
from fedcohort.study import runs
from fedcohort.study.combinations import FIGURES
from fedcohort.study.measures import align_columns, curve, measure
from fedcohort.study.page import make_report
from fedcohort.study.volatility import Block, blocks

ROOT = Path(__file__).parents[2]
SMALL = {
    "selectors": ("random", "age", "fedcs"),
    "aggregations": ("paper", "normalised", "fedvarp"),
    "rounds": 4,
    "seeds": 2,
    "mode": "one-by-one",
}


def small_blocks():
    return list(blocks(["digits"], ["bernoulli"], ["primary-label", "iid"], **SMALL))


def test_the_study_has_every_combination_that_matters():
    chosen = list(blocks())
    assert len(chosen) == 3 * 4 * 2
    for block in chosen:
        assert len(block.config.selectors) * len(block.config.aggregations) == 42
        assert block.config.seeds >= (3 if block.task == "cifar10" else 5)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="world must be one of"):
        list(blocks(["digits"], ["nowhere"]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"selectors": ("age",)}, "selectors must contain 'random', got"),
        ({"aggregations": ("paper",)}, "aggregations must contain 'normalised', got"),
        ({"selectors": ("random",), "aggregations": ("normalised",)}, "must be more than"),
        ({"seeds": 1}, "seeds must be at least 2, got 1"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused_before_they_are_trained(settings, message):
    with pytest.raises(ValueError, match=message):
        list(blocks(["digits"], ["bernoulli"], ["iid"], **settings))


def test_a_report_of_few_combinations_leaves_out_what_is_not_there():
    rows = []
    for selector in ("random", "e3cs-0"):
        for seed in (0.0, 1.0):
            measures = dict.fromkeys(FIGURES, 0.5 + 0.1 * seed)
            rows.append(
                {
                    "dataset": "digits",
                    "world": "bernoulli",
                    "partition": "iid",
                    "selector": selector,
                    "rule": "normalised",
                    "seed": seed,
                    "target": 0.5,
                    **measures,
                }
            )
    report = make_report(rows, [])
    (row,) = report.tables["Final accuracy, by data, world and partition"]
    assert row["age + fedvarp, points"] == "-"
    assert row["best under the paper's rule"] == "-"
    assert row["random + normalised"] == "55.0"


def measured_run(folder, **settings):
    """Return the row of a run of three rounds, whose records are worked out by hand."""
    config = ComparisonConfig(
        selectors=("random",),
        partitions=("iid",),
        aggregations=("fedvarp",),
        seeds=1,
        clients=4,
        cohort=2,
        rounds=3,
        rates=(0.5,),
        epochs=(2,),
        samples_per_client=50,
        batch_size=10,
        targets=(0.5,),
        deadline=4.0,
        **settings,
    )
    records = {
        "accuracy": np.array([[0.3], [0.6], [0.8]]),
        "clients": np.array([[[0, 1]], [[1, 2]], [[3, -1]]]),
        "arrived": np.array([[[True, False]], [[True, True]], [[False, False]]]),
        "valid": np.array([[[True, False]], [[True, False]], [[False, False]]]),
        "seconds": np.array([[4.0], [2.0], [4.0]]),
        "wasted_seconds": np.array([[4.0], [2.0], [4.0]]),
        "class_accuracy": np.array([[[0.1, 0.4]], [[0.2, 0.9]], [[0.7, 0.9]]]),
        "label_accuracy": np.array([[[0.1, 0.4]], [[0.2, 0.9]], [[0.6, np.nan]]]),
    }
    block = Block("digits", "bernoulli", "iid", config)
    (row,) = measure(block, Comparison(folder, config, records), model_bytes=1000)
    return row


def test_measures_by_hand(tmp_path):
    row = measured_run(tmp_path)
    # Each client trains on 45 samples: 5 batches, twice. The target is met in round 2, after
    # 1 + 2 clients; five were asked, three updates came back, and one of them was rejected.
    assert row["rounds_to_target"] == 2
    assert row["client_steps_to_target"] == 3 * 10
    assert row["seconds_to_target"] == 6.0
    assert (row["final"], row["worst_class"], row["worst_label"]) == (0.8, 0.7, 0.6)
    assert row["success"] == 2 / 5
    assert row["megabytes"] == pytest.approx(1e-6 * 1000 * (5 + 3))
    assert row["memory_megabytes"] == pytest.approx(1e-6 * 4 * 1000)


def test_wasted_work_is_a_share_of_the_seconds_that_clients_spent(tmp_path):
    # A client takes 2 seconds and is waited for until second 4. Clients 0 and 1 were used once:
    # 2 + 2 seconds. Two never answered, 4 + 4 seconds, and one was rejected, 2 seconds.
    assert measured_run(tmp_path)["wasted_work_share"] == 10 / (10 + 4)


def test_wasted_work_is_not_known_where_times_have_a_spread(tmp_path):
    assert np.isnan(measured_run(tmp_path, jitter=0.5)["wasted_work_share"])


def test_rows_of_older_tables_stand_beside_new_ones():
    old = {"seed": 0.0, "wasted_share": 0.5, "megabytes": 3.0}
    new = {"seed": 1, "wasted_work_share": 0.6, "megabytes": 4.0}
    rows = align_columns([old, new])
    assert [list(row) for row in rows] == 2 * [
        ["seed", "wasted_share", "megabytes", "wasted_work_share"]
    ]
    assert [row["megabytes"] for row in rows] == [3.0, 4.0]
    assert np.isnan(rows[0]["wasted_work_share"])
    assert np.isnan(rows[1]["wasted_share"])
    assert (rows[0]["wasted_share"], rows[1]["wasted_work_share"]) == (0.5, 0.6)


def test_curves_are_those_of_one_combination_in_tested_rounds(tmp_path):
    (block,) = blocks(["digits"], ["bernoulli"], ["iid"], **SMALL)
    accuracy = np.arange(4 * 18.0).reshape(4, 18)
    accuracy[1] = np.nan
    rounds, values = curve(
        Comparison(tmp_path, block.config, {"accuracy": accuracy}), "age", "normalised"
    )
    assert rounds.tolist() == [1, 3, 4]
    assert values.tolist() == accuracy[[0, 2, 3]][:, [8, 9]].T.tolist()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_two_studies_that_add_rows_to_one_table_at_once_lose_none(tmp_path, monkeypatch):
    path = tmp_path / runs.CURVES
    first, second = small_blocks()

    def add(block):
        row = {
            "dataset": block.task,
            "world": block.world,
            "partition": block.partition,
            "selector": "random",
            "rule": "paper",
            "round": 1,
            "accuracy": 0.5,
            "sd": 0.0,
        }
        runs._add_rows(path, [row], block)

    other = Thread(target=add, args=[second])

    def save_late(*args):
        monkeypatch.setattr(runs, "save_csv", save_csv)
        other.start()
        other.join(timeout=0.5)  # With a lock, the other study waits until this one is done.
        save_csv(*args)

    monkeypatch.setattr(runs, "save_csv", save_late)
    add(first)
    other.join()
    rows = runs.read_curves(tmp_path)
    assert {row["partition"] for row in rows} == {first.partition, second.partition}


@pytest.mark.slow
def test_a_study_is_trained_once_and_reported_from_its_tables(tmp_path):
    runs.train(small_blocks(), tmp_path)
    first = (tmp_path / runs.MEASURES).read_bytes()
    rows = runs.read_measures(tmp_path)
    assert len(rows) == 2 * 9 * 2
    runs.train(small_blocks(), tmp_path)  # finished blocks are only read
    assert (tmp_path / runs.MEASURES).read_bytes() == first

    report = make_report(rows, runs.read_curves(tmp_path))
    assert len(report.tables["Final accuracy, by data, world and partition"]) == 2
    assert len(report.numbers["combinations"]) == 2 * 9
    overview = report.tables["Final accuracy beside uniform selection with normalised averaging"]
    finals = {}
    for row in rows:
        if row["partition"] == "iid":
            finals.setdefault((row["selector"], row["rule"]), []).append(row["final"])
    gain = np.mean(finals["age", "fedvarp"]) - np.mean(finals["random", "normalised"])
    (own,) = [
        row
        for row in overview
        if (row["partition"], row["combination"]) == ("iid", "age + fedvarp")
    ]
    assert (own["cases"], own["mean, points"]) == (1, f"{100 * gain:+.1f}")
    assert list(report.figures) == ["accuracy-digits"]


def test_a_folder_without_a_study_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must hold a study with runs\.csv"):
        runs.read_measures(tmp_path)


def test_a_damaged_table_is_refused_by_line(tmp_path):
    (tmp_path / runs.MEASURES).write_text("dataset,final\ndigits,0.5\ndigits,high\n")
    with pytest.raises(
        ValueError, match=r"runs\.csv, line 3, column final: must be .* nan, got 'high'"
    ):
        runs.read_measures(tmp_path)


def test_the_committed_study_is_drawn_again_from_its_tables(tmp_path):
    """Every number of the page comes from the two committed tables of runs and curves."""
    folder = ROOT / "results" / "study"
    report = make_report(runs.read_measures(folder), runs.read_curves(folder))
    write(report, tmp_path)
    for name in ("volatility.md", "combinations.csv"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_kept_curve_has_the_mean_and_the_spread_over_seeds(tmp_path):
    (block,) = blocks(["digits"], ["bernoulli"], ["iid"], **SMALL)
    accuracy = np.full((4, 18), 0.5)
    accuracy[2, :] = np.nan
    accuracy[3, [2, 3]] = [0.6, 0.8]  # random with normalised averaging, two seeds
    rows = runs._curve_rows(block, Comparison(tmp_path, block.config, {"accuracy": accuracy}))
    own = [row for row in rows if (row["selector"], row["rule"]) == ("random", "normalised")]
    assert [row["round"] for row in own] == [1, 2, 4]
    assert [row["accuracy"] for row in own] == pytest.approx([0.5, 0.5, 0.7])
    assert [row["sd"] for row in own] == pytest.approx([0.0, 0.0, 0.1 * 2**0.5])
    others = [row for row in rows if (row["selector"], row["rule"]) == ("age", "fedvarp")]
    assert [row["accuracy"] for row in others] == [0.5, 0.5, 0.5]
    assert {row["dataset"] for row in rows} == {"digits"}
    assert {row["partition"] for row in rows} == {"iid"}


def write_study(folder, change=None):
    """Write a small study with two combinations and two seeds; change its lines by `change`."""
    names = "world,partition,selector,rule,seed,final,dataset,target"
    costs = "rounds_to_target,client_steps_to_target,seconds_to_target"
    lines = [f"{names},{costs},worst_class"]
    for combination in ("random,normalised", "age,fedvarp"):
        for seed in (0, 1):
            final = 0.5 + 0.1 * seed
            lines.append(f"bernoulli,iid,{combination},{seed},{final},digits,0.5,3,30,6,0.4")
    if change is not None:
        change(lines)
    (folder / runs.MEASURES).write_text("\n".join(lines) + "\n")


def without(*positions):
    def change(lines):
        for position in sorted(positions, reverse=True):
            del lines[position]

    return change


def replaced(position, before, after):
    def change(lines):
        lines[position] = lines[position].replace(before, after)

    return change


def test_a_table_of_what_the_report_needs_is_read(tmp_path):
    write_study(tmp_path)
    rows = runs.read_measures(tmp_path)
    assert [row["seed"] for row in rows] == [0, 1, 0, 1]
    make_report(rows, [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced(0, "final", "finale"), r"runs\.csv must have a column final, got world, "),
        (replaced(0, "seconds_to", "hours_to"), "must have a column seconds_to_target, got"),
        (replaced(3, "bernoulli", "mars"), r"line 4, column world: must be one of .*, got 'mars'"),
        (replaced(2, "iid", "half"), r"line 3, column partition: must be one of .*, got 'half'"),
        (replaced(2, "random", ""), r"line 3, column selector: must be a word, got none"),
        (replaced(4, ",1,0.6", ",nan,0.6"), r"line 5, column seed: must be a number, got nan"),
        (replaced(4, ",1,0.6", ",,0.6"), r"line 5, column seed: must be a number or nan, got ''"),
        (replaced(2, "0.6", ""), r"runs\.csv, line 3, column final: must be .* or nan, got ''"),
        (replaced(2, "0.6", "nan"), r"runs\.csv, line 3, column final: must be a number, got nan"),
        (replaced(2, ",0.4", ",inf"), r"line 3, column worst_class: must be a number, got inf"),
        (replaced(2, "digits,0.5", "digits,nan"), r"line 3, column target: must be a number, got"),
        (replaced(2, ",0.4", ""), r"runs\.csv, line 3, column worst_class: must have a cell"),
        (replaced(2, ",3,30", ",,30"), r"line 3, column rounds_to_target: must be .* nan, got ''"),
        (replaced(2, ",0.4", ",0.4,7,8"), r"runs\.csv, line 3: must have 12 cells, got 14"),
        (without(1, 2), r"bernoulli, iid: must have runs of random \+ normalised, got age \+ fed"),
        (without(3, 4), r"must have runs of two combinations, got random \+ normalised alone"),
        (without(1, 3), r"bernoulli, iid: must have at least 2 seeds, got 1"),
        (without(3), r"iid: age \+ fedvarp must have the seeds 0, 1, each once, got 1"),
        (replaced(4, ",1,0.6", ",0,0.6"), r"must have the seeds 0, 1, each once, got 0, 0"),
        (without(1, 2, 3, 4), r"runs\.csv must have at least one row below its header, got none"),
        (without(0, 1, 2, 3, 4), r"runs\.csv must have a column dataset, got none"),
    ],
)
def test_a_table_that_cannot_be_reported_names_its_line_or_column(tmp_path, change, message):
    write_study(tmp_path, change=change)
    with pytest.raises(ValueError, match=message):
        runs.read_measures(tmp_path)


def test_a_run_that_did_not_reach_its_target_has_no_costs(tmp_path):
    write_study(tmp_path, change=replaced(2, ",3,30,6,", ",nan,nan,nan,"))
    (_, second, *_) = runs.read_measures(tmp_path)
    assert np.isnan([second["rounds_to_target"], second["seconds_to_target"]]).all()


def test_a_table_of_curves_is_checked_too(tmp_path):
    path = tmp_path / runs.CURVES
    path.write_text("dataset,world,partition,selector,rule,round,sd\n")
    with pytest.raises(ValueError, match=r"curves\.csv must have a column accuracy, got dataset"):
        runs.read_curves(tmp_path)
    path.write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match=r"curves\.csv must be a table in CSV, got: "):
        runs.read_curves(tmp_path)
