"""One round of 20 clients of the paper's network for EMNIST in Flower's simulation, beside ours.

Every client trains one epoch of 450 samples with plain PyTorch in Flower, and in our engine. The
server plays one of our rounds after each of Flower's, so both take turns.
"""

import os
from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from fedcohort.bench import learning
from fedcohort.bench.measurement import Row, make_row
from fedcohort.learning import Engine, Options

MODEL = "emnist-cnn"
CLIENTS = np.arange(learning.COHORT)[None]


def measure_flower(rounds: int) -> list[Row]:
    """Measure some rounds of each; the first of each warms up."""
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    engine = make_engine()
    seconds: dict[str, list[float]] = {"flower": [], "ours": []}
    cores = engine.workers.count
    run_simulation(
        make_server(engine, 1 + rounds, seconds),
        make_client(),
        num_supernodes=learning.COHORT,
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"num_cpus": cores, "include_dashboard": False},
        },
    )
    flower = seconds["flower"][1:]
    ours = seconds["ours"][1:]
    if len(flower) != rounds:
        raise RuntimeError(f"Flower must finish {rounds} rounds, got {len(flower)}")
    ratios = (np.array(flower) / np.array(ours)).tolist()
    name = f"{MODEL}, {learning.COHORT} clients, 1 epoch of {learning.TRAINING_SAMPLES} samples"
    return [
        make_row(f"{name}: flwr[simulation], {cores} actors, a round", "s", 1.0, flower),
        make_row(f"{name}: fedcohort, a round", "s", 1.0, ours),
        make_row(f"{name}: flwr[simulation] / fedcohort", "×", 1.0, ratios),
    ]


def make_engine() -> Engine:
    """Return our engine, whose clients train for one epoch."""
    engine = learning.make_engine(MODEL, 1, Options())
    run = replace(engine.runs[0], epochs=np.ones(learning.CLIENTS, dtype=np.int64))
    return Engine([engine.module], engine.x, engine.y, [run], engine.sgd, engine.options)


def make_server(engine: Engine, rounds: int, seconds: dict[str, list[float]]) -> ServerApp:
    """Return a server that notes the seconds of Flower's rounds and of ours."""
    app = ServerApp()
    everyone = np.ones(CLIENTS.shape, dtype=np.bool_)

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        began = perf_counter()

        def play_ours(server_round: int, arrays: ArrayRecord) -> None:
            """Play one of our rounds; Flower calls this before its first and after each."""
            nonlocal began
            if server_round > 0:
                seconds["flower"].append(perf_counter() - began)
                start = perf_counter()
                engine.train(server_round, CLIENTS, everyone)
                seconds["ours"].append(perf_counter() - start)
            began = perf_counter()

        strategy = Everyone(
            min_train_nodes=learning.COHORT,
            min_available_nodes=learning.COHORT,
            fraction_evaluate=0.0,
        )
        model = ArrayRecord({"w": Array(engine.models[0].numpy().copy())})
        strategy.start(grid, model, rounds, evaluate_fn=play_ours)

    return app


class Everyone(FedAvg):
    """FedAvg that insists on all clients: a round of fewer would look faster than it is."""

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        """Count the replies, then average them."""
        received = [reply for reply in replies if not reply.has_error()]
        if len(received) != learning.COHORT:
            raise RuntimeError(f"all {learning.COHORT} clients must reply, got {len(received)}")
        return super().aggregate_train(server_round, received)


def make_client() -> ClientApp:
    """Return a client that trains as the bare script of `fedcohort.bench.learning` does."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        if not learning._process:
            learning._set_up_process(MODEL)
        weights = message.content["arrays"]["w"].numpy().copy()
        client = int(context.node_config["partition-id"])
        trained = learning._train_bare_client((weights, client, 1))
        arrays = ArrayRecord({"w": Array(trained)})
        metrics = MetricRecord({"num-examples": learning.TRAINING_SAMPLES})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    return app
