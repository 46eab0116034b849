"""Records with fewer operations and the same bits."""

import pytest
import torch
from torch import nn
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import dropout

from fedcohort.learning import make_model
from fedcohort.learning.sgd import make_gradients
from fedcohort.learning.simplification import simplify
from fedcohort.learning.weights import flat_weights


def count(graph, word=""):
    """Return how many operations a record has whose name contains a word."""
    calls = [node for node in graph.graph.nodes if node.op == "call_function"]
    return sum(word in str(node.target) for node in calls)


@pytest.mark.parametrize(("name", "shape"), [("mlp", (64,)), ("emnist-cnn", (1, 28, 28))])
def test_gradients_of_many_models_take_fewer_operations_and_keep_their_bits(name, shape):
    torch.manual_seed(0)
    module = make_model(name, shape, 10, seed=0)
    weights = flat_weights(module).expand(3, -1) + 0.01 * torch.randn(3, 1)
    args = (weights, torch.randn(3, 5, *shape), torch.arange(15).view(3, 5) % 10, torch.ones(3, 5))
    recorded = make_fx(make_gradients(module))(*args)
    shorter = simplify(recorded, args)
    assert count(shorter) <= 0.75 * count(recorded)
    counts = torch.tensor([[1.0, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    for _ in range(3):
        others = (torch.randn_like(weights), torch.randn(3, 5, *shape), args[2], counts)
        for found, expected in zip(shorter(*others), recorded(*others), strict=True):
            assert torch.equal(found, expected)


def test_what_changes_nothing_is_left_out():
    def function(x):
        same = x.view(2, 3).expand(2, 3).transpose(0, 1).transpose(1, 0)
        return (same * 2).sum(1) + (same * 2).sum(1)

    x = torch.randn(2, 3)
    recorded = make_fx(function)(x)
    shorter = simplify(recorded, (x,))
    assert count(recorded) == 9  # four views, two products and sums, and both added
    assert count(shorter) == 3  # a product, a sum, and both added
    assert torch.equal(shorter(x), function(x))


def test_a_transpose_of_another_transpose_stays():
    x = torch.randn(2, 3, 4)
    recorded = make_fx(lambda x: x.transpose(0, 1).transpose(1, 2) + 1)(x)
    shorter = simplify(recorded, (x,))
    assert count(shorter, "transpose") == 2
    assert torch.equal(shorter(x), recorded(x))


def test_an_argument_is_never_given_back_as_a_result():
    """Whoever replays a record may change its results."""
    x = torch.randn(2, 3)
    recorded = make_fx(lambda x: torch.ops.aten.mul.Scalar(x, 1))(x)
    result = simplify(recorded, (x,))(x)
    result.zero_()
    assert x.all()


def test_records_that_change_their_arguments_or_draw_stay_as_they_are():
    x = torch.randn(4, 4)
    changing = make_fx(lambda x: x.clone().relu_().view(4, 4))(x)
    assert simplify(changing, (x,)) is changing
    drawing = make_fx(lambda x: dropout(x, 0.5).view(4, 4))(x)
    assert simplify(drawing, (x,)) is drawing


def test_a_factor_of_one_stays_where_the_place_in_memory_may_matter():
    def function(x, y):
        return torch.ops.aten.mul.Scalar(x.transpose(0, 1), 1) @ y

    args = (torch.randn(5, 4), torch.randn(5, 3))
    assert count(simplify(make_fx(function)(*args), args), "mul") == 1


def test_constants_are_made_once():
    layer = nn.Linear(4, 3)

    def loss(weight, x, y):
        logits = torch.func.functional_call(layer, {"weight": weight}, (x,))
        return nn.functional.cross_entropy(logits, y)

    args = (torch.randn(5, 3, 4), torch.randn(5, 7, 4), torch.arange(35).view(5, 7) % 3)
    recorded = make_fx(vmap(grad(loss)))(*args)
    shorter = simplify(recorded, args)
    assert count(recorded, "scalar_tensor") > 0
    assert count(shorter, "scalar_tensor") == 0
    others = (torch.randn(5, 3, 4), torch.randn(5, 7, 4), (args[2] + 1) % 3)
    assert torch.equal(shorter(*others), recorded(*others))
