"""Compiled versions of functions of tensors."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

R = TypeVar("R")


def compile_at_first_call(function: Callable[..., R]) -> Callable[..., R]:
    """Return a function that is compiled at its first call, for the shapes of that call only.

    `make_fx` first traces differentiation and batching away, so that the compiler sees plain
    operations, our kernels among them.
    """
    compiled: list[Callable[..., R]] = []

    def call(*args: Tensor) -> R:
        if not compiled:
            compiled.append(torch.compile(make_fx(function)(*args), dynamic=False))
        return compiled[0](*args)

    return call
