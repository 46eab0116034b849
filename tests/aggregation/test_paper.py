import pytest
import torch


@pytest.mark.parametrize(
    "arrived", [(True, False, True), (True, True, True), (False, True, False)], ids=str
)
def test_the_papers_rule_lets_who_is_missing_count_as_the_current_model(
    change, shares, make_engine, play_round, arrived
):
    engine = make_engine(change, aggregation="paper")
    model = engine.models[0].clone()
    here = torch.tensor(arrived)
    # (P1): sum over arrived of omega_i Theta_i + (1 - sum over arrived of omega_i) Theta
    moved = (shares[here, None] * (model + change[here])).sum(dim=0)
    kept = (1 - shares[here].sum()) * model
    play_round(engine, 0, arrived)
    torch.testing.assert_close(engine.models[0], moved + kept)
