"""One of the runs that an engine trains in lock-step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.aggregation.registry import find_rule
from fedcohort.aggregation.server import SERVER_OPTIMIZERS
from fedcohort.arrays import Floats, Ints
from fedcohort.checks import MAX_COUNT, check_array, check_choice, check_positive, check_range


@dataclass(frozen=True, eq=False)
class Run:
    """One of the runs in lock-step: who owns which samples, how clients and server learn.

    Attributes:
        seed: Seed of the order in which clients see their samples.
        train: For each of the K clients, the samples it trains on, as positions in the data.
        test: Samples that the run is tested on, as positions in the data.
        epochs: Local epochs of each client, [K].
        mu: Coefficient of FedProx's proximal term; 0 gives FedAvg.
        aggregation: Name of the rule that combines the updates (see `find_rule`).
        server_rate: Factor of the aggregated update.
        server_momentum: Momentum of the server's step; 0 for none.
        server_optimizer: "sgd" adds the aggregated update, with rate and momentum; "adam" and
            "yogi" take adaptive steps, which have their own momentum.
        success_rates: How often each client answers [K], for rules that know it.
        test_owners: Client that owns each test sample, [len(test)].
        classes: Class of each client, from 0, [K], by which the test samples of `test_owners` are
            told apart; by default all are of one class.

    Raises:
        ValueError: If a client has no samples, a value is out of bounds, or clients have classes
            but test samples no owners.

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
    test_owners: Ints | None = None
    classes: Ints | None = None

    def __post_init__(self) -> None:
        find_rule(self.aggregation)  # refuses what is no rule
        check_choice("server_optimizer", self.server_optimizer, SERVER_OPTIMIZERS)
        if self.server_optimizer != "sgd" and self.server_momentum:
            raise ValueError(
                f"server_momentum must be 0 for the server_optimizer {self.server_optimizer!r}, "
                f"which has its own, got {self.server_momentum}"
            )
        check_positive("server_rate", self.server_rate)
        check_range("server_momentum", self.server_momentum, 0.0, 1.0)
        check_range("mu", self.mu, 0.0, 1e6)
        self._check_train()
        if not len(self.test):
            raise ValueError("test must hold at least one sample, got none")
        self._check_epochs()
        self._check_classes()

    @property
    def num_classes(self) -> int:
        """Number of classes of clients, G; 1 if they have none."""
        return 1 if self.classes is None else int(self.classes.max()) + 1

    @property
    def test_classes(self) -> Ints:
        """Class of the client that owns each test sample, [len(test)]; 0 if there are none."""
        if self.classes is None or self.test_owners is None:
            return np.zeros(len(self.test), dtype=np.int64)
        return self.classes[self.test_owners]

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

    def _check_classes(self) -> None:
        num_clients = len(self.train)
        if self.test_owners is not None:
            check_array("test_owners", self.test_owners, (len(self.test),), 0, num_clients - 1)
        if self.classes is None:
            return
        check_array("classes", self.classes, (num_clients,), 0, num_clients - 1)
        if self.test_owners is None:
            raise ValueError(
                "test_owners must name the owner of every test sample where clients have classes, "
                "got None"
            )
