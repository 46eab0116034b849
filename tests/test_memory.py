"""What needs more memory than there is, is refused before anything is allocated."""

import os
import re
import resource

import numpy as np
import pytest
import torch

from fedcohort import memory
from fedcohort.data import Dataset
from fedcohort.lab.config import ComparisonConfig, SimulationConfig
from fedcohort.lab.runs import run_keys
from fedcohort.lab.simulation import simulate
from fedcohort.lab.trial import Trial
from fedcohort.learning import Engine, Options, Run, Sgd, make_model
from fedcohort.paper import regret


@pytest.fixture
def machine(monkeypatch):
    """Return a function that gives the machine so many bytes."""

    def give(number):
        monkeypatch.setattr(memory, "_machine_memory", lambda: number)
        monkeypatch.setattr(memory, "_group_memory", lambda: memory.UNLIMITED)

    return give


@pytest.fixture
def system(monkeypatch, tmp_path):
    """Return a function that writes files of a system, by path, in place of the real ones."""
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, 0))

    def write(texts):
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


MEMINFO = """MemTotal:       24684100 kB
MemFree:         1000000 kB
MemAvailable:   20000000 kB
"""


def test_the_process_limit_counts_if_it_is_lower(monkeypatch, machine):
    machine(1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (800, 900))
    assert memory.available_memory() == 800
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, 900))
    assert memory.available_memory() == 1000


def test_on_linux_what_is_available_counts_and_not_what_the_machine_has(system):
    system({"proc/meminfo": MEMINFO})
    assert memory.available_memory() == 20_000_000 * 1024


def test_a_system_that_does_not_say_what_is_available_counts_with_all_it_has(system, monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    assert memory.available_memory() == 4096 * 1000
    system({"proc/meminfo": "MemTotal: 5 kB\n\nMemAvailable:\n"})
    assert memory.available_memory() == 4096 * 1000


def test_a_system_that_says_nothing_has_no_limit(system, monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert memory.available_memory() == memory.UNLIMITED


@pytest.mark.parametrize("around", ["", "outer/"])
def test_a_control_group_leaves_its_limit_less_its_usage_and_caches_give_way(system, around):
    # 9,000 - 7,000 are free, and 300 + 1,500 hold files that can be read again
    folder = f"sys/fs/cgroup/{around}"
    system(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/outer/inner\n",
            f"{folder}memory.max": "9000\n",
            f"{folder}memory.current": "7000\n",
            f"{folder}memory.stat": "anon 5200\nactive_file 300\ninactive_file 1500\n",
            "sys/fs/cgroup/outer/inner/memory.max": "max\n",
            "sys/fs/cgroup/outer/inner/memory.current": "10\n",
        }
    )
    assert memory.available_memory() == 3800


@pytest.mark.parametrize("inside", ["", "docker/a1/"])  # a container may not see its own path
def test_a_control_group_of_version_1_counts_as_well(system, inside):
    folder = f"sys/fs/cgroup/memory/{inside}"
    system(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "5:cpu:/\n4:memory:/docker/a1\n1:name=systemd:/\n0::/\n",
            f"{folder}memory.limit_in_bytes": "9000\n",
            f"{folder}memory.usage_in_bytes": "7000\n",
            f"{folder}memory.stat": "active_file 1\ntotal_active_file 40\ntotal_inactive_file 2\n",
        }
    )
    assert memory.available_memory() == 2042


def test_a_control_group_above_its_limit_leaves_nothing(system):
    system(
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "9000\n",
            "sys/fs/cgroup/memory.current": "9001\n",
        }
    )
    assert memory.available_memory() == 0


def test_a_control_group_without_a_limit_leaves_what_the_machine_has(system):
    system(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "4:memory:/\n0::/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "393625600\n",
            "sys/fs/cgroup/memory.max": "max\n",
            "sys/fs/cgroup/memory.current": "393625600\n",
        }
    )
    assert memory.available_memory() == 20_000_000 * 1024


def test_as_many_bytes_as_there_are_are_accepted_and_one_more_is_not(machine):
    machine(1000)
    memory.check_memory("seeds", "9 seeds", 1000)
    message = (
        "seeds must fit the 1,000 bytes of memory that are available, "
        "got 9 seeds, which need at least 1,001 bytes"
    )
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
    with pytest.raises(ValueError, match=r"seeds must fit the .* bytes of memory"):
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


def test_remembered_updates_and_those_of_a_round_are_counted_together(machine, tmp_path):
    # 2 runs remember 8 updates of 2 bytes a weight. 2 of the 4 clients asked answer on average,
    # and each answer is held twice, in 4 bytes a weight.
    config = ComparisonConfig(
        selectors=("random", "fedcs"),
        partitions=("iid",),
        aggregations=("mifa",),
        seeds=1,
        clients=8,
        cohort=4,
        rounds=2,
        rates=(0.25, 0.75),
        memory_precision="bf16",
    )
    data = Dataset("tiny", x=np.zeros((80, 3), np.float32), y=np.arange(80) % 4, num_classes=4)
    model = make_model("mlp", shape=(3,), classes=4, seed=0)
    weights = sum(parameter.numel() for parameter in model.parameters())
    needed = (2 * 8 * 2 + 2 * 2 * 2 * 4) * weights
    machine(needed)
    Trial(config, data, tmp_path / "run")
    machine(needed - 1)
    message = rf"{needed - 1:,} bytes .* got 2 runs that ask 4 of 8 .* at least {needed:,} bytes"
    with pytest.raises(ValueError, match=message):
        Trial(config, data, tmp_path / "run")


@pytest.mark.parametrize(("epochs", "batch_size"), [(1000, 10), (1, 9000)])
def test_the_samples_of_all_clients_that_answer_are_counted_together(
    machine, tmp_path, epochs, batch_size
):
    # 10 samples per client less 1 to test: an epoch is one batch, padded to its size. In each of
    # 2 runs, 2 of the 4 clients asked answer on average.
    config = ComparisonConfig(
        selectors=("random", "fedcs"),
        partitions=("iid",),
        aggregations=("paper",),
        seeds=1,
        clients=8,
        cohort=4,
        rounds=2,
        rates=(0.25, 0.75),
        epochs=(epochs,),
        batch_size=batch_size,
    )
    data = Dataset("tiny", x=np.zeros((80, 3), np.float32), y=np.arange(80) % 4, num_classes=4)
    needed = 2 * 2 * epochs * batch_size * 8
    machine(needed - 1)
    message = rf"^epochs, batch_size, cohort and seeds must .* at least {needed:,} bytes"
    with pytest.raises(ValueError, match=message):
        Trial(config, data, tmp_path / "run")
