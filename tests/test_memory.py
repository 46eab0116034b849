"""What needs more memory than there is, is refused before anything is allocated."""

import re
import resource

import numpy as np
import pytest
import torch

from fedcohort import memory
from fedcohort.lab.config import ComparisonConfig, SimulationConfig
from fedcohort.lab.runs import run_keys
from fedcohort.lab.simulation import simulate
from fedcohort.learning import Engine, Options, Run, Sgd, make_model
from fedcohort.paper import regret


@pytest.fixture
def machine(monkeypatch):
    """Return a function that gives the machine so many bytes."""

    def give(number):
        monkeypatch.setattr(memory, "_machine_memory", lambda: number)

    return give


def test_the_limit_is_the_smaller_of_machine_and_process(monkeypatch, machine):
    machine(1000)
    assert memory.memory_limit() == 1000
    monkeypatch.setattr(resource, "getrlimit", lambda _: (800, 900))
    assert memory.memory_limit() == 800
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, 900))
    assert memory.memory_limit() == 1000


def test_as_many_bytes_as_there_are_are_accepted_and_one_more_is_not(machine):
    machine(1000)
    memory.check_memory("seeds", "9 seeds", 1000)
    message = "seeds must fit the memory of 1,000 bytes, got 9 seeds, which need at least 1,001"
    with pytest.raises(ValueError, match=message):
        memory.check_memory("seeds", "9 seeds", 1001)


@pytest.mark.parametrize("play", [simulate, regret.play])
def test_a_simulation_is_counted_by_clients_seeds_rounds_and_selectors(machine, play):
    config = SimulationConfig(("e3cs-0", "e3cs-0.5"), clients=8, cohort=3, rounds=12, seeds=2)
    needed = 8 * (2 * 2 * (3 * 12 + 8) + 2 * 2 * 8)
    machine(needed - 1)
    with pytest.raises(ValueError, match=re.escape("8 clients, 2 seeds and 12 rounds of 2")):
        play(config)


def test_a_simulation_that_fits_is_played(machine):
    config = SimulationConfig(("random",), clients=8, cohort=3, rounds=12, seeds=2)
    machine(8 * (2 * (3 * 12 + 8) + 2 * 2 * 8))
    assert simulate(config)["random"].counts.shape == (2, 8)


def test_runs_are_counted_before_they_are_listed():
    config = ComparisonConfig(seeds=2**31 - 1)
    with pytest.raises(ValueError, match="seeds must fit the memory"):
        run_keys(config)


@pytest.mark.parametrize(
    ("epochs", "batch_size", "slots"), [(2**31 - 1, 10, None), (1, 2**31 - 1, None), (1, 10, 2**31)]
)
def test_an_engine_is_refused_by_epochs_batches_and_slots(machine, epochs, batch_size, slots):
    owned = [np.arange(0, 10), np.arange(10, 20)]
    run = Run(seed=0, train=owned, test=np.arange(20, 30), epochs=np.array([1, epochs]))
    model = make_model("mlp", shape=(5,), classes=3, seed=0)
    samples = torch.zeros(30, 5), torch.arange(30) % 3
    options = Options(slots=min(slots, 2**31 - 1) if slots else None)
    machine(2**34)
    with pytest.raises(ValueError, match="epochs, batch_size, slots and the number of runs must"):
        Engine([model], *samples, [run], Sgd(batch_size=batch_size), options)
