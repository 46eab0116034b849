"""The last update of every client, for runs whose rule remembers updates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedcohort.arrays import Bools, Ints
from fedcohort.memory import check_memory

MEMORY_TYPES = {"float32": torch.float32, "bf16": torch.bfloat16}
ARRAY_TYPES = {torch.float32: np.float32, torch.bfloat16: np.int16}  # as they are stored


class UpdateMemory:
    """The last update of every client of M runs, on the device that trains.

    Args:
        runs: Positions of the M runs that remember, among all R runs.
        num_runs: Number of all runs, R.
        num_clients: Number of clients of each run, K.
        num_weights: Number of weights of the model, P.
        precision: "float32", or "bf16" for half the memory.
        device: Device that holds the memory.

    Attributes:
        values: The updates [M, K, P], zeros until a client is heard of.

    Raises:
        ValueError: If the memory does not fit the device, with the bytes it needs.

    Examples:
        >>> import torch
        >>> memory = UpdateMemory([0], 1, num_clients=2, num_weights=1)
        >>> run, client = torch.tensor([0]), torch.tensor([1])
        >>> memory.store(torch.tensor([[4.0]]), torch.tensor([True]), run, client)
        >>> memory.average(torch.tensor([[0.75, 0.25]])).tolist()
        [[1.0]]
        >>> memory.news(torch.tensor([[6.0]]), run, client).tolist()
        [[2.0]]
    """

    def __init__(
        self,
        runs: Sequence[int],
        num_runs: int,
        num_clients: int,
        num_weights: int,
        precision: str = "float32",
        device: torch.device | str = "cpu",
    ) -> None:
        self.runs = list(runs)
        dtype = MEMORY_TYPES[precision]
        shape = (len(self.runs), num_clients, num_weights)
        _check_fits(shape, dtype, torch.device(device))
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        rows = torch.full((num_runs,), -1, dtype=torch.int64)
        rows[self.runs] = torch.arange(len(self.runs))
        self._row_of_run = rows.to(device)
        self._changed: Bools = np.zeros(shape[:2], dtype=np.bool_)
        self._known: Bools = np.zeros(shape[:2], dtype=np.bool_)

    def news(self, change: Tensor, run: Tensor, client: Tensor) -> Tensor:
        """Return updates less the ones remembered; those of other runs stay as they are.

        Args:
            change: Updates [J, P].
            run: Position of the run of each update [J].
            client: Client of each update [J].
        """
        own, rows = self._own_rows(run)
        news = change.clone()
        news[own] -= self.values[rows, client[own]].float()
        return news

    def average(self, shares: Tensor) -> Tensor:
        """Return the average of all that is remembered, by the shares of the clients.

        Args:
            shares: Share of each client of all runs [R, K].

        Returns:
            The averages [R, P], zeros for runs that do not remember.
        """
        averages = torch.zeros((len(shares), self.values.shape[2]), device=self.values.device)
        for row, run in enumerate(self.runs):
            averages[run] = shares[run] @ self.values[row].float()
        return averages

    def store(self, change: Tensor, is_valid: Tensor, run: Tensor, client: Tensor) -> None:
        """Remember the updates that are valid.

        Args:
            change: Updates [J, P].
            is_valid: Which of them count [J].
            run: Position of the run of each update [J].
            client: Client of each update [J].
        """
        own, rows = self._own_rows(run)
        kept = is_valid[own]
        own, rows = own[kept], rows[kept]
        clients = client[own]
        self.values[rows, clients] = change[own].to(self.values.dtype)
        places = rows.cpu().numpy(), clients.cpu().numpy()
        self._changed[places] = True
        self._known[places] = True

    def take_changed(self) -> tuple[Ints, npt.NDArray[Any]]:
        """Return what changed since the last call: run row and client [n, 2], updates [n, P].

        Updates in bf16 are returned by their bits, as int16, because NumPy has no such type.
        """
        places = np.argwhere(self._changed)
        self._changed[:] = False
        return places, self._read(places)

    def all_known(self) -> tuple[Ints, npt.NDArray[Any]]:
        """Return every update that was ever stored, as `take_changed` returns them."""
        places = np.argwhere(self._known)
        return places, self._read(places)

    def restore(self, places: Ints, updates: npt.NDArray[Any]) -> None:
        """Put back what `take_changed` or `all_known` returned.

        Args:
            places: Run row and client of each update [n, 2].
            updates: The updates [n, P].

        Raises:
            ValueError: If they do not fit this memory; nothing changes then.
        """
        rows, clients, weights = self.values.shape
        fits = places.ndim == 2 and updates.shape == (len(places), weights)
        if fits and places.size:
            fits = bool((places >= 0).all() and (places < (rows, clients)).all())
        if not fits or updates.dtype != ARRAY_TYPES[self.values.dtype]:
            raise ValueError(
                f"remembered updates must be of {rows} runs, {clients} clients and {weights} "
                f"weights in {self.values.dtype}, got {updates.shape} in {updates.dtype}"
            )
        row, client = torch.from_numpy(places).to(self.values.device).T
        self.values[row, client] = torch.from_numpy(updates).view(self.values.dtype).to(self.device)
        self._known[places[:, 0], places[:, 1]] = True

    @property
    def device(self) -> torch.device:
        """Device that holds the memory."""
        return self.values.device

    def _read(self, places: Ints) -> npt.NDArray[Any]:
        row, client = torch.from_numpy(places).to(self.device).T
        updates = self.values[row, client].cpu()
        if updates.dtype == torch.bfloat16:
            updates = updates.view(torch.int16)
        return updates.numpy()

    def _own_rows(self, run: Tensor) -> tuple[Tensor, Tensor]:
        """Return which updates are of runs that remember, and the rows of their runs."""
        rows = self._row_of_run[run]
        own = torch.nonzero(rows >= 0)[:, 0]
        return own, rows[own]


def _check_fits(shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a memory larger than the device's free memory, or than the machine's."""
    runs, clients, weights = shape
    needed = runs * clients * weights * dtype.itemsize
    words = f"{runs} runs of {clients} clients with {weights:,} weights each in {dtype}"
    if device.type != "cuda":
        check_memory("rules that remember updates", words, needed)
        return
    free, _ = torch.cuda.mem_get_info(device)
    if needed > free:
        raise ValueError(
            f"rules that remember updates must fit the {free:,} bytes that are free on {device}, "
            f"got {words}, which need {needed:,} bytes"
        )
