import pytest
import torch


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
