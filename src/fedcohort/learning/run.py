"""One of the runs that an engine trains in lock-step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.aggregation.server import SERVER_OPTIMIZERS
from fedcohort.arrays import Floats, Ints
from fedcohort.checks import MAX_COUNT, check_array, check_choice, check_range


@dataclass(frozen=True, eq=False)
class Run:
    """One of the runs in lock-step: who owns which samples, how clients and server learn.

    Attributes:
        seed: Seed of the order in which clients see their samples.
        train: For each of the K clients, the samples it trains on, as positions in the data.
        test: Samples that the run is tested on, as positions in the data.
        epochs: Local epochs of each client, [K].
        mu: Coefficient of FedProx's proximal term; 0 gives FedAvg.
        aggregation: Name of the rule in `AGGREGATIONS` that combines the updates.
        server_rate: Factor of the aggregated update.
        server_momentum: Momentum of the server's step; 0 for none.
        server_optimizer: "sgd" adds the aggregated update, with rate and momentum; "adam" and
            "yogi" take adaptive steps, which have their own momentum.
        success_rates: How often each client answers [K], for rules that know it.

    Raises:
        ValueError: If a client has no samples, or a value is out of bounds.

    Examples:
        >>> import numpy as np
        >>> owned = [np.array([0, 1, 2]), np.array([3])]
        >>> run = Run(seed=0, train=owned, test=np.array([4, 5]), epochs=np.array([1, 2]))
        >>> run.shares
        array([0.75, 0.25])
    """

    seed: int
    train: Sequence[Ints]
    test: Ints
    epochs: Ints
    mu: float = 0.0
    aggregation: str = "paper"
    server_rate: float = 1.0
    server_momentum: float = 0.0
    server_optimizer: str = "sgd"
    success_rates: Floats | None = None

    def __post_init__(self) -> None:
        check_choice("aggregation", self.aggregation, AGGREGATIONS)
        check_choice("server_optimizer", self.server_optimizer, SERVER_OPTIMIZERS)
        if self.server_optimizer != "sgd" and self.server_momentum:
            raise ValueError(
                f"server_momentum must be 0 for the server_optimizer {self.server_optimizer!r}, "
                f"which has its own, got {self.server_momentum}"
            )
        check_range("mu", self.mu, 0.0, 1e6)
        self._check_train()
        if not len(self.test):
            raise ValueError("test must hold at least one sample, got none")
        self._check_epochs()

    @property
    def shares(self) -> Floats:
        """Share of each client in all training samples, [K]; the paper's omega."""
        sizes: Floats = np.array([len(samples) for samples in self.train], dtype=np.float64)
        return np.asarray(sizes / sizes.sum())

    def _check_train(self) -> None:
        sizes = [len(samples) for samples in self.train]
        if sizes and 0 not in sizes:
            return
        client = sizes.index(0) if sizes else 0
        raise ValueError(
            f"train must hold at least one sample per client, got none for client {client}"
        )

    def _check_epochs(self) -> None:
        epochs = check_array("epochs", self.epochs, (len(self.train),), 1, MAX_COUNT)
        fractional = epochs[epochs != np.floor(epochs)]
        if fractional.size:
            raise ValueError(f"epochs must be whole numbers, got {fractional[0]}")
