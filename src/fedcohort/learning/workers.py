"""Threads that share the work of a CPU, and how many of them are worth their while.

Each thread has its own copy of the model and computes its operations alone.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from threading import local
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.jit import ScriptModule
from torch.nn.utils.parametrize import ParametrizationList

T = TypeVar("T")
R = TypeVar("R")
# Multiply-adds of one batched step that a thread must have to be worth its while: with fewer,
# threads wait for Python's lock for longer than they compute. Measured with small networks.
WORK_PER_THREAD = 4_000_000
# Just below the size up to which the C library on Linux learns from what is freed.
LARGE_BLOCK = 31 * 2**20


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
            keep_freed_memory()
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


def suitable_parts(step_work: int, threads: int) -> int:
    """Return how many threads share a batched step.

    Args:
        step_work: Multiply-adds of the forward pass of a step.
        threads: Number of threads that there are.

    Examples:
        >>> suitable_parts(2_000_000, threads=2), suitable_parts(30_000_000, threads=4)
        (1, 4)
    """
    return max(1, min(threads, step_work // WORK_PER_THREAD))


@torch.no_grad()
def multiply_adds(module: nn.Module, x: Tensor) -> int:
    """Return about how many multiply-adds a forward pass takes per sample.

    Every weight of a layer counts once for every place at which the layer is applied.

    Args:
        module: A model.
        x: One input, [1, ...].
    """
    counts = []

    def count(layer: nn.Module, args: tuple[Tensor, ...], out: Tensor) -> None:
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            counts.append(out.numel() // layer.weight.shape[0] * layer.weight.numel())

    _watch_layers(module, x, count)
    parameters = sum(weight.numel() for weight in module.parameters())
    return max(sum(counts), parameters)


@torch.no_grad()
def most_kept_samples(module: nn.Module, x: Tensor) -> int:
    """Return how many samples pass a model in memory that the C library keeps, at least 8.

    The outputs of a layer for more samples may come from the system and go back to it in every
    pass, page by page. Half of `LARGE_BLOCK` leaves room for what a layer needs beside its output.

    Args:
        module: A model.
        x: A few inputs, [n, ...].
    """
    sizes = [x.nbytes]

    def note_size(layer: nn.Module, args: tuple[Any, ...], out: Any) -> None:
        if isinstance(out, Tensor):
            sizes.append(out.nbytes)

    _watch_layers(module, x, note_size)
    return max(8, len(x) * (LARGE_BLOCK // 2) // max(sizes))


def _watch_layers(module: nn.Module, x: Tensor, on_output: Callable[..., None]) -> None:
    """Call a function with layers, their arguments and their outputs, in one pass of a model.

    Layers of TorchScript are left out, because they take no hooks. So are modules that compute a
    weight, such as that of `weight_norm`: their outputs are not of samples.
    """
    left_out: set[nn.Module] = set()
    for layer in module.modules():
        if isinstance(layer, (ScriptModule, ParametrizationList)):
            left_out.update(layer.modules())
    watched = [layer for layer in module.modules() if layer not in left_out]

    hooks = [layer.register_forward_hook(on_output) for layer in watched]
    with torch.random.fork_rng(devices=[]):
        module(x)
    for hook in hooks:
        hook.remove()


def keep_freed_memory() -> None:
    """Let the C library keep freed memory for the next step, instead of returning it.

    Fetching a step's memory from the system again costs time in every step. The library keeps more
    of it once a large block has been freed. On other systems this does nothing; the block is never
    written to, so it costs nothing.
    """
    bytearray(LARGE_BLOCK)
