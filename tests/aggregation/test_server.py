import torch

from fedcohort.aggregation.server import server_step


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
