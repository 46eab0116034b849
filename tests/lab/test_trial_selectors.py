"""Every selector in a comparison: it gets what it needs, and goes on exactly after a stop."""

import numpy as np
import pytest
import torch
from test_trial import CLIENTS, DATA, make_config

from fedcohort.lab import folder as run_folder
from fedcohort.lab.trial import Trial
from fedcohort.selection.protocol import NOBODY
from fedcohort.selection.registry import SELECTORS

EVERY = make_config(selectors=tuple(SELECTORS), partitions=("primary-label",), jitter=0.3, rounds=8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a comparison of all selectors that was played without a stop."""
    trial = Trial(EVERY, DATA, tmp_path_factory.mktemp("whole"))
    trial.run()
    return trial


def test_every_selector_goes_on_after_a_stop_as_if_there_was_none(whole, tmp_path):
    part = Trial(EVERY, DATA, tmp_path / "part")
    rounds = iter(range(1, 9))
    part.run(should_stop=lambda: next(rounds) == 5)
    resumed = Trial(EVERY, DATA, tmp_path / "part")
    resumed.restore()
    assert resumed.done == 5
    resumed.run()

    expected = run_folder.load_records(whole.folder)
    found = run_folder.load_records(resumed.folder)
    for name in ("clients", "arrived", "seconds", "accuracy"):
        np.testing.assert_array_equal(found[name], expected[name])
    assert torch.equal(resumed.engine.models, whole.engine.models)


def test_every_run_asks_its_cohort_and_over_selection_closes_rounds_early(whole):
    records = run_folder.load_records(whole.folder)
    clients = records["clients"]
    assert clients.max() < CLIENTS
    asked = (clients != NOBODY).sum(axis=-1)
    for position, key in enumerate(whole.keys):
        size = 4 if key.selector == "over-selection" else 3  # 1.3 * 3, rounded up
        assert (asked[:, position] == size).all()
    over = [row for row, key in enumerate(whole.keys) if key.selector == "over-selection"]
    assert records["arrived"][:, over].sum(axis=-1).max() <= 3


def test_a_model_that_diverged_has_the_highest_loss_and_the_comparison_goes_on(tmp_path):
    config = make_config(selectors=("pow-d",), partitions=("iid",), rounds=2, candidates=CLIENTS)
    trial = Trial(config, DATA, tmp_path)
    losses = np.array([[1.0, np.nan, 2.0, 3.0, np.inf, 9.0, 4.0, 5.0]] * 2)
    trial.engine.losses = lambda rows, clients: np.take_along_axis(losses[rows], clients, axis=-1)
    assert trial.selector.select(0).clients.tolist() == [[1, 4, 5], [1, 4, 5]]


def test_pow_d_plays_on_when_its_models_have_diverged(tmp_path):
    config = make_config(selectors=("pow-d",), partitions=("iid",), rounds=3)
    trial = Trial(config, DATA, tmp_path)
    trial.engine.models.fill_(float("nan"))
    trial.run()
    assert trial.done == 3
