"""What a comparison gives its aggregation rules, and which selectors it refuses for them."""

from itertools import islice

import numpy as np
import pytest
from test_trial import DATA, make_config

from fedcohort.lab.comparison import run_comparison
from fedcohort.lab.trial import Trial

OFFLINE = {
    "selectors": ("random", "f3ast"),
    "partitions": ("iid",),
    "aggregations": ("inverse-estimated",),
    "world": "markov",
    "world_options": ("cycle=6",),
    "rates": (0.2, 0.6),
    "knows_offline": True,
}


def learnt(trial):
    """Return what the only rule of a trial has learnt."""
    return trial.engine.state_dict()["rules"]["inverse-estimated"]


def test_a_rule_counts_the_rounds_in_which_each_client_is_online(tmp_path):
    trial = Trial(make_config(**OFFLINE), DATA, tmp_path)
    online = np.stack(list(islice(trial.open_world().available, 8))).sum(axis=0)
    trial.run()

    state = learnt(trial)
    assert (state["rounds"] == 8).all()
    assert not (online == 8).all()
    for row, key in enumerate(trial.keys):
        # The weights of f3ast count absence already.
        expected = online[row] if key.selector == "random" else np.full(8, 8)
        assert state["available"][row].tolist() == expected.tolist()


def test_counts_of_rounds_online_go_on_after_a_stop(tmp_path):
    whole = Trial(make_config(**OFFLINE), DATA, tmp_path / "whole")
    whole.run()
    part = Trial(make_config(**OFFLINE), DATA, tmp_path / "part")
    rounds = iter(range(1, 9))
    part.run(should_stop=lambda: next(rounds) == 5)
    resumed = Trial(make_config(**OFFLINE), DATA, tmp_path / "part")
    resumed.restore()
    resumed.run()
    np.testing.assert_equal(learnt(resumed), learnt(whole))


@pytest.mark.parametrize("selector", ["pow-d", "rpow-d", "fedcs-time"])
@pytest.mark.parametrize("rule", ["inverse", "inverse-normalised-estimated"])
def test_rules_that_divide_by_inclusion_are_refused_where_nobody_knows_it(tmp_path, selector, rule):
    config = make_config(selectors=("random", selector), aggregations=("paper", rule))
    message = f"by inclusion probabilities with the selector '{selector}', .* got '{rule}'"
    with pytest.raises(ValueError, match=message):
        Trial(config, DATA, tmp_path)


def test_a_sampler_that_misses_the_inclusion_is_refused_before_anything_is_trained(tmp_path):
    rules = ("paper", "inverse-estimated")
    selectors = ("random", "e3cs-0")
    config = make_config(selectors=selectors, aggregations=rules, sampler="successive")
    refusal = "'e3cs-0', whose sampler misses them, got 'inverse-estimated'; use the sampler"
    with pytest.raises(ValueError, match=refusal):
        run_comparison(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("rule", ["inverse", "inverse-normalised"])
def test_true_rates_are_refused_where_rounds_close_early(tmp_path, rule):
    config = make_config(selectors=("over-selection",), aggregations=(rule,))
    message = f"success rates with the selector 'over-selection', .* got '{rule}'; use inverse-est"
    with pytest.raises(ValueError, match=message):
        Trial(config, DATA, tmp_path)


def test_estimated_rates_are_allowed_where_rounds_close_early(tmp_path):
    config = make_config(selectors=("over-selection",), aggregations=("inverse-estimated",))
    assert Trial(config, DATA, tmp_path).selector.enough.tolist() == [3] * 4


@pytest.mark.parametrize("rule", ["inverse", "inverse-normalised"])
def test_true_rates_are_refused_for_weights_that_count_absence_already(tmp_path, rule):
    config = make_config(**{**OFFLINE, "aggregations": (rule,)})
    message = f"success rates with the selector 'f3ast', .* got '{rule}'; use inverse-estimated"
    with pytest.raises(ValueError, match=message):
        Trial(config, DATA, tmp_path)
