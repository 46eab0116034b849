import pytest
import torch
from torch import nn

from fedcohort.learning.sgd import Sgd, make_batched_step
from fedcohort.learning.slots import Slots


@pytest.fixture
def slots():
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    x = torch.randn(10, 3)
    y = torch.randint(2, (10,))
    return Slots(make_batched_step(module, Sgd(0.1)), x, y, 4, 8, 5, recorded=False)


def test_a_slot_starts_anew_with_every_job(slots):
    first = torch.randn(1, 8)
    at = torch.tensor([1])
    samples = torch.randint(10, (4, 5))
    results = []
    for _ in range(2):
        slots.start(at, first, torch.tensor([0.5]))
        slots.step(samples)
        slots.step(samples)
        results.append((slots.change(at), slots.total_loss[at]))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert results[0][0].abs().max() > 0


def test_only_the_first_slots_step_where_fewer_have_samples(slots):
    every = torch.arange(4)
    slots.start(every, torch.randn(4, 8), torch.zeros(4))
    slots.step(torch.randint(10, (2, 5)))
    moved = slots.change(every).abs().amax(dim=1) > 0
    assert moved.tolist() == [True, True, False, False]


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_no_two_arguments_of_a_step_share_memory(precision):
    taken = []
    x = torch.randn(10, 3).to(precision)
    slots = Slots(lambda *args: taken.extend(args), x, torch.zeros(10), 4, 8, 5, recorded=False)
    slots.step(torch.zeros(3, 5, dtype=torch.int64))
    places = [part.data_ptr() for part in taken if part.numel()]
    assert len(set(places)) == len(places)


def test_the_rounded_weights_follow_the_weights():
    x = torch.randn(10, 3).bfloat16()
    slots = Slots(lambda *args: None, x, torch.zeros(10), 4, 8, 5, recorded=False)
    weights = torch.randn(2, 8)
    slots.start(torch.tensor([2, 0]), weights, torch.zeros(2))
    assert torch.equal(slots._rounded[[2, 0]], weights.bfloat16())
