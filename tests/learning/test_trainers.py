from copy import deepcopy
from threading import get_ident

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import cross_entropy

from fedcohort.learning.batches import draw_batches
from fedcohort.learning.jobs import Jobs
from fedcohort.learning.one_by_one import SequentialTrainer
from fedcohort.learning.sgd import Sgd
from fedcohort.learning.trainers import BatchedTrainer
from fedcohort.learning.weights import flat_weights, named_weights
from fedcohort.learning.workers import Workers

SAMPLES, CLASSES = 60, 3
SGD = Sgd(0.05, 0.9, 4)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Compute in one thread: on shared cores, threads in small operations wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def mlp():
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, CLASSES))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8, CLASSES),
    )


SHAPES = {mlp: (5,), cnn: (1, 4, 4)}


def problem(make, lengths, epochs, mus, runs=2, sgd=SGD, seed=0):
    """Return a module, data, models [R, P], and one job per length, with its epochs and mu."""
    torch.manual_seed(seed)
    module = make()
    x = torch.randn(SAMPLES, *SHAPES[make])
    y = torch.randint(CLASSES, (SAMPLES,))
    models = flat_weights(module) + 0.3 * torch.randn(runs, flat_weights(module).numel())
    rng = np.random.default_rng(seed)
    orders = [
        draw_batches(rng.choice(SAMPLES, length, replace=False), count, sgd.batch_size, rng)
        for length, count in zip(lengths, epochs, strict=True)
    ]
    run = rng.integers(runs, size=len(lengths))
    jobs = Jobs(run, orders, torch.tensor(mus, dtype=torch.float32))
    return module, x, y, models, jobs


def by_hand(module, x, y, models, jobs, sgd=SGD):
    """Return changes and mean losses of plain PyTorch in double precision.

    Autograd differentiates the whole FedProx objective.
    """
    changes = []
    losses = []
    for job, rows in enumerate(jobs.batches):
        own = deepcopy(module).double()
        anchor = models[int(jobs.run[job])].double()
        with torch.no_grad():
            for p, start in zip(own.parameters(), named_weights(anchor, own).values(), strict=True):
                p.copy_(start)
        optimiser = torch.optim.SGD(own.parameters(), lr=sgd.rate, momentum=sgd.momentum)
        seen = []
        for row in rows:
            which = row[row >= 0]
            loss = cross_entropy(own(x.double()[which]), y[which])
            away = sum(
                ((p - a) ** 2).sum()
                for p, a in zip(own.parameters(), named_weights(anchor, own).values(), strict=True)
            )
            optimiser.zero_grad()
            (loss + float(jobs.mu[job]) / 2 * away).backward()
            optimiser.step()
            seen.append(loss.item())
        changes.append(flat_weights(own) - anchor)
        losses.append(np.mean(seen))
    return torch.stack(changes).float(), torch.tensor(losses, dtype=torch.float32)


def both(module, x, y, models, jobs, sgd=SGD, slots=3, threads=2):
    workers = Workers(module, threads)
    return (
        BatchedTrainer(workers, x, y, sgd, slots).train(models, jobs),
        SequentialTrainer(workers, x, y, sgd).train(models, jobs),
    )


def assert_same(trained, change, loss):
    """Compare to float32 rounding, relative to how far the model moved."""
    far = float(change.abs().max())
    assert far > 1e-3
    torch.testing.assert_close(trained.change, change, rtol=0, atol=1e-5 * far + 2e-6)
    torch.testing.assert_close(trained.loss, loss, rtol=1e-5, atol=1e-6)


CASES = {
    "fedavg": ([8, 8, 8], [1, 1, 1], [0.0, 0.0, 0.0]),
    "fedprox": ([8, 8, 8], [2, 2, 2], [0.5, 0.5, 0.5]),
    "mixed mu": ([8, 8, 8, 8], [2, 2, 2, 2], [0.0, 1.0, 0.0, 3.0]),
    "unequal sizes": ([1, 5, 13, 22, 4], [1] * 5, [0.0] * 5),
    "unequal epochs": ([9] * 4, [1, 4, 2, 3], [0.1] * 4),
    "batch larger than a client": ([1, 2, 3], [3, 2, 1], [0.2, 0.0, 0.2]),
    "one job": ([10], [2], [0.3]),
    "as many jobs as slots": ([5, 6, 7], [1, 1, 1], [0.0] * 3),
    "many more jobs than slots": (
        [3 + i for i in range(14)],
        [1 + i % 3 for i in range(14)],
        [0.1 * (i % 2) for i in range(14)],
    ),
}


@pytest.mark.parametrize("make", [mlp, cnn])
@pytest.mark.parametrize("case", CASES)
def test_together_and_one_by_one_equal_plain_pytorch(make, case):
    given_problem = problem(make, *CASES[case])
    change, loss = by_hand(*given_problem)
    for trained in both(*given_problem):
        assert_same(trained, change, loss)


@pytest.mark.parametrize(("slots", "threads"), [(1, 1), (2, 3), (8, 0), (40, 2)])
def test_together_does_not_depend_on_slots_and_threads_but_for_rounding(slots, threads):
    given_problem = problem(mlp, *CASES["many more jobs than slots"])
    change, loss = by_hand(*given_problem)
    assert_same(both(*given_problem, slots=slots, threads=threads)[0], change, loss)


@settings(max_examples=25, deadline=None)
@given(
    make=st.sampled_from([mlp, cnn]),
    jobs=st.lists(
        st.tuples(st.integers(1, 15), st.integers(1, 3), st.sampled_from([0.0, 0.1, 2.0])),
        min_size=1,
        max_size=6,
    ),
    slots=st.integers(1, 5),
    batch_size=st.integers(1, 9),
    momentum=st.sampled_from([0.0, 0.5, 0.9]),
    seed=st.integers(0, 1000),
)
def test_training_together_equals_training_one_by_one(
    make, jobs, slots, batch_size, momentum, seed
):
    sgd = Sgd(0.05, momentum, batch_size)
    given_problem = problem(make, *zip(*jobs, strict=True), sgd=sgd, seed=seed)
    together, alone = both(*given_problem, sgd=sgd, slots=slots, threads=1)
    assert_same(together, alone.change, alone.loss)


@pytest.mark.parametrize("make", [mlp, cnn])
def test_one_by_one_gives_the_same_bits_for_any_number_of_threads(make):
    module, x, y, models, jobs = problem(make, *CASES["many more jobs than slots"])
    trained = [
        SequentialTrainer(Workers(module, threads), x, y, SGD).train(models, jobs)
        for threads in (1, 2, 5)
    ]
    for other in trained[1:]:
        assert torch.equal(other.change, trained[0].change)
        assert torch.equal(other.loss, trained[0].loss)


@pytest.mark.parametrize("way", [0, 1], ids=["together", "one-by-one"])
def test_training_again_gives_the_same_bits(way):
    given_problem = problem(mlp, *CASES["mixed mu"])
    first, again = (both(*given_problem)[way] for _ in range(2))
    assert torch.equal(first.change, again.change)
    assert torch.equal(first.loss, again.loss)


@pytest.mark.parametrize("way", [0, 1], ids=["together", "one-by-one"])
def test_neither_the_models_nor_the_module_nor_the_data_are_changed(way):
    module, x, y, models, jobs = problem(mlp, *CASES["fedprox"])
    before = [value.clone() for value in (models, flat_weights(module), x, y)]
    both(module, x, y, models, jobs)[way]
    assert all(
        torch.equal(a, b) for a, b in zip(before, (models, flat_weights(module), x, y), strict=True)
    )


@pytest.mark.parametrize("way", [0, 1], ids=["together", "one-by-one"])
def test_momentum_starts_from_zero_for_every_job_of_a_slot(way):
    module, x, y, models, jobs = problem(mlp, [8] * 4, [2] * 4, [0.0] * 4, runs=1)
    same = Jobs(jobs.run, [jobs.batches[0]] * 4, jobs.mu)
    change = both(module, x, y, models, same, slots=1, threads=1)[way].change
    torch.testing.assert_close(change, change[:1].expand(4, -1), rtol=0, atol=0)


def test_fedprox_stays_nearer_to_where_it_started():
    free = problem(mlp, [12, 12], [3, 3], [0.0, 0.0])
    bound = problem(mlp, [12, 12], [3, 3], [5.0, 5.0])
    for way in (0, 1):
        assert (
            both(*bound)[way].change.norm(dim=1) < 0.9 * both(*free)[way].change.norm(dim=1)
        ).all()


@pytest.mark.parametrize("way", [0, 1], ids=["together", "one-by-one"])
def test_a_job_that_becomes_nan_does_not_touch_the_next_job_in_its_slot(way):
    module, x, y, models, jobs = problem(mlp, [12, 8, 8], [1, 1, 1], [0.1, 0.1, 0.1])
    change, loss = by_hand(module, x, y, models, jobs)
    poison = torch.full_like(x, torch.nan)  # a second copy of the data, for the first job alone
    orders = [jobs.batches[0] + SAMPLES, *jobs.batches[1:]]
    spoilt = Jobs(jobs.run, orders, jobs.mu)
    trained = both(
        module, torch.cat([x, poison]), torch.cat([y, y]), models, spoilt, slots=1, threads=1
    )[way]
    assert not torch.isfinite(trained.change[0]).any()
    torch.testing.assert_close(trained.change[1:], change[1:], rtol=0, atol=1e-5)
    torch.testing.assert_close(trained.loss[1:], loss[1:])


@pytest.mark.parametrize("way", [0, 1], ids=["together", "one-by-one"])
def test_a_sample_that_a_job_does_not_own_cannot_spoil_its_partial_batches(way):
    module, x, y, models, jobs = problem(mlp, [5, 5], [1, 1], [0.0, 0.0])
    orders = [np.where(rows == 0, 1, rows) for rows in jobs.batches]  # nobody owns sample 0
    x[0] = torch.nan
    trained = both(module, x, y, models, Jobs(jobs.run, orders, jobs.mu), slots=2, threads=1)[way]
    assert torch.isfinite(trained.change).all()
    assert torch.isfinite(trained.loss).all()


class WithSpare(nn.Module):
    """A module with a parameter that its output does not depend on."""

    def __init__(self):
        super().__init__()
        self.out, self.spare = nn.Linear(5, CLASSES), nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.out(x)


def frozen():
    module = mlp()
    module[0].weight.requires_grad_(False)
    return module


@pytest.mark.parametrize("mu", [0.0, 0.5])
@pytest.mark.parametrize("make", [WithSpare, frozen])
def test_both_ways_agree_on_a_parameter_that_is_unused_or_frozen(monkeypatch, make, mu):
    monkeypatch.setitem(SHAPES, make, (5,))
    together, alone = both(*problem(make, [8, 8], [2, 2], [mu, mu]))
    assert_same(together, alone.change, alone.loss)


def threads_at_work(monkeypatch, work_per_thread, count=2):
    """Return the threads that take steps when a trainer has several workers."""
    monkeypatch.setattr("fedcohort.learning.workers.WORK_PER_THREAD", work_per_thread)
    module, x, y, models, jobs = problem(mlp, *CASES["many more jobs than slots"])
    trainer = BatchedTrainer(Workers(module, count), x, y, SGD, 4)
    threads = set()
    own_slots = trainer._own_slots

    def recorded_slots(*args):
        threads.add(get_ident())
        return own_slots(*args)

    monkeypatch.setattr(trainer, "_own_slots", recorded_slots)
    change, loss = by_hand(module, x, y, models, jobs)
    assert_same(trainer.train(models, jobs), change, loss)
    return threads


def test_small_models_are_trained_by_one_thread_and_large_ones_by_all(monkeypatch):
    assert len(threads_at_work(monkeypatch, work_per_thread=10**6)) == 1
    assert trainers_parts(monkeypatch, work_per_thread=1) == 2


def trainers_parts(monkeypatch, work_per_thread):
    monkeypatch.setattr("fedcohort.learning.workers.WORK_PER_THREAD", work_per_thread)
    module, x, y, _, _ = problem(mlp, [8], [1], [0.0])
    return BatchedTrainer(Workers(module, 2), x, y, SGD, 4)._parts


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("make", [mlp, cnn, frozen])
def test_a_recorded_step_gives_the_same_bits(monkeypatch, make, parts):
    monkeypatch.setitem(SHAPES, frozen, (5,))
    module, x, y, models, jobs = problem(make, *CASES["many more jobs than slots"])
    trainers = []
    for steps in (0, 10**9):
        monkeypatch.setattr("fedcohort.learning.trainers.STEPS_BEFORE_RECORDING", steps)
        trainer = BatchedTrainer(Workers(module, parts), x, y, SGD, 4)
        trainer._parts = parts
        trainers.append((trainer, trainer.train(models, jobs)))
    (recorded, its_updates), (plain, updates) = trainers
    assert recorded._replay is not None
    assert plain._replay is None
    assert torch.equal(its_updates.change, updates.change)
    assert torch.equal(its_updates.loss, updates.loss)
