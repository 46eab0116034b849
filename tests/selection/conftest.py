import numpy as np
import pytest
from hypothesis import settings

from fedcohort.selection.protocol import Outcome
from fedcohort.selection.registry import Federation, make_selector
from fedcohort.selection.sampling import SAMPLERS
from fedcohort.world.classes import class_rates

settings.register_profile("selection", deadline=None, derandomize=True, max_examples=150)
settings.load_profile("selection")

NUM_CLIENTS, COHORT_SIZE, HORIZON = 12, 4, 24
DEADLINE = 10.0


@pytest.fixture
def build():
    """Return a maker of small selectors by name, with all that any of them may know."""

    def make(
        name, rng=0, num_clients=NUM_CLIENTS, cohort_size=COHORT_SIZE, horizon=HORIZON, **more
    ):
        return make_selector(
            name,
            Federation(
                num_clients,
                cohort_size,
                rng,
                horizon=horizon,
                success_rates=class_rates(num_clients),
                loss_of=lambda clients: np.cos(3.0 * clients),
                data_sizes=10 + 7 * np.arange(num_clients) % 30,
                deadline=DEADLINE,
                **more,
            ),
        )

    return make


@pytest.fixture
def report():
    """Return a maker of outcomes, which depend on the round and the client alone.

    So every selector meets the same world.
    """

    def make(cohort):
        chance = np.random.default_rng(cohort.round).random((2, 1000))
        success = chance[0][cohort.clients] < 0.6
        value = chance[1][cohort.clients]
        reported = np.where(success, value, np.nan)
        seconds = np.where(success, DEADLINE * value, DEADLINE)
        return Outcome(cohort, success, loss=reported, seconds=seconds, norm=2 * reported)

    return make


@pytest.fixture
def prescribe(monkeypatch):
    """Return a function that makes E3CS draw these clients next, whatever p is.

    The p that E3CS passed to the sampler is in its attribute `seen`.
    """

    def choose(*clients):
        def sampler(p, rng, size=None):
            choose.seen = p.copy()
            return np.sort(np.array(clients))

        monkeypatch.setitem(SAMPLERS, "systematic", sampler)

    return choose
