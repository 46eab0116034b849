"""Threads that share the work of a CPU.

Each thread has its own copy of the model and computes its operations alone.
"""

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
    """A pool of threads.

    Without threads, as on a GPU, the caller does the work.

    Operations on small models are too short to be split among cores, but whole jobs split well.
    Calling a module with other weights changes the module for a moment, so no two threads may
    share one.

    Args:
        module: Model that every thread copies.
        threads: Number of threads; 0 lets the caller work with the module itself.
    """

    def __init__(self, module: nn.Module, threads: int) -> None:
        self._module = module
        self._thread_local = local()
        self.count = max(threads, 1)
        self._pool: ThreadPoolExecutor | None = None
        if threads:
            self._pool = ThreadPoolExecutor(
                threads, initializer=torch.set_num_threads, initargs=(1,)
            )

    def module(self) -> nn.Module:
        """Return the calling thread's own copy of the module."""
        if self._pool is None:
            return self._module
        if not hasattr(self._thread_local, "module"):
            self._thread_local.module = deepcopy(self._module)
        copy: nn.Module = self._thread_local.module
        return copy

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the results in the order of the items, whichever finishes first."""
        if self._pool is None:
            return [work(item) for item in items]
        return list(self._pool.map(work, items))
