"""Selectors and rules by reference, and selectors that weigh clients by their data."""

import numpy as np
import pytest
from fakes import federation
from helpers import cohort_strategy, initial, journal

from fedcohort.flower.data_sizes import DataSizes

OWN = '''
from fedcohort.aggregation.normalised import Normalised
from fedcohort.selection.random import Random


class Mine(Random):
    """Uniform choice under another name."""


class MyRule(Normalised):
    """The mean of those that arrived."""


def make(federation):
    return Mine(federation.num_clients, federation.cohort_size, rng=federation.rng)


number = 3
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["mine.py:Mine", "mine.py:make", "mine:Mine"])
def test_a_selector_of_ones_own_plays_as_the_one_it_is(clock, own, name):
    strategy = cohort_strategy(selector=name, seed=5, folder=own / "mine")
    strategy.start(federation(clock, 6), initial(), num_rounds=4)
    plain = cohort_strategy(selector="random", seed=5, folder=own / "plain")
    plain.start(federation(clock, 6), initial(), num_rounds=4)
    assert type(strategy.selector).__name__ == "Mine"
    assert journal(own / "mine") == journal(own / "plain")


def test_a_rule_of_ones_own_aggregates_as_the_one_it_is(clock, own):
    results = []
    for name in ("mine.py:MyRule", "normalised"):
        strategy = cohort_strategy(aggregation=name, seed=5)
        result = strategy.start(federation(clock, 6), initial(), num_rounds=3)
        results.append(result.arrays["w"].numpy())
    np.testing.assert_array_equal(*results)


def test_a_run_resumes_only_with_the_source_that_it_was_begun_with(clock, own):
    options = {"selector": "mine.py:Mine", "folder": own / "run"}
    cohort_strategy(**options).start(federation(clock, 4), initial(), num_rounds=1)
    cohort_strategy(resume=True, **options).start(federation(clock, 4), initial(), num_rounds=2)
    (own / "mine.py").write_text(OWN + "# changed\n")
    with pytest.raises(ValueError, match=r"source of mine\.py:Mine must be as in"):
        cohort_strategy(resume=True, **options).start(federation(clock, 4), initial())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selector": "mine.py:Main"}, "got no 'Main' there; did you mean 'Mine'"),
        ({"selector": "mine.py:number"}, "must be a subclass of BaseSelector or a function"),
        ({"aggregation": "mine.py:Mine"}, "must be a subclass of Rule, got"),
        ({"selector": "e3cs-0.55"}, "selector must be one of .*, got 'e3cs-0.55'"),
        (
            {"aggregation": "papr"},
            "aggregation must be one of .*, got 'papr'; did you mean 'paper'",
        ),
    ],
)
def test_a_wrong_name_gets_one_line(own, options, message):
    with pytest.raises(ValueError, match=message):
        cohort_strategy(**options)


@pytest.mark.parametrize("name", ["oort", "f3ast", "optimal", "clustered"])
@pytest.mark.parametrize("sizes", ["replies", {"0": 10, "1": 20, "2": 30, "3": 40, "4": 50}])
def test_selectors_by_data_play_by_name(clock, tmp_path, name, sizes):
    """Client i declares i + 1 examples; numbers that were given take precedence."""
    options = {"selector": name, "cohort_size": 2, "loss_key": "train_loss", "data_sizes": sizes}
    strategy = cohort_strategy(folder=tmp_path, **options)
    strategy.start(federation(clock, 6), initial(), num_rounds=12)
    wanted = {index: size for index, size in enumerate(strategy.registry.examples) if size}
    if sizes != "replies":
        wanted = {int(client): size for client, size in sizes.items()}
    for index, size in wanted.items():
        assert strategy.training.data_sizes.look_up(strategy.registry)[index] == size
    if sizes != "replies":
        assert strategy.selector.data_sizes[:5].tolist() == [10, 20, 30, 40, 50]
    resumed = cohort_strategy(folder=tmp_path, resume=True, **options)
    resumed.start(federation(clock, 6), initial(), num_rounds=14)
    assert len(journal(tmp_path)) == 14


def test_a_client_of_unknown_size_counts_as_the_mean_of_the_others(clock):
    strategy = cohort_strategy(cohort_size=3, selector="clustered", data_sizes="replies", seed=1)
    strategy.start(federation(clock, 4), initial(), num_rounds=1)
    known = [size for size in strategy.registry.examples if size is not None]
    sizes = strategy.training.data_sizes.look_up(strategy.registry)
    assert len(known) == 3
    unknown = strategy.registry.examples.index(None)
    assert sizes[unknown] == pytest.approx(np.mean(known))
    assert DataSizes("replies").look_up(federation_of_strangers()).tolist() == [1.0, 1.0]


def federation_of_strangers():
    from fedcohort.flower.clients import ClientRegistry

    return ClientRegistry(2)
