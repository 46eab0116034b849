import pytest
import torch

from fedcohort.aggregation.server import adaptive_step, server_step


def test_server_rate_and_momentum_by_hand():
    # two rounds, change 1 then 2, rate 0.5, momentum 0.5:
    # v = 1, m = 10 + 0.5; v = 0.5 + 2 = 2.5, m = 10.5 + 1.25
    rate = torch.tensor([0.5])
    momentum = torch.tensor([0.5])
    model = torch.tensor([[10.0]])
    velocity = torch.zeros(1, 1)
    model, velocity = server_step(model, torch.tensor([[1.0]]), velocity, rate, momentum)
    assert (model.item(), velocity.item()) == (10.5, 1.0)
    model, velocity = server_step(model, torch.tensor([[2.0]]), velocity, rate, momentum)
    assert (model.item(), velocity.item()) == (11.75, 2.5)


def test_every_run_has_its_own_server_rate_and_momentum():
    rate = torch.tensor([1.0, 2.0])
    momentum = torch.tensor([0.0, 0.5])
    model, _ = server_step(
        model=torch.zeros(2, 1),
        change=torch.ones(2, 1),
        velocity=torch.full((2, 1), 4.0),
        rate=rate,
        momentum=momentum,
    )
    assert model.ravel().tolist() == [1.0, 6.0]


def test_server_momentum_goes_on_after_a_round_without_arrivals(
    change, shares, make_engine, play_round
):
    engine = make_engine(change, aggregation="normalised", server_rate=0.5, server_momentum=0.8)
    model = engine.models[0].clone()
    velocity = (shares[:2, None] * change[:2]).sum(dim=0) / shares[:2].sum()
    model = model + 0.5 * velocity
    velocity = 0.8 * velocity + change[2]
    model = model + 0.5 * velocity

    play_round(engine, 0, (True, True, False))
    play_round(engine, 1, (False, False, False))
    play_round(engine, 2, (False, False, True))
    torch.testing.assert_close(engine.models[0], model)


def test_two_steps_of_adam_by_hand():
    # change 1: m = 0.1, v = 0.01, step 0.1 / (0.1 + 0.001)
    # change 2: m = 0.09 + 0.2 = 0.29, v = 0.0099 + 0.04 = 0.0499
    model = first = second = torch.zeros(1, 1, dtype=torch.float64)
    rate = torch.ones(1, dtype=torch.float64)
    path = []
    for change in (1.0, 2.0):
        step = torch.full((1, 1), change, dtype=torch.float64)
        model, first, second = adaptive_step(model, step, first, second, rate, "adam")
        path.append((model.item(), first.item(), second.item()))
    assert path[0] == pytest.approx((0.1 / 0.101, 0.1, 0.01))
    moved = 0.1 / 0.101 + 0.29 / (0.0499**0.5 + 0.001)
    assert path[1] == pytest.approx((moved, 0.29, 0.0499))


def test_two_steps_of_yogi_by_hand():
    # change 2: v = 0 + 0.01 * 4 = 0.04; change 0.1: v = 0.04 - 0.01 * 0.01 = 0.0399
    model = first = second = torch.zeros(1, 1, dtype=torch.float64)
    rate = torch.ones(1, dtype=torch.float64)
    squares = []
    for change in (2.0, 0.1):
        step = torch.full((1, 1), change, dtype=torch.float64)
        model, first, second = adaptive_step(model, step, first, second, rate, "yogi")
        squares.append(second.item())
    assert squares == pytest.approx([0.04, 0.0399])


@pytest.mark.parametrize("optimizer", ["adam", "yogi"])
def test_an_adaptive_run_goes_on_from_its_state_and_stays_without_arrivals(
    change, make_engine, play_round, optimizer
):
    whole, resumed = (make_engine(change, server_optimizer=optimizer) for _ in range(2))
    play_round(whole, 0, (True, True, False))
    resumed.load_state_dict(whole.state_dict())
    second = whole.aggregator.second.clone()
    play_round(whole, 1, (False, False, False))
    assert torch.equal(whole.aggregator.second, second)
    for engine in (whole, resumed):
        play_round(engine, 2, (False, True, True))
    assert torch.equal(whole.models, resumed.models)


def test_adaptive_steps_refuse_a_momentum_beside_their_own(change, make_engine):
    with pytest.raises(ValueError, match="server_momentum must be 0 for the server_optimizer"):
        make_engine(change, server_optimizer="adam", server_momentum=0.5)
