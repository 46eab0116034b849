"""Strategies, runs and registries that several test modules use."""

import json
from functools import partial

import numpy as np
from fakes import grid_with_names, record, same
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedTrimmedAvg,
    FedYogi,
    Krum,
    QFedAvg,
)

from fedcohort.flower import (
    CohortStrategy,
)
from fedcohort.flower.availability import wait_for_clients
from fedcohort.flower.clients import ClientRegistry
from fedcohort.selection.random import Random

INITIAL = {"w": np.array([[0.5, -1.0], [2.0, 4.0]]), "b": np.array([0.25])}
NO_TEST = {"fraction_evaluate": 0.0}
STOCK = {
    "FedAvg": FedAvg,
    "FedProx": partial(FedProx, proximal_mu=0.1),
    "FedAdam": FedAdam,
    "FedYogi": FedYogi,
    "FedAvgM": partial(FedAvgM, server_momentum=0.9, server_learning_rate=0.5),
    "FedMedian": FedMedian,
    "FedTrimmedAvg": partial(FedTrimmedAvg, beta=0.3),
    "Krum": partial(Krum, num_malicious_nodes=1),
    "QFedAvg": partial(QFedAvg, client_learning_rate=0.1),
    "DifferentialPrivacy": lambda sampled=3: DifferentialPrivacyServerSideFixedClipping(
        FedAvg(), 0.0, 2.0, sampled
    ),
}
# With the paper's aggregation these would lose their protection.
PROTECTED = ("DifferentialPrivacy", "FedMedian", "FedTrimmedAvg", "Krum")
PLAIN = [name for name in STOCK if name not in PROTECTED]


def initial():
    return record(**INITIAL)


def cohort_strategy(strategy=None, selector="random", cohort_size=3, **options):
    options = {"deadline": 5.0, "wait": 10.0, **options}
    return CohortStrategy(strategy or FedAvg(**NO_TEST), selector, cohort_size, **options)


def asked_by_round(grid):
    """The nodes that were written to, round by round."""
    rounds = {}
    for message in grid.sent():
        rounds.setdefault(int(message.metadata.group_id), []).append(message.metadata.dst_node_id)
    return rounds


class RecordingSelector:
    """A selector that records what it is asked and told."""

    def __init__(self, num_clients, cohort_size, seed=0):
        self.inner = Random(num_clients, cohort_size, rng=seed)
        self.available, self.outcomes, self.joined = [], [], []

    num_clients = property(lambda self: self.inner.num_clients)
    cohort_size = property(lambda self: self.inner.cohort_size)

    def select(self, round, available=None):
        self.available.append(None if available is None else np.asarray(available).tolist())
        return self.inner.select(round, available)

    def update(self, outcome):
        clients, success = outcome.cohort.clients.tolist(), outcome.success.astype(bool).tolist()
        self.outcomes.append(dict(zip(clients, success, strict=True)))
        self.inner.update(outcome)

    def join(self, count=1):
        self.joined.append(count)
        self.inner.join(count)

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state):
        self.inner.load_state_dict(state)


def gather(clock, *names, places=0):
    grid, registry = grid_with_names(clock, *names), ClientRegistry(places)
    wait_for_clients(registry, grid, len(names), 10.0)
    return grid, registry


def refresh_often(registry, grid, clock):
    """After enough looks to notice a newcomer and to hear its name."""
    for _ in range(3):
        registry.refresh(grid)
        clock.sleep(0.5)
    registry.refresh(grid)


def client_names(registry):
    return [client.name if client else None for client in registry.clients]


def fails(client, round):
    return (3 * client + round) % 5 == 0


ROUNDS = 4


def play(grid, folder, make=FedAvg, resume=False, initial=None, rounds=ROUNDS, **options):
    """Play a run; return all that must not depend on crashes."""
    options = {
        "selector": "e3cs-0.5",
        "cohort_size": 3,
        "deadline": 5.0,
        "wait": 10.0,
        "seed": 3,
        **options,
    }
    strategy = CohortStrategy(make(), folder=folder, resume=resume, **options)
    result = strategy.start(
        grid, record(**INITIAL) if initial is None else initial, num_rounds=rounds
    )
    return result.arrays, strategy.selector.state_dict(), journal(folder)


def journal(folder, keep_seconds=False):
    """The rows without what the clock decides."""
    rows = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    if keep_seconds:
        return rows
    for row in rows:
        row.pop("seconds")
        row.pop("fedcohort-sha256", None)
        for asked in row["asked"]:
            asked.pop("seconds")
    return rows


def assert_alike(one, other):
    assert same(one[0], other[0])
    np.testing.assert_equal(one[1], other[1])
    assert one[2] == other[2]
