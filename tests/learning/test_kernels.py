"""Triton's interpreter runs the kernels line by line, so no GPU is needed."""

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import grad_and_value, vmap
from torch.fx.experimental.proxy_tensor import make_fx

os.environ["TRITON_INTERPRET"] = "1"
if not os.environ.get("CI"):  # there it must be
    pytest.importorskip(
        "triton",
        reason="NOT INSTALLED: triton, so the kernels are not tested: pip install -e '.[dev]'",
    )

from fedcohort.learning import layers
from fedcohort.learning.kernels.patches import patches
from fedcohort.learning.kernels.strips import strips
from fedcohort.learning.layers import ChannelsLastMaxPool2d, _patches, _replacement, _strips
from fedcohort.learning.models import Cnn, make_model
from fedcohort.learning.sgd import Sgd, make_batched_step, make_gradients
from fedcohort.learning.weights import flat_weights


def value_and_slope(pool, x, by):
    x = x.clone().requires_grad_(True)
    out = pool(x)
    (out.double() * by[: out.numel()].view(out.shape)).sum().backward()
    return out, x.grad


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(1, 4),
    stride=st.integers(1, 4),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(4, 9), st.integers(4, 9)),
    steps=st.sampled_from([1, 1000]),
    ceil=st.booleans(),
)
def test_pooling_equals_pytorchs_in_value_and_slope_also_with_ties(
    size, stride, shape, steps, ceil
):
    torch.manual_seed(0)
    # With steps = 1 these are whole numbers: many windows hold their maximum twice.
    x = (torch.randn(shape) * steps).round() / steps
    by = torch.randn(1000, dtype=torch.float64)
    pools = nn.MaxPool2d(size, stride, ceil_mode=ceil), ChannelsLastMaxPool2d(size, stride, ceil)
    expected, got = (value_and_slope(pool, x, by) for pool in pools)
    assert torch.equal(got[0], expected[0])
    torch.testing.assert_close(got[1], expected[1])


def test_what_is_not_a_number_is_passed_on():
    x = torch.zeros(1, 2, 5, 5)
    x[0, 0, 2, 2] = float("nan")
    out = ChannelsLastMaxPool2d(3, 2)(x)
    assert out[0, 0].isnan().all()
    assert (out[0, 1] == 0).all()


def test_half_precision_keeps_its_type():
    x = torch.randn(2, 3, 7, 7).bfloat16()
    out = ChannelsLastMaxPool2d(3, 2)(x)
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, nn.functional.max_pool2d(x, 3, 2))


def test_slopes_of_many_images_at_once_equal_pytorchs_plain_and_traced():
    torch.manual_seed(0)
    x, weight = torch.randn(4, 2, 3, 7, 7), torch.randn(4, 3, 3, 3)

    def slopes_with(pool):
        def loss(weight, x):
            return (pool(nn.functional.conv2d(x, weight[None]).tanh()) ** 2).sum()

        return lambda weight, x: vmap(grad_and_value(loss))(weight, x)

    expected = slopes_with(nn.MaxPool2d(3, 2))(weight, x)
    ours = slopes_with(ChannelsLastMaxPool2d(3, 2))
    torch.testing.assert_close(ours(weight, x), expected)
    traced = make_fx(ours)(weight, x)  # what the compiler is given
    torch.testing.assert_close(traced(weight, x), expected)


@settings(max_examples=25, deadline=None)
@given(
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(4, 9), st.integers(4, 9)),
)
def test_patches_equal_those_of_plain_operations_in_value_and_slope_and_end_in_one_and_zeros(
    kernel, stride, shape
):
    torch.manual_seed(0)
    x = torch.randn(shape)
    length = shape[1] * kernel[0] * kernel[1]
    by = torch.randn(9**5).double()
    expected, slope = value_and_slope(lambda x: _patches(x, *kernel, *stride)[..., :length], x, by)
    got, its_slope = value_and_slope(lambda x: patches(x, *kernel, *stride)[..., :length], x, by)
    assert torch.equal(got, expected)
    torch.testing.assert_close(its_slope, slope)
    row = patches(x, *kernel, *stride)
    assert row.shape[3] % 8 == 0
    assert (row[..., length] == 1).all()
    assert (row[..., length + 1 :] == 0).all()


def test_patches_of_many_batches_at_once_equal_a_loop_over_them():
    x = torch.randn(4, 2, 3, 7, 6)
    together = vmap(lambda x: patches(x, 3, 2, 1, 1), in_dims=1)(x.movedim(0, 1))
    torch.testing.assert_close(together, torch.stack([patches(part, 3, 2, 1, 1) for part in x]))


@settings(max_examples=25, deadline=None)
@given(
    width=st.integers(1, 4),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(4, 9), st.integers(1, 5)),
)
def test_strips_equal_those_of_plain_operations_in_value_and_slope(width, shape):
    torch.manual_seed(0)
    x = torch.randn(shape)
    by = torch.randn(9**5).double()
    expected, slope = value_and_slope(lambda x: _strips(x, width, 1), x, by)
    got, its_slope = value_and_slope(lambda x: strips(x, width), x, by)
    assert torch.equal(got, expected)
    torch.testing.assert_close(its_slope, slope)


@pytest.mark.parametrize(
    "options", [{"padding": 1}, {"dilation": 2}, {"return_indices": True}], ids=str
)
def test_pooling_that_is_not_plain_is_left_alone(options):
    assert _replacement(nn.MaxPool2d(3, 2, **options), True) is None
    assert _replacement(nn.MaxPool2d((3, 2)), True) is None
    assert _replacement(nn.MaxPool2d(3), True) is not None


@pytest.mark.parametrize("ceil", [False, True])
def test_a_step_of_many_models_with_the_kernels_equals_one_without(monkeypatch, ceil):
    torch.manual_seed(0)
    module = make_model(
        lambda shape, classes: Cnn(shape, classes, 16, (8, 8), pool=3, ceil=ceil),
        (3, 24, 24),
        10,
        seed=1,
    )
    models, batch = 3, 4
    weights = flat_weights(module) + 0.01 * torch.randn(models, flat_weights(module).numel())
    state = (
        weights,
        weights[:, :0],  # in float32 nothing is rounded
        torch.randn_like(weights),
        torch.zeros_like(weights),
        torch.tensor([0.0, 0.5, 1.0]),
        torch.zeros(models),
    )
    data = (
        torch.randn(20, 3, 24, 24),
        torch.randint(0, 10, (20,)),
        torch.randint(0, 20, (models, batch)),
    )

    def after(step):
        own = [part.clone() for part in state]
        step(*own, *data)
        return own

    expected = after(make_batched_step(module, Sgd()))
    monkeypatch.setattr(layers, "has_kernels", lambda x: True)
    step = make_batched_step(module, Sgd())
    torch.testing.assert_close(after(step), expected)
    x, y, samples = data
    batch = (weights, x[samples], y[samples], torch.ones(samples.shape))
    gradients = make_gradients(module)
    traced = make_fx(gradients, tracing_mode="fake")(*batch)  # what the compiler is given
    used = {str(node.target) for node in traced.graph.nodes if "fedcohort" in str(node.target)}
    assert used == {
        "fedcohort.patches.default",
        "fedcohort.strips.default",
        "fedcohort.strips_slope.default",
        "fedcohort.max_pool.default",
        "fedcohort.max_pool_slope.default",
    }
    torch.testing.assert_close(traced(*batch), gradients(*batch))
