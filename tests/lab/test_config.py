import tomllib
from dataclasses import fields
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcohort.files import read_toml, to_toml
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.runs import RunKey, run_groups, run_keys

QUICK = settings(max_examples=100, deadline=None)


def test_the_default_settings_come_back_from_toml():
    assert (
        ComparisonConfig.from_dict(tomllib.loads(to_toml(ComparisonConfig().as_dict())))
        == ComparisonConfig()
    )


def test_settings_of_every_type_come_back_from_toml(tmp_path):
    of = ComparisonConfig(
        dataset='my "own" \\ data.npz',
        selectors=("random",),
        mus=(0.0, 1e-7, 2.5),
        deadline=3.25,
        max_norm=inf,
        samples_per_client=7,
        compiled=True,
        eta="auto",
        candidates=None,
        targets=(1.0,),
        learning_rate=1e-12,
    )
    run_folder.write_settings(tmp_path, of.as_dict())
    assert ComparisonConfig.from_dict(run_folder.read_settings(tmp_path)) == of
    assert "candidates" not in run_folder.read_settings(tmp_path)


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
    "dataset": 5,
    "model": 5,
    "selectors": 5,
    "partitions": "iid",
    "mus": "0",
    "mus ": 0.5,
    "rates": 0.5,
    "rounds": "many",
    "rounds ": 2.5,
    "rounds  ": True,
    "epochs": [1.5],
    "max_norm": "big",
    "max_norm ": nan,
    "max_norm  ": -1.0,
    "compiled": "no",
    "device": 3,
    "deadline": "soon",
    "seeds": inf,
    "jitter": nan,
    "targets": [[0.5]],
    "mode": [],
}


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


def test_a_group_holds_the_rows_of_each_selector_and_has_one_label():
    config = ComparisonConfig(
        selectors=("random", "fedcs"), partitions=("iid",), mus=(0.0, 1.0), seeds=2, first_seed=5
    )
    keys = run_keys(config)
    groups = run_groups(config)
    assert [group.label for group in groups] == [
        "iid data, paper rule, mu 0",
        "iid data, paper rule, mu 1",
        "iid data, normalised rule, mu 0",
        "iid data, normalised rule, mu 1",
    ]
    for group in groups:
        assert group.seeds == [5, 6]
        for selector, rows in group.rows.items():
            found = [keys[row] for row in rows]
            assert found == [
                RunKey(selector, group.partition, group.aggregation, group.mu, seed)
                for seed in group.seeds
            ]


def test_a_label_names_mu_only_where_there_are_several():
    config = ComparisonConfig(partitions=("iid",), aggregations=("paper",))
    assert [group.label for group in run_groups(config)] == ["iid data, paper rule"]


def test_whole_numbers_are_kept_as_floats_where_a_setting_is_a_number():
    config = ComparisonConfig(mus=(0, 2), deadline=3, server_rate=2**70, eta=1, rates=(1, 0.5))
    assert repr(config.mus) == "(0.0, 2.0)"
    assert repr(config.deadline) == "3.0"
    assert repr(config.server_rate) == repr(float(2**70))
    assert repr(config.eta) == "1.0"
    assert repr(config.rates) == "(1.0, 0.5)"


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("-inf"), 10**400])
def test_max_norm_is_a_number_above_zero(value):
    with pytest.raises(ValueError, match="max_norm must be a finite number above 0"):
        ComparisonConfig(max_norm=value)


@pytest.mark.parametrize("value", ["a\0.npz", "bad-\udcff.npz"])
@pytest.mark.parametrize("name", ["dataset", "world_file", "device"])
def test_a_name_that_no_settings_file_can_hold_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be text in UTF-8 without zero bytes"):
        ComparisonConfig(**{name: value})
