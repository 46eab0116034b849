"""Threads that share the work of a CPU: each with its own copy of the model and one thread inside its operations."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from threading import local
from typing import TypeVar

import torch
from torch import nn

T = TypeVar("T")
R = TypeVar("R")


class Workers:
    """A pool of threads; with none, work is done by the caller, as on a GPU.

    Operations on small models are too short to be split among cores, while whole jobs split well; and calling a module with
    other weights changes the module for a moment, so that no two threads may share one.
    """

    def __init__(self, module: nn.Module, threads: int) -> None:
        self._module, self._own = module, local()
        self.count = max(threads, 1)
        self._pool = (
            ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
            if threads
            else None
        )

    def module(self) -> nn.Module:
        """Return the calling thread's own copy."""
        if self._pool is None:
            return self._module
        if not hasattr(self._own, "module"):
            self._own.module = deepcopy(self._module)
        copy: nn.Module = self._own.module
        return copy

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the results in the order of the items, whoever ends first."""
        return list(map(work, items) if self._pool is None else self._pool.map(work, items))
