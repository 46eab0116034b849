"""Triton's interpreter runs the kernels line by line, so no GPU is needed."""

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import grad, vmap
from torch.nn.functional import conv2d, max_pool2d

os.environ["TRITON_INTERPRET"] = "1"
if not os.environ.get("CI"):  # there it must be
    pytest.importorskip(
        "triton",
        reason="NOT INSTALLED: triton, so the kernels are not tested: pip install -e '.[dev]'",
    )

from fedcohort.learning import layers
from fedcohort.learning.kernels import conv_pool as kernels
from fedcohort.learning.kernels.conv_pool import conv_pool, conv_then_pool
from fedcohort.learning.layers import for_many_models, pooled_convolution


@pytest.fixture(autouse=True, scope="module")
def _few_programs():
    """Share the sums among few programs: the interpreter runs them one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "PARTIAL_SUMS", 6)
        yield


CASES = {
    "side": st.integers(1, 4),
    "channels": st.integers(1, 5),
    "filters": st.sampled_from([1, 7, 20]),
    "window": st.sampled_from([(1, 1), (2, 2), (3, 2), (2, 3), (3, 3)]),
    "image": st.integers(7, 10),
    "ceil": st.booleans(),
}


def make_case(side, channels, filters, image, models=2):
    torch.manual_seed(0)
    x = torch.randn(models, 3, channels, image, image)
    weight = torch.randn(models, filters, channels, side, side)
    return x, weight, torch.randn(models, filters)


@settings(max_examples=20, deadline=None)
@given(**CASES)
def test_values_and_slopes_equal_those_of_pytorchs_layers(
    side, channels, filters, window, image, ceil
):
    x, weight, bias = make_case(side, channels, filters, image)

    def plain(weight, bias, x):
        return max_pool2d(conv2d(x, weight, bias), *window, ceil_mode=ceil)

    def ours(weight, bias, x):
        return conv_pool(x, weight, bias, *window, ceil)

    def slopes(layer):
        def total(*args):
            return (layer(*args) ** 2).sum()

        return vmap(grad(total, argnums=(0, 1)))(weight, bias, x)

    close = {"rtol": 1e-4, "atol": 1e-3}
    expected = vmap(plain)(weight, bias, x)
    torch.testing.assert_close(vmap(ours)(weight, bias, x), expected, **close)
    torch.testing.assert_close(slopes(ours), slopes(plain), **close)


@settings(max_examples=10, deadline=None)
@given(**CASES)
def test_models_may_share_images_and_convolve_one_after_the_other(
    side, channels, filters, window, image, ceil
):
    x, weight, bias = make_case(side, channels, filters, image)
    for layer in (conv_pool, conv_then_pool):
        got = vmap(lambda weight, bias, layer=layer: layer(x[0], weight, bias, *window, ceil))(
            weight, bias
        )
        for model in range(len(weight)):
            convolved = conv2d(x[0], weight[model], bias[model])
            expected = max_pool2d(convolved, *window, ceil_mode=ceil)
            torch.testing.assert_close(got[model], expected, rtol=1e-4, atol=1e-3)


def test_what_is_not_a_number_wins():
    x = torch.zeros(1, 3, 8, 8)
    x[0, 0, 3, 3] = float("nan")
    out = conv_pool(x, torch.ones(2, 3, 3, 3), None, 2, 2)
    expected = max_pool2d(conv2d(x, torch.ones(2, 3, 3, 3)), 2)
    torch.testing.assert_close(out, expected, equal_nan=True)


ROUTES = {  # filters, channels, pooling window, with gradient -> the kernel that is used
    "few channels": (8, 3, 2, True, "conv_pool"),
    "windows that overlap": (8, 1, 3, True, "none"),
    "long patches, with gradient": (2, 40, 2, True, "none"),
    "long patches, without gradient": (2, 40, 2, False, "conv_then_pool"),
    "overlapping windows, without gradient": (8, 3, 3, False, "conv_then_pool"),
    "powers of two, without gradient": (16, 16, 2, False, "conv_pool_relu"),
    "powers of two, with gradient": (16, 3, 2, True, "conv_pool"),
}


@pytest.mark.parametrize(
    ("filters", "channels", "size", "slope", "kernel"), ROUTES.values(), ids=ROUTES
)
def test_pooled_convolutions_take_the_kernel_that_suits_them(
    monkeypatch, filters, channels, size, slope, kernel
):
    used = []
    for name in ("conv_pool", "conv_then_pool"):

        def spy(x, weight, bias, size, stride, ceil, name=name):
            used.append(name)
            return max_pool2d(conv2d(x, weight, bias), size, stride, ceil_mode=ceil)

        monkeypatch.setattr(f"fedcohort.learning.kernels.conv_pool.{name}", spy)

    def spy_on_testing(x, weight, bias):
        used.append("conv_pool_relu")
        return torch.relu(max_pool2d(conv2d(x, weight, bias), 2))

    monkeypatch.setattr("fedcohort.learning.kernels.conv_pool_relu.conv_pool_relu", spy_on_testing)
    monkeypatch.setattr(layers, "has_kernels", lambda x: True)
    network = nn.Sequential(nn.Conv2d(channels, filters, 3), nn.MaxPool2d(size, 2)).bfloat16()
    conv, pool = for_many_models(network)
    monkeypatch.setattr(conv, "forward", network[0].forward)
    monkeypatch.setattr(conv, "convolved", network[0].forward)
    monkeypatch.setattr(pool, "forward", network[1].forward)
    x = torch.randn(2, channels, 9, 9).bfloat16()
    with torch.set_grad_enabled(slope):
        got = pooled_convolution(x, conv, pool)
    assert (used or ["none"]) == [kernel]
    torch.testing.assert_close(got, torch.relu(network(x)))
