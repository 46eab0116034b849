"""Compiled versions of functions of tensors."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Size, Tensor
from torch.fx.experimental.proxy_tensor import make_fx

R = TypeVar("R")


def compile_by_shape(function: Callable[..., R]) -> Callable[..., R]:
    """Return a function that is compiled at its first call with arguments of some shapes.

    `make_fx` first traces differentiation and batching away, so that the compiler sees plain
    operations, our kernels among them. It traces without computing, so that the function may
    change its arguments. It cannot trace sizes as variables through batching.
    """
    compiled: dict[tuple[Size, ...], Callable[..., R]] = {}

    def call(*args: Tensor) -> R:
        shapes = tuple(arg.shape for arg in args)
        if shapes not in compiled:
            traced = make_fx(function, tracing_mode="fake")(*args)
            compiled[shapes] = torch.compile(traced, dynamic=False)
        return compiled[shapes](*args)

    return call
