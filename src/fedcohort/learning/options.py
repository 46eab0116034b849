"""How and where an engine computes: device, precision, compilation, way of training."""

from dataclasses import dataclass

import torch

from fedcohort.checks import MAX_COUNT, check_choice, check_int, one_line
from fedcohort.learning.update_memory import MEMORY_TYPES

PRECISIONS = {"float32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}
MODES = ("auto", "together", "one-by-one")


@dataclass(frozen=True)
class Options:
    """How an engine computes; results in float32 are the reference.

    Attributes:
        device: Name of a PyTorch device, or "auto": a GPU if there is one.
        precision: Precision of forward and backward passes: "float32", "tf32" or "bf16". The
            weights stay in float32. A CPU computes in float32 only.
        compiled: Whether to use `torch.compile`; ignored on a CPU.
        mode: "together" steps many clients in one batched operation, "one-by-one" trains each
            client alone. "auto" measures on a CPU which is faster and remembers it for this machine
            and model, see `fedcohort.learning.mode_memory`; it takes "together" on a GPU.
        slots: Most clients that step side by side; None chooses a suitable number.
        max_norm: Longest change that a client may return. A longer change, or one that is not
            finite, is rejected and counts as a failure.
        memory: Precision of the updates that some rules remember: "float32" or "bf16", which
            takes half the memory.

    Raises:
        ValueError: If a value is unknown or out of bounds.

    Examples:
        >>> Options(mode="one-by-one").precision
        'float32'
    """

    device: str = "cpu"
    precision: str = "float32"
    compiled: bool = False
    mode: str = "auto"
    slots: int | None = None
    max_norm: float = float("inf")
    memory: str = "float32"

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, MODES)
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("memory", self.memory, MEMORY_TYPES)
        if self.slots is not None:
            check_int("slots", self.slots, 1, MAX_COUNT)
        if not self.max_norm > 0:
            raise ValueError(f"max_norm must be above 0, got {self.max_norm!r}")


def find_device(name: str) -> torch.device:
    """Return a device that works on this machine.

    Args:
        name: Name of a PyTorch device, or "auto": a GPU if there is one.

    Raises:
        ValueError: If PyTorch cannot use the device.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device must be cpu, cuda, cuda:N or auto, got {name!r}") from None
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = one_line(error)
        raise ValueError(
            f"device must be one that PyTorch can use here, got {name!r}: {reason}"
        ) from None
    return device
