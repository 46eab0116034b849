"""The server: both strategies by turns in one run, every round timed."""

import json
from pathlib import Path
from time import perf_counter

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy

from fedcohort.flower import CohortStrategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Write the seconds of all rounds of both strategies, turn by turn."""
    config = context.run_config
    clients = int(config["clients"])
    cohort = int(config["cohort"])
    rounds = int(config["rounds"])
    deadline = float(config["deadline"]) or None
    weights = np.zeros(int(config["numbers"]), dtype=np.float32)
    model = ArrayRecord({"w": Array(weights)})

    seconds: dict[str, list[list[float]]] = {"stock": [], "cohort": []}
    for _ in range(int(config["turns"])):
        stock = FedAvg(
            fraction_train=1e-9,
            min_train_nodes=cohort,
            min_available_nodes=clients,
            fraction_evaluate=0.0,
        )
        seconds["stock"].append(time_rounds(stock, grid, model, rounds))

        inner = FedAvg(fraction_evaluate=0.0)
        ours = CohortStrategy(inner, "e3cs-0.5", cohort, num_clients=clients, deadline=deadline)
        seconds["cohort"].append(time_rounds(ours, grid, model, rounds))
    Path(str(config["out"])).write_text(json.dumps(seconds))


def time_rounds(strategy: Strategy, grid: Grid, model: ArrayRecord, rounds: int) -> list[float]:
    """Return the seconds of each round; Flower calls `evaluate_fn` at the end of each."""
    ends: list[float] = []

    def note_time(server_round: int, arrays: ArrayRecord) -> None:
        ends.append(perf_counter())

    strategy.start(grid, model, rounds, evaluate_fn=note_time)
    return np.diff(ends).tolist()
