"""One round of 20 clients of the paper's network for EMNIST in Apple's pfl, beside ours.

Every client trains one epoch of 450 samples. pfl simulates clients one after the other in one
process, with PyTorch's threads or with one, whichever is faster here: on a busy machine the threads
wait for each other. Our engine trains clients with as many threads as there are cores.
"""

from copy import deepcopy
from time import perf_counter
from typing import Any

import numpy as np
import peers
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data import FederatedDataset
from pfl.data.dataset import Dataset
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedcohort.bench import learning
from fedcohort.bench.measurement import Row, make_row
from fedcohort.learning import Engine
from fedcohort.reports.words import counted

UNCOUNTED = 3  # rounds before those that count: one warms up, two choose the number of threads


def measure_pfl(rounds: int) -> list[Row]:
    """Measure some rounds of each, by turns.

    The first of each warms up, and two choose the threads of pfl. pfl tests the model in its first
    round and its last: these do not count.
    """
    engine = peers.make_engine()
    clock = Turns(engine)
    sgd = engine.sgd
    module = deepcopy(engine.module)
    module.loss = lambda x, y: cross_entropy(module(x), y)  # pfl calls these two
    module.metrics = lambda x, y: {}
    model = PyTorchModel(
        module,
        local_optimizer_create=lambda weights, lr: torch.optim.SGD(
            weights, lr=lr, momentum=sgd.momentum
        ),
        central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
    )
    data = make_data(engine)
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=UNCOUNTED + rounds + 1,
            evaluation_frequency=UNCOUNTED + rounds + 1,
            train_cohort_size=learning.COHORT,
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=sgd.rate, local_batch_size=sgd.batch_size
        ),
        NNEvalHyperParams(local_batch_size=None),
        [clock],
        send_metrics_to_platform=False,
    )
    threads = counted(clock.find_threads(), "thread")
    name = f"{peers.MODEL}, {learning.COHORT} clients, 1 epoch of {learning.TRAINING_SAMPLES}"
    theirs = clock.pfl[UNCOUNTED:-1]
    ours = clock.ours[UNCOUNTED:-1]
    ratios = (np.array(theirs) / np.array(ours)).tolist()
    return [
        make_row(f"{name}: pfl, {threads}, a round", "s", 1.0, theirs),
        make_row(f"{name}: fedcohort beside pfl, a round", "s", 1.0, ours),
        make_row(f"{name}: pfl / fedcohort", "×", 1.0, ratios),
    ]


def make_data(engine: Engine) -> FederatedDataset:
    """Return the clients of our engine, in turn, each with its training samples."""
    clients = iter(np.tile(np.arange(learning.COHORT), 1000).tolist())

    def make_client(client: int) -> Dataset:
        samples = torch.from_numpy(engine.runs[0].train[client])
        tensors: list[Tensor] = [engine.x[samples], engine.y[samples]]
        return Dataset(raw_data=tensors, user_id=str(client))

    return FederatedDataset(make_client, lambda: next(clients))


class Turns(TrainingProcessCallback):
    """Plays one of our rounds after each of pfl's, and notes the seconds of both."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.threads = torch.get_num_threads()
        self.pfl: list[float] = []
        self.ours: list[float] = []

    def on_train_begin(self, *, model: Any) -> Metrics:
        """Start the clock."""
        self.began = perf_counter()
        return Metrics()

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: Any, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """Play our round between two of pfl's."""
        self.pfl.append(perf_counter() - self.began)
        everyone = np.ones(peers.CLIENTS.shape, dtype=np.bool_)
        torch.set_num_threads(1)  # Our engine has threads of its own.
        start = perf_counter()
        self.engine.train(central_iteration, peers.CLIENTS, everyone)
        self.ours.append(perf_counter() - start)
        torch.set_num_threads(self.find_threads())
        self.began = perf_counter()
        return False, Metrics()

    def find_threads(self) -> int:
        """Return how many threads pfl's next round has: all, then one, then the faster."""
        played = len(self.pfl)
        all_are_faster = played > 2 and self.pfl[1] < self.pfl[2]
        if played < 2 or all_are_faster:
            return self.threads
        return 1
