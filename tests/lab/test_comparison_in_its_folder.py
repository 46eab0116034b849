"""A comparison begins, goes on or is refused, depending on what its folder holds."""

from dataclasses import replace

import pytest

from fedcohort.lab import comparison
from fedcohort.lab.comparison import load_comparison, run_comparison
from fedcohort.lab.config import ComparisonConfig

CONFIG = ComparisonConfig(
    selectors=("random",),
    partitions=("iid",),
    aggregations=("paper",),
    seeds=1,
    clients=4,
    cohort=2,
    rounds=2,
    mode="one-by-one",
)


@pytest.mark.parametrize("exists", [False, True])
def test_a_run_that_begins_while_another_loads_its_data_is_refused(tmp_path, monkeypatch, exists):
    folder = tmp_path / "run"
    if exists:
        folder.mkdir()
    load = comparison.load

    def begin_another(*args, **options):
        monkeypatch.setattr(comparison, "load", load)
        with pytest.raises(ValueError, match="out must not be in use by another process"):
            run_comparison(replace(CONFIG, first_seed=100), folder)
        return load(*args, **options)

    monkeypatch.setattr(comparison, "load", begin_another)
    run_comparison(CONFIG, folder)
    assert load_comparison(folder).config == CONFIG


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(ValueError, match=r"missing\.npz"):
        run_comparison(replace(CONFIG, dataset=str(tmp_path / "missing.npz")), folder)
    assert not folder.exists()
