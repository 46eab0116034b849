"""Faster versions of functions of tensors: compiled, or recorded and replayed."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Size, Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from fedcohort.learning.simplification import simplify

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


def record(function: Callable[..., R], args: tuple[Tensor, ...]) -> Callable[..., R] | None:
    """Return the plain operations that a function computes for arguments of these shapes.

    Differentiating and batching in Python takes longer than a small model computes. A record
    computes the same bits without them, and several threads may replay it. While recording, no
    other thread may use a module.

    Args:
        function: Function of tensors.
        args: Arguments of the shapes that the record is for.

    Returns:
        The record, or None if the function needs to look at the numbers, or if two records
        differ, since the function decides by chance or by a state in Python.
    """
    try:
        with torch.random.fork_rng(devices=[]):
            first = make_fx(function)(*args)
            second = make_fx(function)(*args)
    except (RuntimeError, TypeError, ValueError):
        return None
    if first.code != second.code or not _same_constants(first, second):
        return None
    return simplify(first, args)


def _same_constants(first: GraphModule, second: GraphModule) -> bool:
    """Return whether two records hold the same tensors."""
    constants = dict(first.named_buffers())
    others = dict(second.named_buffers())
    if constants.keys() != others.keys():
        return False
    return all(torch.equal(value, others[name]) for name, value in constants.items())
