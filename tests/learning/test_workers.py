from threading import Barrier

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from fedcohort.learning.workers import (
    LARGE_BLOCK,
    WORK_PER_THREAD,
    Workers,
    most_kept_samples,
    multiply_adds,
    suitable_parts,
)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_results_come_in_the_order_of_the_items(threads):
    workers = Workers(nn.Linear(1, 1), threads)
    assert workers.map(lambda item: item * item, range(20)) == [item * item for item in range(20)]


def test_each_thread_has_a_copy_of_its_own():
    module = nn.Linear(1, 1)
    workers = Workers(module, 2)
    barrier = Barrier(2, timeout=30)

    def own_module(_):
        barrier.wait()  # so that each of the two threads takes one item
        return workers.module()

    first, second = workers.map(own_module, range(2))
    assert first is not second
    assert module is not first
    assert module is not second
    assert first.weight.equal(module.weight)


def test_without_threads_the_caller_works_with_the_module_itself():
    module = nn.Linear(1, 1)
    workers = Workers(module, 0)
    assert workers.count == 1
    assert workers.map(lambda _: workers.module(), range(1)) == [module]


def test_multiply_adds_count_each_weight_wherever_it_is_applied():
    # The convolution multiplies its 2 * 3 * 3 weights at 4 * 4 places, the layer each of its
    # 2 * 16 * 5 weights once.
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(32, 5))
    assert multiply_adds(module, torch.zeros(1, 1, 6, 6)) == 18 * 16 + 160
    assert not any(layer._forward_hooks for layer in module.modules())


def test_a_model_without_known_layers_counts_by_its_parameters():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.matrix = nn.Parameter(torch.zeros(3, 4))

        def forward(self, x):
            return x @ self.matrix.T

    assert multiply_adds(Own(), torch.zeros(1, 4)) == 12


def test_the_largest_output_of_a_layer_says_how_many_samples_pass_in_kept_memory():
    # The convolution gives 3 * 4 * 4 numbers of 4 bytes, more than the input and the other layer.
    module = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Flatten(), nn.Linear(48, 5))
    assert most_kept_samples(module, torch.zeros(1, 1, 6, 6)) == LARGE_BLOCK // 2 // (48 * 4)
    assert not any(layer._forward_hooks for layer in module.modules())
    assert most_kept_samples(module, torch.zeros(2, 1, 6, 6)) == LARGE_BLOCK // 2 // (48 * 4)
    assert most_kept_samples(nn.Identity(), torch.zeros(1, LARGE_BLOCK)) == 8


def test_a_module_that_computes_a_weight_does_not_say_how_many_samples_pass():
    module = nn.Sequential(weight_norm(nn.Linear(500, 70)), nn.Linear(70, 3))
    assert most_kept_samples(module, torch.zeros(2, 500)) == LARGE_BLOCK // 2 // (500 * 4)


@pytest.mark.parametrize(
    ("work", "threads", "parts"),
    [
        (0, 8, 1),
        (2 * WORK_PER_THREAD - 1, 8, 1),
        (2 * WORK_PER_THREAD, 8, 2),
        (100 * WORK_PER_THREAD, 8, 8),
        (100 * WORK_PER_THREAD, 1, 1),
    ],
)
def test_a_thread_more_needs_work_for_it(work, threads, parts):
    assert suitable_parts(work, threads) == parts
