"""Losses and predictions of models on samples."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedcohort.arrays import Ints
from fedcohort.learning.compilation import compile_at_first_call
from fedcohort.learning.layers import for_many_models
from fedcohort.learning.weights import make_forward
from fedcohort.learning.workers import Workers

EVALUATION_BATCH = 2500


class Evaluator:
    """Computes the loss of models on samples, and whether they classify them correctly.

    Args:
        workers: Threads and their copies of the model.
        x: Inputs [N, ...], on the device that evaluates.
        y: Labels [N], on the same device.
        dtype: Precision of the forward pass.
        compiled: Whether to compile the forward pass of full batches.
    """

    def __init__(
        self, workers: Workers, x: Tensor, y: Tensor, dtype: torch.dtype, compiled: bool
    ) -> None:
        self.workers = workers
        self.x = x
        self.y = y
        self._dtype = dtype
        self._compiled_forward = None
        if compiled:
            module = for_many_models(workers.module().eval())
            self._compiled_forward = compile_at_first_call(make_forward(module))
        self._test_data: dict[int, tuple[Ints, Tensor, Tensor]] = {}

    def outputs(self, weights: Tensor, samples: Ints) -> tuple[Tensor, Tensor]:
        """Return the loss [n] of weights [P] on samples [n], and where they are right [n]."""
        return self._outputs(weights, *self._gather(samples))

    def test_outputs(self, weights: Tensor, samples: Ints) -> tuple[Tensor, Tensor]:
        """Return the same, and keep the samples: runs that share a test set gather it once."""
        key = id(samples)
        if key not in self._test_data:
            x, y = self._gather(samples)
            # Keep the array as well, so that no other array gets its id.
            self._test_data[key] = (samples, x, y)
        _, x, y = self._test_data[key]
        return self._outputs(weights, x, y)

    def _gather(self, samples: Ints) -> tuple[Tensor, Tensor]:
        """Return inputs and labels of the samples, ready for the forward pass."""
        indices = torch.from_numpy(samples).to(self.x.device)
        x = self.x[indices].to(self._dtype)
        if self._compiled_forward is None:
            x = _fast_layout(x)
        return x, self.y[indices]

    @torch.no_grad()
    def _outputs(self, weights: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        weights = weights.to(self._dtype)
        forward = make_forward(self.workers.module().eval())
        full_batch_forward = self._compiled_forward or forward  # compiled for one shape

        losses = []
        correct = []
        batches_x = torch.split(x, EVALUATION_BATCH)
        batches_y = torch.split(y, EVALUATION_BATCH)
        for inputs, labels in zip(batches_x, batches_y, strict=True):
            if len(inputs) == EVALUATION_BATCH:
                logits = full_batch_forward(weights, inputs).float()
            else:
                logits = forward(weights, inputs).float()
            losses.append(cross_entropy(logits, labels, reduction="none"))
            correct.append(logits.argmax(dim=1) == labels)
        return torch.cat(losses), torch.cat(correct)


def _fast_layout(x: Tensor) -> Tensor:
    """Return images on a GPU with channels last in memory: convolutions are faster so."""
    if x.is_cuda and x.ndim == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x
