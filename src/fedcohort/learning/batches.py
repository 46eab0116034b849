"""The samples of every step of a client's local update."""

import numpy as np

from fedcohort.arrays import Ints


class Batches:
    """The samples of every step of a job, each epoch in a new order.

    An epoch is drawn when its first step is asked for: while a GPU computes the first steps of a
    round, the host draws the later ones. What is drawn does not depend on when.

    Args:
        samples: Samples of one client, [n].
        epochs: Number of passes over the samples.
        batch_size: Samples per step, B.
        rng: Generator of the orders, which nobody else uses.

    Examples:
        >>> batches = Batches(np.arange(5), epochs=2, batch_size=3, rng=np.random.default_rng(0))
        >>> len(batches), batches[2:].shape
        (4, (2, 3))
    """

    def __init__(
        self, samples: Ints, epochs: int, batch_size: int, rng: np.random.Generator
    ) -> None:
        self._samples = samples
        self._rng = rng
        self._per_epoch = -(-samples.size // batch_size)
        self._rows = np.empty((epochs * self._per_epoch, batch_size), dtype=np.int64)
        self._drawn = 0

    def __len__(self) -> int:
        """Number of steps."""
        return len(self._rows)

    def __getitem__(self, steps: slice) -> Ints:
        """Return the samples of some steps, [steps, B]; -1 fills the last batch of an epoch."""
        last = steps.indices(len(self))[1]
        if last > self._drawn:
            epochs = -(-(last - self._drawn) // self._per_epoch)
            rows = draw_batches(self._samples, epochs, self._rows.shape[1], self._rng)
            self._rows[self._drawn : self._drawn + len(rows)] = rows
            self._drawn += len(rows)
        return self._rows[steps]


def draw_batches(samples: Ints, epochs: int, batch_size: int, rng: np.random.Generator) -> Ints:
    """Return the samples of every step, each epoch in a new order.

    Args:
        samples: Samples of one client, [n].
        epochs: Number of passes over the samples.
        batch_size: Samples per step, B.
        rng: Generator of the orders.

    Returns:
        Array [steps, B]; -1 fills the last batch of an epoch.
    """
    per_epoch = -(-samples.size // batch_size)
    order = np.full((epochs, per_epoch * batch_size), -1, dtype=np.int64)
    copies = np.broadcast_to(samples, (epochs, samples.size))
    order[:, : samples.size] = rng.permuted(copies, axis=-1)
    return order.reshape(epochs * per_epoch, batch_size)
