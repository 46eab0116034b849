import numpy as np
import pytest

from fedcohort.lab import folder as rundir
from fedcohort.lab.archive import gather_results
from fedcohort.lab.comparison import load_chunk, load_comparison, read_config
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.progress import follow
from fedcohort.lab.runs import run_keys

OF = ComparisonConfig(
    selectors=("random", "fedcs"),
    partitions=("iid",),
    aggregations=("paper",),
    seeds=2,
    clients=8,
    cohort=3,
    rounds=5,
)


def chunk(rounds=2):
    runs, chance = len(run_keys(OF)), np.random.default_rng(0)
    clients = np.tile(np.arange(OF.cohort), (rounds, runs, 1))
    by_run = {
        name: chance.random((rounds, runs))
        for name in ("accuracy", "loss", "seconds", "wasted_seconds")
    }
    answers = {
        name: chance.random((rounds, runs, OF.cohort)) < 0.5 for name in ("arrived", "valid")
    }
    return {
        "clients": clients,
        "wasted_bytes": np.zeros((rounds, runs), int),
        **answers,
        **by_run,
    }


@pytest.fixture
def folder(tmp_path):
    rundir.write_settings(tmp_path / "run", OF.as_dict())
    rundir.save_records(tmp_path / "run", 0, chunk())
    return tmp_path / "run"


def test_what_was_written_is_read_again(folder):
    assert read_config(folder) == OF
    rundir.save_records(folder, 2, chunk(3))
    assert {
        name: len(values) for name, values in load_comparison(folder, OF).records.items()
    } == dict.fromkeys(chunk(), 5)
    assert load_chunk(folder / "records" / "0000002.npz", OF)["accuracy"].shape == (3, 4)


@pytest.mark.parametrize("name", chunk())
def test_records_without_something_are_refused_by_name(folder, name):
    rundir.save_records(folder, 0, {key: values for key, values in chunk().items() if key != name})
    with pytest.raises(ValueError, match=f"records must hold {name} of every round"):
        load_comparison(folder, OF)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"clients": chunk()["clients"] + 6}, "clients from 0 to 7, got 6 to 8"),
        ({"clients": chunk()["clients"] - 1}, "clients from 0 to 7, got -1 to 1"),
        (
            {"accuracy": np.full((2, 4), "x")},
            r"accuracy as numbers of shape \(4,\) in every round, got <U1 of \(4,\)",
        ),
        (
            {"loss": np.zeros((2, 3))},
            r"loss as numbers of shape \(4,\) in every round, got float64 of \(3,\)",
        ),
        ({"official_accuracy": np.zeros((2, 5))}, r"official_accuracy as numbers of shape \(4,\)"),
        ({"class_accuracy": np.zeros((2, 4))}, r"class_accuracy as numbers of shape \(4, 4\)"),
        ({"class_accuracy": np.zeros((2, 4, 0))}, r"class_accuracy as numbers of shape \(4, 1\)"),
        ({"label_accuracy": np.zeros((2, 3, 9))}, r"label_accuracy as numbers of shape \(4, 9\)"),
        ({"class_loss": np.zeros((2, 4))}, r"class_loss as numbers of shape \(4, 4\)"),
        ({"seconds": np.zeros((1, 4))}, "the same rounds, at least one, of everything"),
        (chunk(0), "the same rounds, at least one, of everything"),
        (dict.fromkeys(chunk(), np.float64(1)), "the same rounds, at least one, of everything"),
    ],
)
def test_records_that_cannot_be_of_the_run_are_refused(folder, damage, said):
    rundir.save_records(
        folder, 0, {name: np.asarray(values) for name, values in (chunk() | damage).items()}
    )
    for read in (
        lambda: load_comparison(folder, OF),
        lambda: load_chunk(folder / "records" / "0000000.npz", OF),
        lambda: gather_results(folder),
    ):
        with pytest.raises(ValueError, match=f"records.* must hold {said}"):
            read()
    with pytest.raises(ValueError, match="must hold"):
        follow(folder).snapshot()  # and does not wait for ever


def test_a_chunk_of_other_things_than_the_one_before_is_refused(folder):
    rundir.save_records(folder, 2, chunk() | {"official_accuracy": np.zeros((2, 4))})
    with pytest.raises(
        ValueError,
        match=r"0000002\.npz must hold clients, .* as the rounds before, got .*official_accuracy",
    ):
        rundir.load_records(folder)


def test_settings_that_were_cut_are_not_filled_up(folder):
    path = folder / "settings.toml"
    _seal, whole = path.read_text().split("\n", 1)
    path.write_text(whole[: whole.index("sampler")])
    with pytest.raises(
        ValueError,
        match=r"settings\.toml must name every setting of its run, got none of sampler, targets, ",
    ):
        read_config(folder)
    path.write_text(whole.replace("rounds = 5", 'rounds = "x"'))
    with pytest.raises(
        ValueError,
        match=r"settings\.toml must hold the settings of a run, got: rounds must be a whole number",
    ):
        gather_results(folder)
