"""Aggregation rules: from the arrived updates to the next model, for all runs at once.

model [R, P], step [R, P] = sum over arrived clients of share_i (Theta_i - Theta), arrived [R] = sum of their shares
"""

from collections.abc import Callable

import torch
from torch import Tensor

Rule = Callable[[Tensor, Tensor], Tensor]


def paper(step: Tensor, arrived: Tensor) -> Tensor:
    """Let missing clients count as the current model (P1): the step is small when few arrive; nothing if none did."""
    return step


def normalised(step: Tensor, arrived: Tensor) -> Tensor:
    """Average over those who arrived: the step does not shrink with failures; nothing if none arrived."""
    return torch.where(
        arrived[:, None] > 0, step / arrived[:, None].clamp_min(torch.finfo(step.dtype).tiny), 0.0
    )


AGGREGATIONS: dict[str, Rule] = {"paper": paper, "normalised": normalised}


def server_step(
    model: Tensor, change: Tensor, velocity: Tensor, rate: Tensor, momentum: Tensor
) -> tuple[Tensor, Tensor]:
    """Move the models along the aggregated change with a server rate and momentum; 1 and 0 give the rules as they are."""
    velocity = momentum[:, None] * velocity + change
    return model + rate[:, None] * velocity, velocity
