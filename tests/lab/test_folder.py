import json
import os
import tomllib
from dataclasses import fields
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcohort.files import atomic_write, read_toml, to_toml
from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.runs import RunKey, run_keys

QUICK = settings(max_examples=100, deadline=None)


def test_the_default_settings_come_back_from_toml():
    assert (
        ComparisonConfig.from_dict(tomllib.loads(to_toml(ComparisonConfig().as_dict())))
        == ComparisonConfig()
    )


def test_settings_of_every_type_come_back_from_toml(tmp_path):
    of = ComparisonConfig(
        dataset='my "own" \\ data.npz', selectors=("random",), mus=(0.0, 1e-7, 2.5), deadline=3.25, max_norm=inf,
        samples_per_client=7, compiled=True, eta="auto", candidates=None, targets=(1.0,), learning_rate=1e-12,
    )  # fmt: skip
    rundir.write_settings(tmp_path, of.as_dict())
    assert ComparisonConfig.from_dict(rundir.read_settings(tmp_path)) == of
    assert "candidates" not in rundir.read_settings(tmp_path)


@QUICK
@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.one_of(
            st.booleans(),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False),
            st.text(st.characters(exclude_categories=["Cs"])),
            st.lists(st.floats(allow_nan=False)),
        ),
    )
)
def test_flat_values_come_back_from_toml(values):
    found = tomllib.loads(to_toml(values))
    assert found == values
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in values.items()
    }


def test_an_unknown_setting_gets_the_nearest_name():
    with pytest.raises(
        ValueError, match=r"setting must be one of .*, got 'cohorts'; did you mean 'cohort'"
    ):
        ComparisonConfig.from_dict({"cohorts": 4})


@pytest.mark.parametrize(
    "text", ["rounds = ", "\x00", "[a\nb"], ids=["cut off", "binary", "no table"]
)
def test_a_settings_file_that_is_no_toml_is_refused_by_name(tmp_path, text):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=r"mine\.toml must be a settings file in TOML, got"):
        read_toml(tmp_path / "mine.toml")


def test_a_settings_file_that_is_not_there_or_not_text_is_refused_by_name(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("none.toml", "bytes.toml"):
        with pytest.raises(ValueError, match=rf"{name} must be a settings file"):
            read_toml(tmp_path / name)


WRONG_TYPES = {
    "dataset": 5, "model": 5, "selectors": 5, "partitions": "iid", "mus": "0", "mus ": 0.5, "rates": 0.5, "rounds": "many",
    "rounds ": 2.5, "rounds  ": True, "epochs": [1.5], "max_norm": "big", "max_norm ": nan, "max_norm  ": -1.0,
    "compiled": "no", "device": 3, "deadline": "soon", "seeds": inf, "jitter": nan, "targets": [[0.5]], "mode": [],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_a_setting_of_the_wrong_type_or_range_is_refused_with_a_value_error_that_names_it(name):
    setting = name.strip()
    with pytest.raises(ValueError, match=rf"{setting.removesuffix('s')}|settings"):
        ComparisonConfig.from_dict({setting: WRONG_TYPES[name]})


def test_every_setting_says_what_it_means():
    assert [
        setting.name for setting in fields(ComparisonConfig) if not setting.metadata.get("help")
    ] == []


def test_runs_stand_in_the_order_of_their_selectors_and_none_is_missing():
    of = ComparisonConfig(
        selectors=("random", "fedcs"), partitions=("iid",), mus=(0.0, 1.0), seeds=2, first_seed=5
    )
    found = run_keys(of)
    assert len(found) == len(set(found)) == 2 * 1 * 2 * 2 * 2
    assert [place.selector for place in found] == ["random"] * 8 + ["fedcs"] * 8
    assert RunKey("fedcs", "iid", "paper", 1.0, 6) in found


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


def test_a_later_checkpoint_takes_the_place_of_the_earlier_and_leaves_nothing_beside_it(tmp_path):
    for round in (1, 2):
        rundir.save_checkpoint(tmp_path, {"round": round})
    assert rundir.load_checkpoint(tmp_path) == {"round": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]


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
