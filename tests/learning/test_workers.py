from threading import Barrier

import pytest
from torch import nn

from fedcohort.learning.workers import Workers


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
