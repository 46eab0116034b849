import numpy as np
import pytest
import torch

from fedcohort.aggregation.normalised import normalised


@pytest.mark.parametrize(
    "arrived", [(True, False, True), (True, True, True), (False, True, False)], ids=str
)
def test_the_normalised_rule_is_the_mean_of_the_arrived_models_by_their_shares(
    change, shares, make_engine, play_round, arrived
):
    engine = make_engine(change, aggregation="normalised")
    model = engine.models[0].clone()
    here = torch.tensor(arrived)
    expected = (shares[here, None] * (model + change[here])).sum(dim=0) / shares[here].sum()
    play_round(engine, 0, arrived)
    torch.testing.assert_close(engine.models[0], expected)


def test_the_normalised_rule_divides_each_run_by_its_own_shares():
    step = torch.tensor([[1.0, 2.0], [3.0, 6.0], [0.0, 0.0]])
    arrived = torch.tensor([0.5, 0.25, 0.0])
    expected = torch.tensor([[2.0, 4.0], [12.0, 24.0], [0.0, 0.0]])
    assert torch.equal(normalised(step, arrived), expected)


def test_a_tiny_share_is_normalised_to_a_whole_step():
    tiny = torch.finfo(torch.float32).tiny
    change = normalised(torch.tensor([[3 * tiny]]), torch.tensor([tiny]))
    assert torch.equal(change, torch.tensor([[3.0]]))


def test_the_change_is_zero_where_nothing_arrived_whatever_the_step():
    step = torch.tensor([[-1.0, 2.0], [3.0, -0.0]])
    arrived = torch.tensor([0.0, 0.0])
    change = normalised(step, arrived)
    assert torch.equal(change, torch.zeros(2, 2))
    assert not torch.signbit(change).any()


def test_the_step_given_is_not_changed():
    step = np.array([[1.0, 2.0], [3.0, 4.0]])
    before = step.copy()
    normalised(step, np.array([0.5, 0.0]))
    np.testing.assert_array_equal(step, before)
