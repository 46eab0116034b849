import numpy as np
import pytest
import torch

from fedcohort.learning.tuning import suitable_slots

CPU = torch.device("cpu")
SLOTS = {  # one for each of those asked, where all train equally long; in fours
    "20": (20, 20),
    "22": (22, 24),
    "one": (1, 4),
    "two waves of 300, not 512 and then 88": (600, 300),
}


@pytest.mark.parametrize(("asked", "slots"), SLOTS.values(), ids=SLOTS)
def test_slots_grow_with_how_many_are_asked(asked, slots):
    assert suitable_slots(asked, np.array([3, 3, 3]), CPU, bytes_per_slot=1) == slots


def test_clients_that_end_early_make_room_for_others():
    assert suitable_slots(80, np.array([4, 2, 2, 0]), CPU, bytes_per_slot=1) == 40  # half of 80


def test_on_a_cpu_memory_is_a_limit_too():
    gigabyte = 2**30
    assert suitable_slots(20, np.array([3]), CPU, bytes_per_slot=gigabyte) == 8  # waves of 7


def test_on_a_gpu_memory_is_the_limit(monkeypatch):
    free = {"mem_get_info": (6000, 99999), "memory_reserved": 5000, "memory_allocated": 1000}
    for name, value in free.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    gpu = torch.device("cuda")
    assert suitable_slots(100.0, np.array([1]), gpu, bytes_per_slot=1) == 96  # those asked
    # 0.6 of 6,000 free and 4,000 kept is 6,000.
    assert suitable_slots(100.0, np.array([1]), gpu, bytes_per_slot=150) == 40
