from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.learning.aggregation import AGGREGATIONS, normalised, paper, server_step
from fedcohort.learning.engine import Engine
from fedcohort.learning.options import Options
from fedcohort.learning.run import Run
from fedcohort.learning.sgd import Sgd
from fedcohort.learning.trainers import LocalUpdates

SIZES = (2, 3, 5)
SHARES = torch.tensor([0.2, 0.3, 0.5])


class Scripted:
    """Local updates that return what they are told, by client."""

    def __init__(self, change):
        self.change = change

    def train(self, models, jobs):
        first = [min(int(v) for v in rows.ravel() if v >= 0) for rows in jobs.batches]
        who = [{0: 0, 2: 1, 5: 2}[sample] for sample in first]
        return LocalUpdates(self.change[who].clone(), torch.ones(len(who)))


def engine(change, monkeypatch, **options):
    """Return one run of three clients that own 2, 3 and 5 samples, and return these changes [3, P]."""
    module = nn.Linear(1, 2)
    ends = np.cumsum([0, *SIZES])
    train = [np.arange(a, b) for a, b in pairwise(ends)]
    run = Run(0, train, np.array([0]), np.ones(3, dtype=np.int64), **options)
    learner = Engine(
        [module],
        torch.zeros(10, 1),
        torch.zeros(10, dtype=torch.int64),
        [run],
        Sgd(),
        Options(mode="one-by-one"),
    )
    monkeypatch.setattr(
        learner,
        "_train_jobs",
        lambda jobs, cohort_size: Scripted(change).train(learner.models, jobs),
    )
    return learner


def told(learner, round, arrived):
    return learner.train(round, np.array([[0, 1, 2]]), np.array([arrived]))


@pytest.fixture
def change():
    torch.manual_seed(4)
    return torch.randn(3, 4)


@pytest.mark.parametrize(
    "arrived", [(True, False, True), (True, True, True), (False, True, False)], ids=str
)
def test_the_papers_rule_lets_who_is_missing_count_as_the_current_model(
    change, monkeypatch, arrived
):
    learner = engine(change, monkeypatch, aggregation="paper")
    model = learner.models[0].clone()
    here = torch.tensor(arrived)
    # (P1): sum over arrived of omega_i Theta_i + (1 - sum over arrived of omega_i) Theta
    expected = (SHARES[here, None] * (model + change[here])).sum(dim=0) + (
        1 - SHARES[here].sum()
    ) * model
    told(learner, 0, arrived)
    torch.testing.assert_close(learner.models[0], expected)


@pytest.mark.parametrize(
    "arrived", [(True, False, True), (True, True, True), (False, True, False)], ids=str
)
def test_the_normalised_rule_is_the_mean_of_the_arrived_models_by_their_shares(
    change, monkeypatch, arrived
):
    learner = engine(change, monkeypatch, aggregation="normalised")
    model, here = learner.models[0].clone(), torch.tensor(arrived)
    expected = (SHARES[here, None] * (model + change[here])).sum(dim=0) / SHARES[here].sum()
    told(learner, 0, arrived)
    torch.testing.assert_close(learner.models[0], expected)


def test_the_two_rules_agree_where_everyone_arrives(change, monkeypatch):
    one, other = (engine(change, monkeypatch, aggregation=name) for name in ("paper", "normalised"))
    other.models = one.models.clone()
    for learner in (one, other):
        told(learner, 0, (True, True, True))
    torch.testing.assert_close(one.models, other.models)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("rule", AGGREGATIONS)
def test_a_round_without_arrivals_keeps_model_and_velocity_exactly(
    change, monkeypatch, rule, momentum
):
    learner = engine(
        change, monkeypatch, aggregation=rule, server_momentum=momentum, server_rate=0.7
    )
    told(learner, 0, (True, True, False))
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    returned = told(learner, 1, (False, False, False))
    assert all(torch.equal(value, before[name]) for name, value in learner.state_dict().items())
    assert not returned.valid.any()
    assert np.isnan(returned.loss).all()


@pytest.mark.parametrize("rule", AGGREGATIONS)
def test_a_round_whose_updates_are_all_rejected_keeps_the_model_exactly(change, monkeypatch, rule):
    learner = engine(
        torch.full((3, 4), torch.nan), monkeypatch, aggregation=rule, server_momentum=0.9
    )
    before = learner.models.clone()
    assert not told(learner, 0, (True, True, True)).valid.any()
    assert torch.equal(learner.models, before)


def test_the_rules_alone_return_nothing_where_nothing_arrived():
    step, arrived = torch.zeros(2, 3), torch.tensor([0.0, 0.0])
    assert torch.equal(paper(step, arrived), step)
    assert torch.equal(normalised(step, arrived), step)


def test_the_normalised_rule_divides_each_run_by_its_own_shares():
    step, arrived = (
        torch.tensor([[1.0, 2.0], [3.0, 6.0], [0.0, 0.0]]),
        torch.tensor([0.5, 0.25, 0.0]),
    )
    assert torch.equal(
        normalised(step, arrived), torch.tensor([[2.0, 4.0], [12.0, 24.0], [0.0, 0.0]])
    )
    assert torch.equal(paper(step, arrived), step)


def test_a_tiny_share_is_normalised_to_a_whole_step():
    tiny = torch.finfo(torch.float32).tiny
    assert torch.equal(
        normalised(torch.tensor([[3 * tiny]]), torch.tensor([tiny])), torch.tensor([[3.0]])
    )


def test_server_rate_and_momentum_by_hand():
    # two rounds, change 1 then 2, rate 0.5, momentum 0.5: v = 1, m = 10 + 0.5; v = 0.5 + 2 = 2.5, m = 10.5 + 1.25
    rate, momentum = torch.tensor([0.5]), torch.tensor([0.5])
    model, velocity = server_step(
        torch.tensor([[10.0]]), torch.tensor([[1.0]]), torch.zeros(1, 1), rate, momentum
    )
    assert (model.item(), velocity.item()) == (10.5, 1.0)
    model, velocity = server_step(model, torch.tensor([[2.0]]), velocity, rate, momentum)
    assert (model.item(), velocity.item()) == (11.75, 2.5)


def test_every_run_has_its_own_server_rate_and_momentum():
    rate, momentum = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.5])
    model, _ = server_step(
        torch.zeros(2, 1), torch.ones(2, 1), torch.full((2, 1), 4.0), rate, momentum
    )
    assert model.ravel().tolist() == [1.0, 6.0]


def test_server_momentum_goes_on_after_a_round_without_arrivals(change, monkeypatch):
    learner = engine(
        change, monkeypatch, aggregation="normalised", server_rate=0.5, server_momentum=0.8
    )
    model = learner.models[0].clone()
    mean = (SHARES[:2, None] * change[:2]).sum(dim=0) / SHARES[:2].sum()
    velocity = mean
    model = model + 0.5 * velocity
    velocity = 0.8 * velocity + change[2]
    model = model + 0.5 * velocity
    for round, arrived in enumerate(
        [(True, True, False), (False, False, False), (False, False, True)]
    ):
        told(learner, round, arrived)
    torch.testing.assert_close(learner.models[0], model)
