import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "paper"))
from made import result

from fedcohort.lab import folder as rundir
from fedcohort.lab.archive import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    gather_results,
    load,
    merge_results,
    results_of,
    save,
)
from fedcohort.lab.comparison import Comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import identity, single_run
from fedcohort.lab.runs import run_keys


def same(one, other):
    arrays = all(
        np.array_equal(
            getattr(one, name),
            getattr(other, name),
            equal_nan=name in ("accuracy", "loss", "official"),
        )
        and getattr(one, name).dtype == getattr(other, name).dtype == kind
        for name, kind in COLUMNS.items()
    )
    return arrays and one.config == other.config and one.provenance == other.provenance


@pytest.mark.parametrize("ending", [".parquet", ".npz"])
def test_results_of_different_lengths_come_back_as_they_were(tmp_path, ending):
    kept = [
        result(
            accuracy=(0.1, np.nan, 0.30000001),
            first_seed=4,
            provenance={"gpu": "one", "seconds": 1.5},
        ),
        result(accuracy=(0.5,), rounds=9, clients=7, cohort=2, counts=range(7), mus=(0.5,)),
    ]
    save(tmp_path / f"runs{ending}", kept)
    back = load(tmp_path / f"runs{ending}")
    assert [same(*pair) for pair in zip(kept, back, strict=True)] == [True, True]


@pytest.mark.parametrize("ending", [".parquet", ".npz"])
def test_accuracy_by_class_and_label_comes_back_beside_runs_that_do_not_have_it(tmp_path, ending):
    old = result(accuracy=(0.1, 0.2), first_seed=1)
    by_class = np.array([0.5, np.nan, 0.25], dtype=np.float32)
    new = replace(
        result(accuracy=(0.1, 0.2)),
        class_accuracy=by_class,
        label_accuracy=by_class[:2],
        worst_class=np.array([np.nan, 0.25], dtype=np.float32),
        class_loss=by_class * 3,
    )
    save(tmp_path / f"runs{ending}", [old, new])
    first, second = load(tmp_path / f"runs{ending}")
    for name in OPTIONAL_COLUMNS:
        assert getattr(first, name) is None
        np.testing.assert_array_equal(getattr(second, name), getattr(new, name))
        assert getattr(second, name).dtype == np.float32

    torn = replace(new, worst_class=np.zeros(3, dtype=np.float32))
    save(tmp_path / f"runs{ending}", [torn])
    with pytest.raises(ValueError, match="worst_class of other rounds than each other"):
        load(tmp_path / f"runs{ending}")


def test_files_of_runs_without_optional_columns_have_none(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    save(tmp_path / "runs.parquet", [result(accuracy=(0.1,))])
    names = parquet.read_table(tmp_path / "runs.parquet").column_names
    assert set(OPTIONAL_COLUMNS).isdisjoint(names)


def test_a_run_is_kept_with_its_last_accuracy_by_class_and_the_curve_of_the_worst(tmp_path):
    config = ComparisonConfig(
        selectors=("random", "fedcs"), partitions=("iid",), aggregations=("paper",), mus=(0.0,),
        seeds=1, clients=8, cohort=2, rounds=2,
    )  # fmt: skip
    by_class = np.array([[[0.5, 0.25], [0.1, 0.2]], [[0.75, 1.0], [0.5, np.nan]]], np.float32)
    ones = np.ones((2, 2))
    records = dict.fromkeys(("accuracy", "loss"), ones) | {
        "valid": np.ones((2, 2, 2), bool),
        "clients": np.zeros((2, 2, 2), int),
        "class_accuracy": by_class,
        "label_accuracy": by_class / 2,
    }
    first, second = results_of(Comparison(tmp_path, config, records))
    np.testing.assert_array_equal(first.class_accuracy, by_class[1, 0])
    np.testing.assert_array_equal(first.label_accuracy, by_class[1, 0] / 2)
    np.testing.assert_array_equal(first.worst_class, np.float32([0.25, 0.75]))
    np.testing.assert_array_equal(second.worst_class, np.float32([0.1, 0.5]))
    assert first.class_loss is None


def test_the_loss_of_a_class_is_its_mean_over_the_rounds_that_recorded_it(tmp_path):
    config = ComparisonConfig(
        selectors=("random",), partitions=("iid",), aggregations=("paper",), mus=(0.0,),
        seeds=1, clients=8, cohort=2, rounds=3, losses_every=2,
    )  # fmt: skip
    ones = np.ones((3, 1))
    nothing = [np.nan, np.nan]
    records = dict.fromkeys(("accuracy", "loss"), ones) | {
        "valid": np.ones((3, 1, 2), bool),
        "clients": np.zeros((3, 1, 2), int),
        "class_loss": np.array([[nothing], [[2.0, 1.0]], [[1.0, np.nan]]]),
    }
    (run,) = results_of(Comparison(tmp_path, config, records))
    np.testing.assert_array_equal(run.class_loss, np.float32([1.5, 1.0]))


def test_other_tools_find_columns_they_understand(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    save(tmp_path / "runs.parquet", [result(accuracy=(0.25, 0.5), first_seed=3)])
    (row,) = parquet.read_table(tmp_path / "runs.parquet").to_pylist()
    assert (row["dataset"], row["selector"], row["partition"], row["mu"], row["seed"]) == (
        "cifar10",
        "random",
        "iid",
        0,
        3,
    )
    assert row["accuracy"] == [0.25, 0.5]


def test_of_a_run_that_is_there_twice_the_longer_is_taken(tmp_path):
    short, long = result(accuracy=(0.1,), rounds=3), result(accuracy=(0.1, 0.2), rounds=3)
    for order in ((short, long), (long, short)):
        for name, one in zip(("a", "b"), order, strict=True):
            save(tmp_path / name / "runs.npz", [one])
        (found,) = gather_results(tmp_path)
        assert len(found.accuracy) == 2


def test_of_two_equally_long_ones_that_with_losses_is_taken(tmp_path):
    plain = result(accuracy=(0.1, 0.2), rounds=3)
    told = replace(plain, class_loss=np.ones(4, np.float32))
    for order in ((plain, told), (told, plain)):
        (found,) = merge_results(order, target=tmp_path)
        assert found is told
    longer = result(accuracy=(0.1, 0.2, 0.3), rounds=3)
    (found,) = merge_results([told], [longer], target=tmp_path)
    assert found is longer


def test_of_two_equally_long_ones_that_with_more_kinds_of_records_is_taken(tmp_path):
    plain = result(accuracy=(0.1, 0.2), rounds=3)
    unknown = replace(plain, class_loss=np.full(4, np.nan, np.float32))  # no round was due yet
    told = replace(plain, class_loss=np.array([np.nan, 1.0], np.float32))
    tested = result(accuracy=(0.1, 0.2), rounds=3, official=(np.nan, 0.3))
    both = replace(tested, class_loss=told.class_loss)

    def taken(*order):
        (found,) = merge_results(order, target=tmp_path)
        return found

    for less, more in ((unknown, told), (unknown, tested), (told, both), (tested, both)):
        assert taken(less, more) is taken(more, less) is more
    # None holds more than the other: the one that is there stays.
    for pair in ((plain, unknown), (told, tested)):
        for first, second in (pair, pair[::-1]):
            assert taken(first, second) is first


@pytest.mark.parametrize("name", ["runs.parquet", "runs.npz"])
@pytest.mark.parametrize("content", [b"", b"PAR1 nothing", b"PK\x03\x04 torn"])
def test_a_damaged_file_is_refused_by_name(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} must be a results file of fedcohort"):
        load(tmp_path / name)


def test_a_file_of_something_else_is_refused_by_name(tmp_path):
    np.savez(tmp_path / "runs.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match=r"runs\.npz must be a results file of fedcohort"):
        gather_results(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"), [("settings.toml", "other = 1"), ("cost.json", "{"), ("cost.json", "[]")]
)
def test_a_damaged_run_folder_is_refused_by_name(tmp_path, name, content):
    folder = tmp_path / "one"
    rundir.write_settings(folder, result().config.as_dict())
    (folder / name).write_text(content)
    with pytest.raises(ValueError, match=rf"one/{name} must "):
        gather_results(tmp_path)


@pytest.mark.parametrize("ending", [".parquet", ".npz"])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"valid": (1, 2)}, "other rounds than each other"),
        ({"official": ()}, "other rounds than each other"),
        ({"counts": range(5)}, "counts of 5 of 100 clients"),
        ({"rounds": 2}, "3 of 2 rounds"),
        ({"accuracy": (), "counts": np.zeros(100), "rounds": 3}, "0 of 3 rounds, at least 1"),
    ],
)
def test_a_file_whose_parts_do_not_fit_together_is_refused_by_name(tmp_path, ending, changes, said):
    save(tmp_path / f"runs{ending}", [result(**{"accuracy": (0.1, 0.2, 0.3)} | changes)])
    with pytest.raises(
        ValueError, match=rf"runs\{ending} must be a results file of fedcohort, got: .*{said}"
    ):
        load(tmp_path / f"runs{ending}")


def test_runs_on_a_file_that_has_changed_are_not_of_one_data_set(tmp_path):
    for name, seed, digest in (("a", 0, "1f"), ("b", 1, "2e"), ("c", 2, None)):
        about = {"data": digest} if digest else {}
        save(
            tmp_path / name / "runs.npz",
            [result(dataset="mine.npz", first_seed=seed, provenance=about)],
        )
    assert len(gather_results(tmp_path / "a", tmp_path / "c")) == 2
    with pytest.raises(
        ValueError,
        match=r"b/runs\.npz must be of the same samples of mine\.npz as the others, got others",
    ):
        gather_results(tmp_path)


def test_of_runs_in_two_folders_the_first_is_taken_unless_the_other_is_longer(tmp_path):
    for folder, accuracy in (("a", (0.1, 0.2)), ("b", (0.3, 0.4))):
        (tmp_path / folder).mkdir()
        save(tmp_path / folder / "runs.npz", [result(accuracy=accuracy, rounds=3)])
    (found,) = gather_results(tmp_path / "b", tmp_path / "a")
    np.testing.assert_array_equal(found.accuracy, np.float32([0.3, 0.4]))
    save(tmp_path / "a" / "runs.npz", [result(accuracy=(0.5, 0.6, 0.7))])
    (found,) = gather_results(tmp_path / "b", tmp_path / "a")
    np.testing.assert_array_equal(found.accuracy, np.float32([0.5, 0.6, 0.7]))


def test_a_folder_without_results_has_none(tmp_path):
    assert gather_results(tmp_path) == gather_results(tmp_path / "none") == []


def test_refilling_labels_makes_other_runs_where_labels_are_dealt_and_the_same_runs_elsewhere():
    plain, refilled = (
        ComparisonConfig(selectors=("random",), seeds=1, mus=(0.0,), refill=refill)
        for refill in (False, True)
    )
    same = {
        place.partition: identity(single_run(plain, place)) == identity(single_run(refilled, place))
        for place in run_keys(plain)
    }
    assert same == {"iid": True, "primary-label": False}


def test_a_run_of_a_comparison_keeps_the_updates_used_and_not_those_rejected():
    config = ComparisonConfig(
        selectors=("random",),
        partitions=("iid",),
        aggregations=("paper",),
        seeds=1,
        clients=4,
        cohort=2,
        rounds=2,
    )
    nothing = np.zeros((2, 1))
    records = {
        "accuracy": nothing,
        "loss": nothing,
        "clients": np.array([[[0, 1]], [[0, 2]]]),
        "arrived": np.array([[[True, True]], [[True, False]]]),
        "valid": np.array([[[True, False]], [[False, False]]]),
    }
    (kept,) = results_of(SimpleNamespace(config=config, records=records, provenance={}))
    assert kept.valid.tolist() == [1, 0]
    assert kept.counts.tolist() == [2, 1, 1, 0]
