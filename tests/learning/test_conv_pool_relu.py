"""Triton's interpreter runs the kernels line by line, so no GPU is needed."""

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import vmap
from torch.nn.functional import conv2d, max_pool2d

os.environ["TRITON_INTERPRET"] = "1"
if not os.environ.get("CI"):  # there it must be
    pytest.importorskip(
        "triton",
        reason="NOT INSTALLED: triton, so the kernels are not tested: pip install -e '.[dev]'",
    )

from fedcohort.learning.kernels.conv_pool_relu import can_convolve, conv_pool_relu


def make_case(side, channels, filters, image, models=2):
    torch.manual_seed(0)
    x = torch.randn(models, 3, channels, image, image)
    weight = torch.randn(models, filters, channels, side, side)
    return x, weight, torch.randn(models, filters)


def plain(x, weight, bias):
    return torch.relu(max_pool2d(conv2d(x, weight, bias), 2))


@settings(max_examples=20, deadline=None)
@given(
    side=st.integers(2, 5),
    channels=st.sampled_from([1, 3, 4, 16, 32]),
    filters=st.sampled_from([16, 32]),
    image=st.integers(7, 9),
    shared=st.booleans(),
)
def test_every_model_gets_what_pytorchs_layers_compute(side, channels, filters, image, shared):
    x, weight, bias = make_case(side, channels, filters, image)
    if not can_convolve(weight[0]):
        assert channels * side * side < 16 or channels * side * side > 128
        return
    if shared:
        x = x[:1].expand(x.shape)
        got = vmap(conv_pool_relu, in_dims=(None, 0, 0))(x[0], weight, bias)
    else:
        got = vmap(conv_pool_relu)(x, weight, bias)
    expected = torch.stack([plain(*case) for case in zip(x, weight, bias, strict=True)])
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("channels", [3, 16])
def test_what_is_not_a_number_is_not_hidden(channels):
    x, weight, bias = make_case(3, channels, 16, 8, models=1)
    x[0, 0, 0, 3, 3] = float("nan")
    got = conv_pool_relu(x[0], weight[0], bias[0])
    torch.testing.assert_close(got.isnan(), plain(x[0], weight[0], bias[0]).isnan())


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((64, 3, 5, 5), True),  # the paper's first convolution
        ((64, 64, 5, 5), True),  # and its second
        ((10, 1, 5, 5), False),  # filters that fill no power of two
        ((128, 3, 5, 5), False),  # more filters than the registers hold
        ((16, 1, 3, 3), False),  # patches too short for a product
        ((16, 6, 5, 5), False),  # patches too long to stay in registers
    ],
)
def test_shapes_that_suit_the_kernels(shape, expected):
    assert can_convolve(torch.zeros(shape)) is expected
