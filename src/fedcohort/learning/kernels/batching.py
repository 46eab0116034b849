"""Shared by the kernels: tiles, and how `vmap` batches operations on images."""

from typing import Any

import triton
from torch import Tensor


def register_batching(operation: Any) -> None:
    """Let `vmap` batch an operation on images: a batch of batches of images is one batch."""

    def batched(info: Any, dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        tensors = []
        for arg, dim in zip(args, dims, strict=True):
            if not isinstance(arg, Tensor):
                continue
            if dim is None:
                tensors.append(arg.expand(info.batch_size, *arg.shape))
            else:
                tensors.append(arg.movedim(dim, 0))
        batch_shape = tensors[0].shape[:2]

        out = operation(*(tensor.flatten(0, 1) for tensor in tensors), *args[len(tensors) :])
        if isinstance(out, tuple):
            parts = tuple(part.unflatten(0, batch_shape) for part in out)
            return parts, (0,) * len(parts)
        return out.unflatten(0, batch_shape), 0

    operation.register_vmap(batched)


def tile_of(row: int, numbers: int) -> tuple[int, int]:
    """Return the length of a program's rows, a power of two, and how many it works on."""
    wide: int = triton.next_power_of_2(row)
    return wide, max(1, numbers // wide)
