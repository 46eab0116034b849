"""Who was asked and who answered in the worlds that chose a reading, and in the others."""

import numpy as np
import pytest
from made import result

from fedcohort.paper.claims.evidence import our_evidence, without_choosing_worlds
from fedcohort.paper.participation import SIMULATION
from fedcohort.paper.results import Results

ROUNDS = 3
POWD = {"selectors": ("pow-d",), "partitions": ("primary-label",)}


@pytest.fixture
def home(tmp_path):
    """A folder with the simulation of Figures 3 and 4, of two seeds and three rounds."""
    SIMULATION.with_overrides({"rounds": ROUNDS, "seeds": 2}).load_or_run(tmp_path, "figure3")
    return tmp_path


def evidence_on(home, dataset):
    """Return evidence of the simulation and of pow-d, trained in worlds 3, 0 and 2.

    In world w the updates that arrived are w + 1, w + 2 and w + 3, and client w was asked thrice.
    """
    runs = []
    for world in (3, 0, 2):
        counts = np.zeros(100)
        counts[world] = 3
        valid = [world + 1, world + 2, world + 3]
        changes = POWD | {"dataset": dataset, "first_seed": world}
        runs.append(result(accuracy=(0.1,) * ROUNDS, counts=counts, valid=valid, **changes))
    overrides = {} if dataset == "cifar10" else {"dataset": dataset}
    return our_evidence(Results(runs, home), overrides)


def test_the_world_that_chose_is_left_out_of_the_trained_scheme_alone(home):
    evidence = evidence_on(home, "cifar10")
    powd = evidence.participation["pow-d"]
    assert sorted(powd.seeds) == [0, 2, 3]
    assert powd.chose == {0}
    rest = without_choosing_worlds(evidence).participation
    # Means of 3, 4, 5 and of 4, 5, 6, of 20 that were asked.
    assert rest["pow-d"].success_ratio(20) == pytest.approx({2: 4 / 20, 3: 5 / 20})
    asked = dict(zip(rest["pow-d"].seeds, rest["pow-d"].counts.argmax(axis=1), strict=True))
    assert asked == {2: 2, 3: 3}
    for name in SIMULATION.config.selectors:  # simulations need no network, so nothing was chosen
        assert rest[name].seeds == (0, 1)


def test_on_data_on_which_nothing_was_chosen_all_worlds_stay(home):
    evidence = evidence_on(home, "digits")
    assert evidence.participation["pow-d"].chose == frozenset()
    assert sorted(without_choosing_worlds(evidence).participation["pow-d"].seeds) == [0, 2, 3]
