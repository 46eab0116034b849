"""What a results file keeps of a comparison's runs, and which runs of several files are taken."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "paper"))
from made import result

from fedcohort.files import save_arrays
from fedcohort.lab import folder as run_folder
from fedcohort.lab.archive import gather_results, load, merge_results, results_of, save
from fedcohort.lab.config import ComparisonConfig

ROUNDS = 3
CONFIG = ComparisonConfig(
    selectors=("random", "fedcs"),
    partitions=("iid",),
    aggregations=("paper",),
    mus=(0.0,),
    seeds=2,
    first_seed=5,
    clients=4,
    cohort=2,
    rounds=ROUNDS,
    official_every=1,
)
ABOUT = {"gpu": "one"}


def numbered(start):
    """Return numbers [rounds, runs] that tell round and run: start + round / 10 + run / 100."""
    rounds = np.arange(ROUNDS)[:, None] / 10
    return start + rounds + np.arange(4) / 100


def records_of_four_runs():
    """Return records in which no two runs are alike, nor two rounds, nor two kinds."""
    clients = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])  # whom each run asks in all rounds
    valid = np.zeros((ROUNDS, 4, 2), bool)
    valid[0, 1:] = True  # round 0: no update of run 0, two of each other
    valid[1, 2:, 0] = True  # round 1: one update of runs 2 and 3
    valid[2, 3] = True  # round 2: two updates of run 3
    return {
        "accuracy": numbered(0),
        "loss": numbered(1),
        "official_accuracy": numbered(2),
        "label_accuracy": np.stack([numbered(3), numbered(4)], axis=-1),
        "class_loss": np.stack([numbered(5), numbered(6)], axis=-1),
        "valid": valid,
        "clients": np.tile(clients, (ROUNDS, 1, 1)),
    }


def runs_of(records):
    """Return the runs of a comparison with these records."""
    return results_of(SimpleNamespace(config=CONFIG, records=records, provenance=ABOUT))


def test_each_run_has_the_records_of_its_own_row():
    runs = runs_of(records_of_four_runs())
    settings = [(run.config.selectors, run.config.first_seed, run.config.seeds) for run in runs]
    random, fedcs = ("random",), ("fedcs",)
    assert settings == [(random, 5, 1), (random, 6, 1), (fedcs, 5, 1), (fedcs, 6, 1)]
    for number, run in enumerate(runs):
        rounds = np.array([0.0, 0.1, 0.2]) + number / 100
        np.testing.assert_allclose(run.accuracy, rounds, rtol=1e-6)
        np.testing.assert_allclose(run.loss, 1 + rounds, rtol=1e-6)
        np.testing.assert_allclose(run.official, 2 + rounds, rtol=1e-6)
        # Accuracies by label are those of the last round, losses by class the mean of all.
        np.testing.assert_allclose(run.label_accuracy, np.array([3.2, 4.2]) + number / 100)
        np.testing.assert_allclose(run.class_loss, np.array([5.1, 6.1]) + number / 100)
        assert run.class_accuracy is None
        assert run.provenance == ABOUT
    assert [run.valid.tolist() for run in runs] == [[0, 0, 0], [2, 0, 0], [2, 1, 0], [2, 1, 2]]
    counts = [run.counts.tolist() for run in runs]
    assert counts == [[3, 3, 0, 0], [0, 3, 3, 0], [0, 0, 3, 3], [3, 0, 0, 3]]


def test_what_was_not_recorded_is_not_known():
    records = records_of_four_runs()
    for name in ("official_accuracy", "label_accuracy", "class_loss"):
        del records[name]
    for run in runs_of(records):
        assert np.isnan(run.official).all()
        assert run.official.shape == (ROUNDS,)
        assert run.label_accuracy is run.class_loss is None
    assert runs_of({}) == []


def test_accuracy_by_class_is_kept_without_that_by_label():
    records = records_of_four_runs()
    records["class_accuracy"] = records.pop("label_accuracy")
    for number, run in enumerate(runs_of(records)):
        assert run.label_accuracy is None
        np.testing.assert_allclose(run.class_accuracy, np.array([3.2, 4.2]) + number / 100)


def test_other_tools_find_the_settings_and_the_types_that_are_stored(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    run = result(accuracy=(0.25,), rounds=7, clients=9, cohort=3, counts=range(9))
    run = replace(run, class_loss=np.array([0.5, 1.5], np.float32))
    save(tmp_path / "runs.parquet", [run])
    table = parquet.read_table(tmp_path / "runs.parquet")
    types = {}
    for name in ("accuracy", "loss", "official", "class_loss", "valid", "counts"):
        types[name] = str(table.schema.field(name).type.value_type)
    assert types == {
        "accuracy": "float",
        "loss": "float",
        "official": "float",
        "class_loss": "float",
        "valid": "uint16",
        "counts": "uint32",
    }
    (row,) = table.to_pylist()
    assert (row["aggregation"], row["cohort"], row["rounds"]) == ("paper", 3, 7)
    assert row["class_loss"] == [0.5, 1.5]


def test_a_parquet_file_that_was_changed_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "runs.parquet"
    save(path, [result(accuracy=(0.25, 0.5), provenance={"gpu": "first"})])
    content = path.read_bytes()
    changed = content.replace(b"official", b"OFFICIAL")  # the name of a column
    assert changed != content
    path.write_bytes(changed)
    with pytest.raises(ValueError, match=r"runs\.parquet must .*its checksum does not fit"):
        load(path)


def test_a_refusal_is_one_line_that_names_the_file_once(tmp_path):
    path = tmp_path / "runs.npz"
    save(path, [result(accuracy=(0.25,))])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="checksum does not fit") as refusal:
        load(path)
    assert str(refusal.value).count("must be a results file") == 1


def test_of_a_readers_error_of_several_lines_the_first_is_told(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "runs.parquet"
    save(path, [result(accuracy=(0.25,))])
    unsealed = parquet.read_table(path).replace_schema_metadata(None)
    parquet.write_table(unsealed, path)
    content = bytearray(path.read_bytes())
    content[4:20] = b"\xff" * 16  # the header of the first page
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"runs\.parquet must be a results file") as refusal:
        load(path)
    assert len(str(refusal.value).splitlines()) == 1


def test_a_file_with_settings_of_more_runs_than_it_says_where_they_are_from_is_refused(tmp_path):
    save(tmp_path / "runs.npz", [result(accuracy=(0.25,)), result(accuracy=(0.5,), first_seed=1)])
    with np.load(tmp_path / "runs.npz") as stored:
        arrays = dict(stored)
    arrays["about"] = arrays["about"][:1]
    save_arrays(tmp_path / "torn.npz", arrays)
    with pytest.raises(ValueError, match=r"torn\.npz must be a results file"):
        load(tmp_path / "torn.npz")


def test_folders_after_one_that_does_not_exist_are_read(tmp_path):
    save(tmp_path / "a" / "runs.npz", [result(accuracy=(0.25,))])
    (found,) = gather_results(tmp_path / "none", tmp_path / "a")
    assert found.accuracy.tolist() == [0.25]


def test_the_settings_of_each_comparison_are_returned_by_its_own_folder(tmp_path):
    expected = {}
    for name, seed in (("one", 0), ("two", 7)):
        config = result(first_seed=seed).config
        run_folder.write_settings(tmp_path / name, config.as_dict())
        expected[tmp_path / name] = config
    save(tmp_path / "a" / "runs.npz", [result(accuracy=(0.25,))])
    configs = {}
    assert len(gather_results(tmp_path, configs=configs)) == 1
    assert configs == expected


def run_on(dataset, digest, seed):
    """Return a run on samples with this digest."""
    return result(dataset=dataset, first_seed=seed, provenance={"data": digest})


def test_runs_on_a_users_file_are_of_the_same_samples_across_folders_and_groups(tmp_path):
    first = run_on("mine.npz", "1f", seed=0)
    other = run_on("mine.npz", "2e", seed=1)
    for name, run in (("a", first), ("b", other)):
        save(tmp_path / name / "runs.npz", [run])
    with pytest.raises(ValueError, match=r"b/runs\.npz must be of the same samples of mine\.npz"):
        gather_results(tmp_path / "a", tmp_path / "b")
    target = tmp_path / "both"
    with pytest.raises(ValueError, match=r"both must be of the same samples of mine\.npz"):
        merge_results([first], [other], target=target)
    again = run_on("mine.npz", "1f", seed=1)
    assert merge_results([first], [again], target=target) == [first, again]


@pytest.mark.parametrize("datasets", [("mine.npz", "yours.npz"), ("cifar10", "cifar10")])
def test_other_digests_are_those_of_other_files_or_of_public_data(datasets, tmp_path):
    # Only a user's own file may change between two runs.
    runs = []
    for seed, (dataset, digest) in enumerate(zip(datasets, ("1f", "2e"), strict=True)):
        runs.append(run_on(dataset, digest, seed))
    assert merge_results(runs, target=tmp_path) == runs
