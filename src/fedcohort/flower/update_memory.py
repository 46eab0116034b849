"""The last update of every client on the server's disk, for rules that remember updates.

Each file holds one client's update of one round, in float32, and is written whole before the
checkpoint that names it. The last checkpoint and the one before it both find their files, so that
a run resumes exactly from either. The average over all clients is computed anew in every round
from the files, one at a time: a running sum would drift, and after a restart it would not have
the same bits.
"""

import logging
from pathlib import Path
from shutil import disk_usage
from typing import Any

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.checks import check_int
from fedcohort.files import load_state, save_state
from fedcohort.flower.models import Model
from fedcohort.lab.folder import UPDATE_MEMORY

log = logging.getLogger("flwr.fedcohort")
LARGEST_UPDATE = float(np.finfo(np.float32).max)
PARTS = ("client", "round", "update")


class UpdateMemory:
    """The last update of every client, in the folder `memory` of a run.

    Args:
        folder: Folder of the run.

    Attributes:
        rounds: Round of the update that is remembered, by client index.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / UPDATE_MEMORY
        self.rounds: dict[int, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._saved_round: int | None = None
        self._saved: dict[int, int] = {}  # as the last checkpoint names them
        self._saved_before: dict[int, int] = {}

    def prepare(self, model: Model) -> None:
        """Set which arrays an update has.

        Raises:
            ValueError: If an array of the model is not of floating point.
        """
        for name, array in model.items():
            if not np.issubdtype(array.dtype, np.floating):
                raise ValueError(
                    f"arrays of the model must be of floating point to remember updates, "
                    f"got {name!r} of {array.dtype}"
                )
        self._shapes = {name: array.shape for name, array in model.items()}

    def check_space(self, num_clients: int, cohort_size: int) -> None:
        """Log how much room the updates of all clients take, and refuse a disk without it.

        Up to two cohorts are there twice: the last checkpoint and the one before it name
        different files.

        Raises:
            ValueError: If the updates do not fit into the folder.
        """
        numbers = sum(int(np.prod(shape)) for shape in self._shapes.values())
        size = numbers * np.dtype(np.float32).itemsize
        needed = (num_clients + 2 * cohort_size) * size
        self.folder.mkdir(parents=True, exist_ok=True)
        used = sum(path.stat().st_size for path in self.folder.glob("*.safetensors"))
        free = disk_usage(self.folder).free + used
        log.info(
            "the last updates of %d clients take up to %s bytes in %s",
            num_clients,
            f"{needed:,}",
            self.folder,
        )
        if needed > free:
            raise ValueError(
                f"folder must have room for {needed:,} bytes to remember the updates of "
                f"{num_clients} clients, got {self.folder} with {free:,} free"
            )

    def combine(self, coefficients: Floats) -> Model:
        """Return the sum of coefficient times update over all that are remembered.

        Files of clients whose coefficient is zero are not read.

        Args:
            coefficients: One number for every client [K].

        Returns:
            The arrays in float64.
        """
        total = {name: np.zeros(shape) for name, shape in self._shapes.items()}
        for client in sorted(self.rounds):
            if coefficients[client] == 0:
                continue
            update = self._load(client, self.rounds[client])
            for name, values in update.items():
                total[name] += coefficients[client] * values.astype(np.float64)
        return total

    def store(self, server_round: int, client: int, model: Model, trained: Model) -> None:
        """Remember the update of a client; the one before it stays on disk for now.

        Args:
            server_round: The round in which it arrived.
            client: The client's index.
            model: The model that was sent.
            trained: The model that the client returned.
        """
        update = {}
        for name, current in model.items():
            change = trained[name].astype(np.float64) - current.astype(np.float64)
            update[name] = np.asarray(change, dtype=np.float32)  # a 0-d difference is a scalar
        state = {"client": client, "round": server_round, "update": update}
        save_state(self._path(client, server_round), state)
        self.rounds[client] = server_round

    def state_dict(self) -> dict[str, Any]:
        """Return which file of each client counts."""
        return {str(client): round for client, round in sorted(self.rounds.items())}

    def begin(self, server_round: int, state: dict[str, Any] | None) -> None:
        """Begin without any updates, or with those that a checkpoint names.

        Args:
            server_round: The round of the checkpoint.
            state: What `state_dict` returned; None for a new run.

        Raises:
            ValueError: If a file is missing, damaged, or does not fit the model.
        """
        rounds = {}
        for name, value in (state or {}).items():
            client = int(name)
            rounds[client] = check_int(f"round of client {client}", value, 1)
            self._load(client, rounds[client])
        self.rounds = rounds
        self._saved = dict(rounds)
        self._saved_round = None if state is None else server_round

    def on_checkpoint(self, server_round: int) -> None:
        """Remove the files that neither this checkpoint nor the one before it names."""
        if server_round == self._saved_round:
            return  # the checkpoint before is still the one before, and nothing was stored since
        self._saved_before = self._saved
        self._saved = dict(self.rounds)
        self._saved_round = server_round

        named = [*self._saved.items(), *self._saved_before.items()]
        kept = {self._path(client, round).name for client, round in named}
        for path in self.folder.glob("*.safetensors"):
            if path.name not in kept:
                path.unlink()

    def _load(self, client: int, round: int) -> Model:
        path = self._path(client, round)
        state = load_state(path, PARTS)
        update: Model = state["update"]
        shapes = {}
        for name, values in update.items():
            if isinstance(values, np.ndarray) and values.dtype == np.float32:
                shapes[name] = values.shape
        if (state["client"], state["round"]) != (client, round) or shapes != self._shapes:
            raise ValueError(
                f"{path} must hold the update of client {client} in round {round} to this model, "
                f"got one of client {state['client']!r} in round {state['round']!r} "
                f"with arrays {shapes}"
            )
        return update

    def _path(self, client: int, round: int) -> Path:
        return self.folder / f"{client:07d}-{round:07d}.safetensors"
