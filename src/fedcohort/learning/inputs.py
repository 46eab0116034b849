"""Checks that an engine's models, samples and runs fit together."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from fedcohort.arrays import Ints
from fedcohort.checks import check_array
from fedcohort.learning.models import check_no_batch_statistics
from fedcohort.learning.run import Run


def check_inputs(modules: Sequence[nn.Module], x: Tensor, y: Tensor, runs: Sequence[Run]) -> None:
    """Check the arguments of an engine.

    Args:
        modules: One initial model per run, all with the same parameters.
        x: Inputs [N, ...], float32.
        y: Labels [N], int64.
        runs: At least one run; all have the same number of clients.

    Raises:
        ValueError: If an argument does not fit the others.
    """
    if not runs or len(modules) != len(runs):
        raise ValueError(
            f"modules must be one per run, at least one, got {len(modules)} for {len(runs)} runs"
        )
    _check_modules(modules)
    _check_samples(modules[0], x, y)

    num_clients = len(runs[0].train)
    for run in runs:
        if len(run.train) != num_clients:
            raise ValueError(
                f"runs must have as many clients each, {num_clients}, got {len(run.train)}"
            )
        _check_positions("train", run.train, len(y))
        _check_positions("test", [run.test], len(y))


def _check_positions(name: str, parts: Sequence[Ints], num_samples: int) -> None:
    """Check positions of samples; each part may be of another type of whole numbers."""
    for part in parts:
        kind = np.asarray(part).dtype
        if kind.kind not in "iu":
            raise ValueError(f"{name} must be whole numbers, positions of samples, got {kind}")
    samples = np.concatenate(parts)  # of several types together these may be float64
    check_array(name, samples, (len(samples),), 0, num_samples - 1)


def _check_modules(modules: Sequence[nn.Module]) -> None:
    expected = _parameter_shapes(modules[0])
    for module in modules:
        check_no_batch_statistics(module)
        shapes = _parameter_shapes(module)
        if not shapes or shapes != expected:
            raise ValueError(
                "modules must have the same parameters, at least one, "
                f"got {len(shapes)} in {type(module).__name__}"
            )
    if not any(parameter.requires_grad for parameter in modules[0].parameters()):
        raise ValueError(
            "modules must have a parameter that is trained, "
            f"got only frozen ones in {type(modules[0]).__name__}"
        )


def _check_samples(module: nn.Module, x: Tensor, y: Tensor) -> None:
    if len(x) != len(y):
        raise ValueError(f"x and y must be equally long, got {len(x)} and {len(y)}")
    if x.dtype != torch.float32 or y.dtype != torch.int64:
        raise ValueError(f"x must be float32 and y int64, got {x.dtype} and {y.dtype}")
    check_array("y", y.cpu().numpy(), (len(y),), 0, _count_classes(module, x) - 1)


def _parameter_shapes(module: nn.Module) -> list[torch.Size]:
    return [parameter.shape for parameter in module.parameters()]


def _count_classes(module: nn.Module, x: Tensor) -> int:
    """Return how many logits a model has; restore the mode that the model was in."""
    was_training = module.training
    with torch.no_grad():
        logits = module.eval()(x[:2].to(next(module.parameters()).device))
    module.train(was_training)
    return int(logits.shape[-1])
