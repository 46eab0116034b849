"""MIFA and FedVARP: what they make of updates that arrived in earlier rounds."""

import numpy as np
import pytest
import torch

from fedcohort.aggregation.base import Setting
from fedcohort.aggregation.combination import combine
from fedcohort.aggregation.fedvarp import FedVARP
from fedcohort.learning.update_memory import UpdateMemory

CHANGE = torch.tensor([[1.0] * 4, [2.0] * 4, [4.0] * 4])


def moves(engine, play_round, rounds):
    """Return by how much the first weight moves in each round."""
    path = []
    for round, arrived in enumerate(rounds):
        before = engine.models[0, 0].item()
        play_round(engine, round, arrived)
        path.append(engine.models[0, 0].item() - before)
    return path


def test_mifa_by_hand(make_engine, play_round):
    # Round 0: only client 0 is heard of: 0.2 * 1 = 0.2.
    # Round 1: clients 0 (remembered) and 2: 0.2 * 1 + 0.5 * 4 = 2.2.
    # Round 2: nobody: the model stays. Round 3: all are known: 0.2 + 0.3 * 2 + 2 = 2.8.
    engine = make_engine(CHANGE, aggregation="mifa")
    rounds = [(1, 0, 0), (0, 0, 1), (0, 0, 0), (0, 1, 0)]
    path = moves(engine, play_round, [tuple(map(bool, row)) for row in rounds])
    assert path == pytest.approx([0.2, 2.2, 0.0, 2.8], abs=1e-6)


def test_fedvarp_by_hand(make_engine, play_round):
    # Round 0: client 0 alone: mean of the new 1, nothing remembered: 1.
    # Round 1: client 2 is new: 4 - 0, plus what is remembered of all: 0.2 * 1: 4.2.
    # Round 2: clients 0 and 2 say the same again: 0, plus 0.2 * 1 + 0.5 * 4 = 2.2.
    engine = make_engine(CHANGE, aggregation="fedvarp")
    rounds = [(True, False, False), (False, False, True), (True, False, True)]
    assert moves(engine, play_round, rounds) == pytest.approx([1.0, 4.2, 2.2], abs=1e-6)


@pytest.mark.parametrize("rule", ["mifa", "fedvarp"])
def test_a_rejected_update_is_not_remembered(make_engine, play_round, rule):
    engine = make_engine(CHANGE.clone(), aggregation=rule)
    engine._trainer.change[1] = torch.nan
    play_round(engine, 0, (True, True, False))
    memory = engine.aggregator.memory.values[0]
    assert memory[:, 0].tolist() == [1.0, 0.0, 0.0]


def test_fedvarp_is_unbiased_over_the_choice_of_the_cohort(arrivals):
    """All cohorts of 2 of 3 equal clients: the average change is that of everybody, exactly."""
    share = torch.full((1, 3), 1 / 3)
    update = torch.tensor([[1.0], [3.0], [-2.0]])
    memory = UpdateMemory([0], 1, num_clients=3, num_weights=1)
    everyone = torch.tensor([0, 1, 2])
    memory.store(
        torch.tensor([[0.5], [-1.0], [2.0]]), everyone >= 0, torch.zeros_like(everyone), everyone
    )
    rule = FedVARP(Setting(1, 3))
    changes = []
    for cohort in ([0, 1], [0, 2], [1, 2]):
        client = torch.tensor(cohort)
        weights = torch.from_numpy(rule.weigh(arrivals(cohort, shares=[1 / 3, 1 / 3]))).float()
        news = memory.news(update[client], torch.zeros_like(client), client)
        averaged = combine(weights, news, torch.tensor([rule.normalises]))
        changes.append((averaged + memory.average(share)).item())
    assert np.mean(changes) == pytest.approx(update.mean().item())
    assert max(changes) > min(changes)  # single cohorts differ


@pytest.mark.parametrize("rule", ["mifa", "fedvarp"])
def test_bf16_memory_is_that_of_float32_within_its_precision(make_engine, play_round, rule):
    torch.manual_seed(5)
    change = torch.randn(3, 4)
    engines = [
        make_engine(change, aggregation=rule, memory=precision) for precision in ("float32", "bf16")
    ]
    engines[1].models = engines[0].models.clone()
    start = engines[0].models.clone()
    for round, arrived in enumerate(
        [(True, True, False), (False, True, True), (True, False, True)]
    ):
        for engine in engines:
            play_round(engine, round, arrived)
    moved = [engine.models - start for engine in engines]
    torch.testing.assert_close(moved[1], moved[0], rtol=0.02, atol=0.02)
    assert engines[1].aggregator.memory.values.dtype == torch.bfloat16
