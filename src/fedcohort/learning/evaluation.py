"""Losses and predictions of models on samples."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap
from torch.nn.functional import cross_entropy

from fedcohort.arrays import Floats, Ints
from fedcohort.learning.compilation import compile_by_shape
from fedcohort.learning.layers import for_many_models
from fedcohort.learning.run import Run
from fedcohort.learning.transfer import upload
from fedcohort.learning.weights import make_forward
from fedcohort.learning.workers import Workers, most_kept_samples

EVALUATION_BATCH = 2500  # most samples that one model is tested on at a time
MANY_BATCH = 50_000  # samples that many models together are tested on at a time


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well the models of R runs do on their test samples.

    Attributes:
        accuracy: Share of the samples that each model classifies correctly, [R].
        loss: Mean loss of each model, [R].
        class_accuracy: Accuracy on the samples of each class of clients, [R, G]; nan where a class
            owns none of them.
        label_accuracy: Accuracy on the samples of each label, [R, C]; nan where there are none.
    """

    accuracy: Floats
    loss: Floats
    class_accuracy: Floats
    label_accuracy: Floats


@dataclass(frozen=True, eq=False)
class PendingEvaluation:
    """An evaluation that a GPU may still be computing, while the host prepares the next round.

    Attributes:
        tables: Accuracy, mean loss and correct samples by class and label of every run,
            [R, 2 + G * C], on the host or on the way there.
        sizes: Number of samples of each class and label, [R, G, C].
        knows_owners: Whether the samples belong to clients, and so to classes of them.
        copied: Event after which the tables have arrived; None if they are there.
    """

    tables: Tensor
    sizes: Ints
    knows_owners: bool
    copied: torch.cuda.Event | None

    @property
    def is_ready(self) -> bool:
        """Whether `finish` need not wait; on a GPU always false, so that runs repeat exactly."""
        return self.copied is None

    def finish(self) -> Evaluation:
        """Wait for the result and return it."""
        if self.copied is not None:
            self.copied.synchronize()
        results = self.tables.numpy()
        correct = results[:, 2:].reshape(self.sizes.shape)
        by_class = _shares(correct.sum(axis=2), self.sizes.sum(axis=2))
        if not self.knows_owners:
            by_class = np.full(by_class.shape, np.nan)
        by_label = _shares(correct.sum(axis=1), self.sizes.sum(axis=1))
        return Evaluation(results[:, 0], results[:, 1], by_class, by_label)


@dataclass(frozen=True, eq=False)
class _TestSet:
    """Samples that runs are tested on, gathered once on the device.

    Attributes:
        arrays: The arrays it was made from. They are kept, so that no other array gets their ids.
        x: Inputs [n, ...], ready for the forward pass.
        y: Labels [n].
        cells: 1 where a sample stands in a table of classes of clients by labels, [n, G * C],
            at class * C + label, and 0 elsewhere.
        sizes: Number of samples in each cell of that table, [G, C].
    """

    arrays: tuple[Ints | None, ...]
    x: Tensor
    y: Tensor
    cells: Tensor
    sizes: Ints


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
        forward = make_forward(for_many_models(workers.module()).eval())
        self._forward_many = vmap(forward, in_dims=(0, None), randomness="different")
        if compiled:
            self._forward_many = compile_by_shape(self._forward_many)
        self._many_batch = MANY_BATCH
        self._kept_samples = EVALUATION_BATCH
        if x.is_cpu:
            self._kept_samples = most_kept_samples(workers.module(), x[:2])
        self._num_labels = int(y.max()) + 1
        self._test_sets: dict[tuple[int, ...], _TestSet] = {}
        self._given: tuple[int, ...] = ()  # key of the last samples that are no run's own

    def losses(self, weights: Tensor, samples: Ints) -> Tensor:
        """Return the loss [n] of weights [P] on samples [n]; a GPU may still be computing it."""
        if weights.is_cuda:
            return self.losses_in_whole_batches(weights, samples)
        parts = np.array_split(samples, self._num_batches(samples.size))
        return self._outputs(weights, map(self._gather, parts))[0]

    @torch.no_grad()
    def losses_in_whole_batches(self, weights: Tensor, samples: Ints) -> Tensor:
        """Return the same by the pass of many models, which is compiled for every batch size.

        So the last batch is filled up with samples that are dropped again.
        """
        num_batches = -(-samples.size // EVALUATION_BATCH)
        x, y = self._gather(np.resize(samples, num_batches * EVALUATION_BATCH))
        one_model = weights[None].to(self._dtype)
        losses, _ = self._outputs_in_batches(one_model, x, y, EVALUATION_BATCH)
        return losses[0, : samples.size]

    def start(
        self, models: Tensor, runs: Sequence[Run], samples: Ints | None = None
    ) -> PendingEvaluation:
        """Start to test the models [R, P] of the runs, in one pass over their test samples.

        Args:
            models: Weights of each run's model.
            runs: The R runs.
            samples: Samples to test all runs on. They have no owner, so no class of clients. By
                default each run's own test samples.
        """
        num_classes = max(run.num_classes for run in runs)
        test_sets = [self._test_set(run, samples, num_classes) for run in runs]
        sizes = np.stack([tested.sizes for tested in test_sets])

        if models.is_cuda:
            tables = self._test_together(models, test_sets).to("cpu", non_blocking=True)
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record()
            return PendingEvaluation(tables, sizes, samples is None, copied)

        def test(run: int) -> Tensor:
            tested = test_sets[run]
            count = self._num_batches(len(tested.y))
            batches_x = torch.tensor_split(tested.x, count)
            batches_y = torch.tensor_split(tested.y, count)
            outputs = self._outputs(models[run], zip(batches_x, batches_y, strict=True))
            return _table(tested, *outputs)

        tables = torch.stack(self.workers.map(test, range(len(runs)))).cpu()
        return PendingEvaluation(tables, sizes, samples is None, None)

    def untested(self, runs: Sequence[Run]) -> Evaluation:
        """Return nan for everything that `evaluate` tells about the runs."""
        nothing = np.full(len(runs), np.nan)
        num_classes = max(run.num_classes for run in runs)
        by_class = np.full((len(runs), num_classes), np.nan)
        by_label = np.full((len(runs), self._num_labels), np.nan)
        return Evaluation(nothing, nothing, by_class, by_label)

    def _test_together(self, models: Tensor, test_sets: Sequence[_TestSet]) -> Tensor:
        """Return the table of every run; models with the same test set take one pass."""
        rows_by_set: dict[int, list[int]] = {}
        for row, tested in enumerate(test_sets):
            rows_by_set.setdefault(id(tested), []).append(row)

        parts = []
        for rows in rows_by_set.values():
            tested = test_sets[rows[0]]
            own = models[upload(np.array(rows), models.device)]
            parts.append(_table(tested, *self._many_outputs(own, tested.x, tested.y)))
        order = np.concatenate(list(rows_by_set.values()))
        return torch.cat(parts)[upload(np.argsort(order), models.device)]

    @torch.no_grad()
    def _many_outputs(self, models: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss [R, n] of models [R, P] on samples, and where they are right [R, n]."""
        weights = models.to(self._dtype)
        batch = max(1, self._many_batch // len(models))
        while True:
            try:
                return self._outputs_in_batches(weights, x, y, batch)
            except torch.OutOfMemoryError:
                if batch == 1:
                    raise
            batch = -(-batch // 2)
            self._many_batch = batch * len(models)
            torch.cuda.empty_cache()

    def _outputs_in_batches(
        self, weights: Tensor, x: Tensor, y: Tensor, batch: int
    ) -> tuple[Tensor, Tensor]:
        losses = []
        correct = []
        for inputs, labels in zip(torch.split(x, batch), torch.split(y, batch), strict=True):
            logits = self._forward_many(weights, inputs).float()
            wanted = labels.expand(len(weights), -1)
            losses.append(cross_entropy(logits.transpose(1, 2), wanted, reduction="none"))
            correct.append(logits.argmax(dim=2) == wanted)
        return torch.cat(losses, dim=1), torch.cat(correct, dim=1)

    def _test_set(self, run: Run, samples: Ints | None, num_classes: int) -> _TestSet:
        """Return the samples on the device; runs that share a test set gather it once."""
        arrays: tuple[Ints | None, ...] = (run.test, run.test_owners, run.classes)
        if samples is not None:
            arrays = (samples, None, None)
        key = tuple(map(id, arrays))
        if key not in self._test_sets:
            if samples is not None:  # a caller may give new ones in every round
                self._test_sets.pop(self._given, None)
                self._given = key
            tested = run.test if samples is None else samples
            x, y = self._gather(tested)
            cells = y.cpu().numpy().copy()
            if samples is None:
                cells += run.test_classes * self._num_labels
            sizes = np.bincount(cells, minlength=num_classes * self._num_labels)
            one_hot = (cells[:, None] == np.arange(sizes.size)).astype(np.float32)
            self._test_sets[key] = _TestSet(
                arrays,
                x,
                y,
                torch.from_numpy(one_hot).to(y.device),
                sizes.reshape(num_classes, self._num_labels),
            )
        return self._test_sets[key]

    def _gather(self, samples: Ints) -> tuple[Tensor, Tensor]:
        """Return inputs and labels of the samples, ready for the forward pass."""
        indices = upload(samples.astype(np.int64, copy=False), self.x.device)  # bytes are a mask
        return fast_layout(self.x[indices].to(self._dtype)), self.y[indices]

    def _num_batches(self, num_samples: int) -> int:
        """Return in how many batches, equally long, a CPU tests a model."""
        batch = min(EVALUATION_BATCH, self._kept_samples)
        return max(1, -(-num_samples // batch))

    @torch.no_grad()
    def _outputs(
        self, weights: Tensor, batches: Iterable[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Return the loss [n] of weights [P] on batches of n samples, and where they are right."""
        forward = make_forward(self.workers.module().eval())
        losses = []
        correct = []
        for inputs, labels in batches:
            logits = forward(weights, inputs).float()
            losses.append(cross_entropy(logits, labels, reduction="none"))
            correct.append(logits.argmax(dim=1) == labels)
        return torch.cat(losses), torch.cat(correct)


def _table(tested: _TestSet, losses: Tensor, correct: Tensor) -> Tensor:
    """Return accuracy, mean loss and the number of correct samples in each cell.

    Losses and correct may be of one model, [n], or of many, [R, n].
    """
    accuracy = correct.double().mean(dim=-1, keepdim=True)
    loss = losses.double().mean(dim=-1, keepdim=True)
    counts = correct.float() @ tested.cells  # sums of ones, exact up to 2 ** 24
    return torch.cat([accuracy, loss, counts.double()], dim=-1)


def _shares(correct: Floats, sizes: Ints) -> Floats:
    """Return correct / sizes, nan where there is nothing to test."""
    with np.errstate(invalid="ignore"):
        shares: Floats = correct / sizes
    return shares


def fast_layout(x: Tensor) -> Tensor:
    """Return images on a GPU with channels last in memory: convolutions are faster so."""
    if x.is_cuda and x.ndim == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x
