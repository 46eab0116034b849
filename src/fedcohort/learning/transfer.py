"""Copies between host and device that do not wait for what the device still computes."""

from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor


def upload(values: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor on the device.

    A GPU finishes its work before it copies ordinary memory. From pinned memory it copies when the
    work before is done, and the host goes on at once.
    """
    tensor = torch.from_numpy(values)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
