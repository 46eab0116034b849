import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call, vmap

from fedcohort.learning.layers import MatmulConv2d, for_many_models, with_channels_last
from fedcohort.learning.weights import flat_weights, make_forward, named_weights

from .small import make_network

QUICK = settings(max_examples=80, deadline=None)


def value_and_gradients(conv, x):
    """Return the output, and the slopes of a nonlinear function of it by input and parameters."""
    x = x.clone().requires_grad_(True)
    out = conv(x)
    return [out, *torch.autograd.grad(torch.sin(out).sum(), [x, *conv.parameters()])]


@QUICK
@given(
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    channels=st.tuples(st.integers(1, 3), st.integers(1, 12)),
    image=st.tuples(st.integers(1, 3), st.integers(4, 8), st.integers(4, 8)),
    bias=st.booleans(),
)
def test_a_convolution_as_matrix_product_equals_the_convolution_in_value_and_gradients(
    kernel, stride, padding, channels, image, bias
):
    torch.manual_seed(0)
    conv = nn.Conv2d(*channels, kernel, stride, padding, bias=bias).double()
    x = torch.randn(image[0], channels[0], *image[1:], dtype=torch.float64)
    expected, got = value_and_gradients(conv, x), value_and_gradients(MatmulConv2d(conv), x)
    assert len(expected) == len(got) == 3 + bias
    for one, other in zip(expected, got, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(other, one, rtol=1e-10, atol=1e-10)


def test_many_models_at_once_equal_a_loop_over_them():
    torch.manual_seed(3)
    module = for_many_models(make_network()).double()
    weights = torch.randn(5, flat_weights(module).numel(), dtype=torch.float64)
    x = torch.randn(5, 7, 2, 6, 6, dtype=torch.float64)
    forward = make_forward(module)
    together = vmap(forward)(weights, x)
    assert together.shape == (5, 7, 4)
    torch.testing.assert_close(
        together, torch.stack([forward(w, part) for w, part in zip(weights, x, strict=True)])
    )


def test_replacing_convolutions_keeps_names_shapes_order_values_and_the_module_given():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.conv = nn.Linear(3, 2), nn.Conv2d(2, 3, 3, stride=2, padding=1)

        def forward(self, x):
            return self.head(self.conv(x).mean(dim=(2, 3)))

    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), Inner())
    replaced = for_many_models(module)
    mine, its = list(module.named_parameters()), list(replaced.named_parameters())
    assert [(n, p.shape) for n, p in mine] == [(n, p.shape) for n, p in its]
    assert all(torch.equal(a, b) for (_, a), (_, b) in zip(mine, its, strict=True))
    assert sum(isinstance(layer, MatmulConv2d) for layer in replaced.modules()) == 2
    assert sum(isinstance(layer, nn.Conv2d) for layer in module.modules()) == 2
    assert not any(isinstance(layer, nn.Conv2d) for layer in replaced.modules())
    x = torch.randn(2, 1, 9, 9)
    torch.testing.assert_close(replaced(x), module(x))


@pytest.mark.parametrize(
    "options", [{"groups": 2}, {"dilation": 2}, {"dilation": (1, 2)}, {"padding": "same"}], ids=str
)
def test_convolutions_that_are_not_plain_are_left_alone(options):
    replaced = for_many_models(nn.Sequential(nn.Conv2d(2, 4, 3, **options), nn.Conv2d(4, 4, 1)))
    assert isinstance(replaced[0], nn.Conv2d)
    assert isinstance(replaced[1], MatmulConv2d)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_a_convolution_that_pads_with_something_else_than_zeros_computes_the_same_after_replacing(
    mode,
):
    torch.manual_seed(0)
    module, x = (
        nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode=mode)),
        torch.randn(2, 1, 6, 6),
    )
    torch.testing.assert_close(for_many_models(module)(x), module(x))


def test_a_users_own_kind_of_convolution_computes_the_same_after_replacing():
    class Doubled(nn.Conv2d):
        def forward(self, x):
            return 2 * super().forward(x)

    torch.manual_seed(0)
    module, x = nn.Sequential(Doubled(1, 2, 3)), torch.randn(2, 1, 6, 6)
    torch.testing.assert_close(for_many_models(module)(x), module(x))


def test_a_convolution_used_in_two_places_still_follows_the_weights_given():
    conv = nn.Conv2d(2, 2, 3, padding=1)
    module, x = nn.Sequential(conv, nn.ReLU(), conv), torch.randn(2, 2, 5, 5)
    replaced = for_many_models(module)
    weights = torch.randn(flat_weights(module).numel())
    assert [name for name, _ in replaced.named_parameters()] == [
        name for name, _ in module.named_parameters()
    ]
    expected = functional_call(module, named_weights(weights, module), (x,))
    torch.testing.assert_close(make_forward(replaced)(weights, x), expected)


class Viewing(nn.Module):
    """A module whose code needs images with rows last in memory."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.out = nn.Linear(3 * 4 * 4, 5)

    def forward(self, x):
        return self.out(self.conv(x).view(len(x), -1))


def test_channels_last_compute_the_same_with_the_same_parameters():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 4))
    x = torch.randint(-2, 3, (5, 2, 6, 6)).float()  # small whole numbers, so that many are equal
    fast = with_channels_last(module, x)
    assert fast[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert module[0].weight.is_contiguous()
    assert torch.equal(flat_weights(fast), flat_weights(module))
    for copy in (fast, module):
        copy(x).square().sum().backward()
    torch.testing.assert_close(fast(x), module(x))
    for ours, its in zip(fast.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, its.grad)


def test_pooling_with_channels_last_gives_the_gradient_to_the_first_of_equals():
    x = torch.randint(0, 2, (7, 3, 6, 6)).float()
    slopes = []
    for layout in (torch.contiguous_format, torch.channels_last):
        images = x.contiguous(memory_format=layout).requires_grad_(True)
        pooled = nn.functional.max_pool2d(images, 2)
        (slope,) = torch.autograd.grad((pooled * torch.arange(1.0, 10).view(3, 3)).sum(), images)
        slopes.append(slope)
    assert torch.equal(*slopes)


def test_a_module_that_cannot_work_with_channels_last_is_left_as_it_is():
    module = Viewing()
    state = torch.get_rng_state()
    copy = with_channels_last(module, torch.zeros(2, 2, 6, 6))
    assert copy is not module
    assert copy.conv.weight.is_contiguous()
    assert torch.equal(torch.get_rng_state(), state)
