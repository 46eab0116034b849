import pytest
import torch
from torch import nn

from fedcohort.learning.weights import flat_weights, make_forward, named_weights

from .small import make_network


def test_views_of_the_flat_weights_are_the_named_parameters():
    module = make_network()
    named = named_weights(flat_weights(module), module)
    assert list(named) == [name for name, _ in module.named_parameters()]
    assert all(torch.equal(named[name], p) for name, p in module.named_parameters())


def test_flat_weights_of_the_views_are_the_vector_again():
    module = make_network()
    vector = torch.arange(float(flat_weights(module).numel()))
    assert torch.equal(
        torch.cat([part.reshape(-1) for part in named_weights(vector, module).values()]), vector
    )


def test_views_share_memory_with_the_vector_and_flat_weights_do_not_share_it_with_the_module():
    module = make_network()
    vector = flat_weights(module)
    named_weights(vector, module)["0.weight"].zero_()
    assert (vector[: 3 * 2 * 9] == 0).all()
    assert (module[0].weight != 0).any()


def test_a_vector_of_another_length_is_refused():
    module = make_network()
    with pytest.raises((RuntimeError, ValueError)):
        named_weights(flat_weights(module)[:-1], module)


def test_forward_of_a_module_uses_the_weights_given_and_not_its_own():
    module, other, x = make_network(), make_network(), torch.randn(6, 2, 6, 6)
    with torch.no_grad():
        for p in other.parameters():
            p.mul_(-0.7)
    before = flat_weights(module)
    assert torch.equal(make_forward(module)(flat_weights(other), x), other(x))
    assert torch.equal(flat_weights(module), before)


class Tied(nn.Module):
    """One weight in two layers, and one bias in two places of a layer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.second.again = self.second.bias

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))) + self.second.again


def shared():
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.Tanh(), layer, nn.Linear(4, 2))


@pytest.mark.parametrize("make", [shared, Tied])
def test_what_is_used_in_two_places_is_given_in_both_and_the_module_is_left_as_it_was(make):
    torch.manual_seed(2)
    module, other, x = make(), make(), torch.randn(5, 4)
    kept, before = list(module.parameters()), flat_weights(module)
    for _ in range(2):
        assert torch.equal(make_forward(module)(flat_weights(other), x), other(x))
    assert all(one is another for one, another in zip(module.parameters(), kept, strict=True))
    assert torch.equal(flat_weights(module), before)
