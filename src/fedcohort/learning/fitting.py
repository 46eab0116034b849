"""Whether what an engine is given fits together: models, samples, and who owns which."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from fedcohort.arrays import Ints
from fedcohort.checks import check_array
from fedcohort.learning.models import refuse_shared_statistics

Owned = tuple[
    Sequence[Ints], Ints
]  # samples that each client of a run trains on, and those it is tested on


def refuse_unfit(modules: Sequence[nn.Module], x: Tensor, y: Tensor, runs: Sequence[Owned]) -> None:
    """Refuse modules, samples and runs that do not fit together."""
    if not runs or len(modules) != len(runs):
        raise ValueError(
            f"modules must be one per run, at least one, got {len(modules)} for {len(runs)} runs"
        )
    for module in modules:
        refuse_shared_statistics(module)
        shapes = [part.shape for part in module.parameters()]
        if not shapes or shapes != [part.shape for part in modules[0].parameters()]:
            raise ValueError(
                f"modules must have the same parameters, at least one, got {len(shapes)} in {type(module).__name__}"
            )
    if len(x) != len(y):
        raise ValueError(f"x and y must be equally long, got {len(x)} and {len(y)}")
    if x.dtype != torch.float32 or y.dtype != torch.int64:
        raise ValueError(f"x must be float32 and y int64, got {x.dtype} and {y.dtype}")
    check_array("y", y.cpu().numpy(), (len(y),), 0, _classes(modules[0], x) - 1)
    for train, test in runs:
        if len(train) != len(runs[0][0]):
            raise ValueError(
                f"runs must have as many clients each, {len(runs[0][0])}, got {len(train)}"
            )
        for name, samples in (("train", np.concatenate(train)), ("test", test)):
            check_array(name, samples, (len(samples),), 0, len(y) - 1)


def _classes(module: nn.Module, x: Tensor) -> int:
    """Return how many logits a model has; it is left in the mode it was in."""
    training = module.training
    with torch.no_grad():
        logits = module.eval()(x[:2].to(next(module.parameters()).device))
    module.train(training)
    return int(logits.shape[-1])
