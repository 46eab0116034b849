import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcohort.files import atomic_write, load_state, save_arrays
from fedcohort.lab import folder as rundir
from fedcohort.lab.folder import Kind, detect_kind

QUICK = settings(max_examples=100, deadline=None)


def nested():
    return {
        "round": 7,
        "mode": "together",
        "engine": {
            "models": np.arange(6, dtype=np.float32).reshape(2, 3),
            "velocity": np.zeros((2, 3), np.float32),
        },
        "selectors": {
            "0": {
                "kind": "E3CS",
                "log_weights": np.array([[0.1, -np.inf], [np.inf, 1e-300]]),
                "rng": [{"state": 2**127 + 1}],
            },
            "1": {
                "flags": np.array([True, False]),
                "ids": np.array([3, -1]),
                "empty": np.empty((0, 4)),
                "nothing": None,
            },
        },
        "a number": 0.1,
    }


def assert_same(found, expected):
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name in expected:
            assert_same(found[name], expected[name])
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")
    else:
        assert found == expected


def test_a_nested_state_comes_back_from_a_checkpoint(tmp_path):
    rundir.save_checkpoint(tmp_path, nested())
    assert_same(rundir.load_checkpoint(tmp_path), nested())


arrays = st.one_of(
    st.lists(st.floats(width=32), max_size=5).map(lambda v: np.array(v, np.float32)),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5).map(lambda v: np.array(v, np.int64)),
    st.lists(st.booleans(), min_size=1, max_size=6).map(lambda v: np.array(v)[None].T),
    st.floats(allow_nan=False).map(np.array),
)
plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)
)
names = st.text(st.sampled_from("ab/"), min_size=1, max_size=4)
states = st.recursive(
    st.one_of(arrays, plain), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8
)


@QUICK
@given(state=st.dictionaries(names, states, max_size=4))
def test_any_nested_state_comes_back_from_a_checkpoint(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("run")
    rundir.save_checkpoint(folder, state)
    assert_same(rundir.load_checkpoint(folder), state)


def test_arrays_that_do_not_lie_in_one_piece_come_back(tmp_path):
    state = {"turned": np.arange(6.0).reshape(2, 3).T, "thinned": np.arange(10)[::3]}
    rundir.save_checkpoint(tmp_path, state)
    assert_same(rundir.load_checkpoint(tmp_path), state)


def test_a_folder_without_a_checkpoint_has_none(tmp_path):
    assert rundir.load_checkpoint(tmp_path) is None


def test_a_later_checkpoint_leaves_the_one_before_beside_it_and_nothing_else(tmp_path):
    for round in (1, 2, 3):
        rundir.save_checkpoint(tmp_path, {"round": round})
    assert rundir.load_checkpoint(tmp_path) == {"round": 3}
    found = {path.name: load_state(path)["round"] for path in tmp_path.iterdir()}
    assert found == {"checkpoint.safetensors": 3, "checkpoint.previous.safetensors": 2}


@pytest.mark.parametrize("part", [0.0, 0.2, 0.6, 0.99])
def test_a_truncated_checkpoint_is_refused_by_name(tmp_path, part):
    rundir.save_checkpoint(tmp_path, nested())
    path = tmp_path / "checkpoint.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    with pytest.raises(
        ValueError, match=r"checkpoint\.safetensors must be a checkpoint of fedcohort, got"
    ):
        rundir.load_checkpoint(tmp_path)


def foreign_files():
    from safetensors.numpy import save

    return {
        "text": b"hello",
        "model of someone else": save({"weight": np.zeros(3)}),
        "other metadata": save({"weight": np.zeros(3)}, metadata={"format": "pt"}),
        "state that is no json": save({}, metadata={"state": "{"}),
        "state without its arrays": save(
            {}, metadata={"state": '{"engine": {"array": "/engine", "in": "safetensors"}}'}
        ),
        "state that is no table": save({}, metadata={"state": "[1]"}),
    }


@pytest.mark.parametrize("kind", foreign_files())
def test_a_foreign_checkpoint_is_refused_by_name_and_left_alone(tmp_path, kind):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(foreign_files()[kind])
    with pytest.raises(
        ValueError, match=r"checkpoint\.safetensors must be a checkpoint of fedcohort, got"
    ):
        rundir.load_checkpoint(tmp_path)
    assert path.read_bytes() == foreign_files()[kind]


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(tmp_path):
    rundir.save_checkpoint(tmp_path, {"round": 1})
    with pytest.raises(TypeError):
        rundir.save_checkpoint(tmp_path, {"round": object()})
    assert rundir.load_checkpoint(tmp_path) == {"round": 1}


def chunk(first, count):
    rounds = np.arange(first, first + count)
    return {
        "accuracy": rounds[:, None] / 100 + [0.0, 0.5],
        "clients": np.tile(rounds[:, None, None], (1, 2, 3)),
    }


@pytest.fixture
def folder(tmp_path):
    """Hold rounds 0 to 6 in chunks of 3, 2 and 2."""
    for first, count in ((0, 3), (3, 2), (5, 2)):
        rundir.save_records(tmp_path, first, chunk(first, count))
    return tmp_path


def test_records_of_all_chunks_come_back_in_order(folder):
    assert_same(rundir.load_records(folder, 7), chunk(0, 7))


@pytest.mark.parametrize("rounds", [3, 5])
def test_a_chunk_beyond_the_checkpoint_is_ignored(folder, rounds):
    assert_same(rundir.load_records(folder, rounds), chunk(0, rounds))


def test_chunks_that_have_swapped_places_are_refused(folder):
    records = folder / "records"
    (records / "0000003.npz").rename(records / "swap")
    (records / "0000005.npz").rename(records / "0000003.npz")
    (records / "swap").rename(records / "0000005.npz")
    expected = r"0000003\.npz must hold rounds from 3 on, got those from 5 on"
    with pytest.raises(ValueError, match=expected):
        rundir.load_records(folder, 7)
    with pytest.raises(ValueError, match=expected):
        rundir.load_chunk(records / "0000003.npz")


@pytest.mark.parametrize("value", [np.array([3, 3]), np.array("3"), np.array(np.nan)])
def test_a_chunk_whose_first_round_is_no_number_is_refused(folder, value):
    path = folder / "records" / "0000003.npz"
    save_arrays(path, chunk(3, 2) | {"first_round": value})
    with pytest.raises(ValueError, match=r"0000003\.npz must hold rounds from 3 on, got"):
        rundir.load_chunk(path)


def test_a_chunk_of_an_older_version_does_not_say_its_first_round(folder):
    save_arrays(folder / "records" / "0000003.npz", chunk(3, 2))
    assert_same(rundir.load_records(folder, 7), chunk(0, 7))


def test_rounds_beyond_the_wanted_ones_within_a_chunk_are_cut_off(folder):
    assert_same(rundir.load_records(folder, 4), chunk(0, 4))


def test_a_gap_in_the_records_is_refused(folder):
    (folder / "records" / "0000003.npz").unlink()
    with pytest.raises(ValueError, match=r"records must hold rounds 0 to 6, got 3 of them"):
        rundir.load_records(folder, 7)


def test_records_that_end_too_early_are_refused(folder):
    with pytest.raises(ValueError, match=r"records must hold rounds 0 to 7, got 7 of them"):
        rundir.load_records(folder, 8)


def test_a_damaged_chunk_is_refused_by_name(folder):
    path = folder / "records" / "0000003.npz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"0000003\.npz"):
        rundir.load_records(folder, 7)


def test_a_chunk_written_again_takes_the_place_of_the_first(folder):
    rundir.save_records(folder, 5, chunk(5, 2))
    assert_same(rundir.load_records(folder, 7), chunk(0, 7))
    assert len(list((folder / "records").iterdir())) == 3


def test_the_draft_of_a_chunk_that_a_killed_run_left_behind_does_no_harm(folder):
    with atomic_write(folder / "records" / "0000007.npz") as draft:
        name = draft.name
        draft.write_bytes(b"")
    (folder / "records" / "0000007.npz").rename(
        folder / "records" / name
    )  # as if killed before the last step
    assert_same(rundir.load_records(folder, 7), chunk(0, 7))


def test_the_draft_of_a_checkpoint_that_a_killed_run_left_behind_does_no_harm(tmp_path):
    rundir.save_checkpoint(tmp_path, {"round": 1})
    (tmp_path / f".checkpoint.safetensors.{os.getpid()}.safetensors").write_bytes(b"half")
    assert rundir.load_checkpoint(tmp_path) == {"round": 1}
    rundir.save_checkpoint(tmp_path, {"round": 2})
    assert rundir.load_checkpoint(tmp_path) == {"round": 2}


def test_the_environment_names_the_versions_a_result_depends_on(tmp_path):
    import torch

    rundir.write_settings(tmp_path, {"rounds": 3})
    found = json.loads((tmp_path / "environment.json").read_text())
    assert found["numpy"] == np.__version__
    assert found["torch"] == torch.__version__
    assert {"python", "machine", "fedcohort", "safetensors"} <= set(found)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("settings.toml", Kind.COMPARISON),
        ("settings.json", Kind.SIMULATION),
        ("rounds.jsonl", Kind.FLOWER),
        ("run.json", Kind.FLOWER),
        ("reproduce.json", Kind.REPRODUCTION),
        ("runs/digits-k20-paper-T4-d3d6a394/settings.toml", Kind.REPRODUCTION),
        ("runs/compare/settings.toml", None),
        ("runs-digits.parquet", Kind.REPRODUCTION),
        ("runs-mine.npz", Kind.REPRODUCTION),
        ("runs-old/notes.txt", None),
        ("runs-old.parquet/notes.txt", None),
        ("runs-2024.md", None),
        ("old-runs-digits.parquet", None),
        ("thesis.tex", None),
    ],
)
def test_one_file_says_what_wrote_a_folder(tmp_path, name, kind):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    assert detect_kind(tmp_path) is kind


def test_a_folder_named_like_an_artefact_makes_a_reproduction(tmp_path):
    (tmp_path / "table3").mkdir()
    assert detect_kind(tmp_path) is None
    assert detect_kind(tmp_path, ["table3"]) is Kind.REPRODUCTION
    assert detect_kind(tmp_path / "none", ["table3"]) is None


def test_the_run_folder_needs_no_learning_library_and_no_data(tmp_path):
    code = (
        "import sys, fedcohort.lab.folder; "
        "loaded = {'torch', 'fedcohort.data', 'fedcohort.lab.config'} & set(sys.modules); "
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_chunks_of_other_shapes_are_refused_by_the_name_of_what_they_hold(tmp_path):
    rundir.save_records(tmp_path, 0, {"loss": np.zeros((2, 3))})
    rundir.save_records(tmp_path, 2, {"loss": np.zeros((2, 3, 1))})
    with pytest.raises(ValueError, match="records must hold loss of one shape in all rounds"):
        rundir.load_records(tmp_path)


def test_a_request_that_names_nothing_is_refused(tmp_path):
    rundir.write_request(tmp_path, {"python": "3.11"})
    with pytest.raises(ValueError, match=r"reproduce\.json must name what was reproduced"):
        rundir.read_request(tmp_path)


def test_a_cost_that_is_another_file_of_the_folder_is_refused_by_name(tmp_path):
    rundir.write_environment(tmp_path)
    (tmp_path / rundir.COST).write_bytes((tmp_path / rundir.ENVIRONMENT).read_bytes())
    with pytest.raises(ValueError, match=r"cost\.json must be the cost of a run, got a table of"):
        rundir.read_cost(tmp_path)


def test_an_environment_that_is_another_file_of_the_folder_is_refused_by_name(tmp_path):
    rundir.write_cost(tmp_path, {"part": "one", "seconds": 1.0})
    (tmp_path / rundir.ENVIRONMENT).write_bytes((tmp_path / rundir.COST).read_bytes())
    with pytest.raises(
        ValueError, match=r"environment\.json must be the environment of a run, got"
    ):
        rundir.read_environment(tmp_path)


def test_an_environment_of_which_nothing_is_known_is_not_the_one_here(tmp_path):
    rundir.write_environment(tmp_path, {})
    assert rundir.read_environment(tmp_path) == {}
