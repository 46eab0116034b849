"""The two strategies by turns in one run, every round timed."""

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
    """Write the seconds of all rounds of both, turn by turn; the first round of a turn, which finds the clients, apart."""
    of = context.run_config
    clients, cohort = int(of["clients"]), int(of["cohort"])
    model = ArrayRecord({"w": Array(np.zeros(int(of["numbers"]), dtype=np.float32))})
    seconds: dict[str, list[list[float]]] = {"stock": [], "cohort": []}
    for _ in range(int(of["turns"])):
        stock = FedAvg(
            fraction_train=1e-9,
            min_train_nodes=cohort,
            min_available_nodes=clients,
            fraction_evaluate=0.0,
        )
        plain = FedAvg(fraction_evaluate=0.0)
        ours = CohortStrategy(
            plain, "e3cs-0.5", cohort, num_clients=clients, deadline=float(of["deadline"]) or None
        )
        for name, strategy in (("stock", stock), ("cohort", ours)):
            seconds[name].append(timed(strategy, grid, model, int(of["rounds"])))
    Path(str(of["out"])).write_text(json.dumps(seconds))


def timed(strategy: Strategy, grid: Grid, model: ArrayRecord, rounds: int) -> list[float]:
    """Return how long each round took."""
    ends: list[float] = []
    strategy.start(
        grid, model, rounds, evaluate_fn=lambda server_round, arrays: ends.append(perf_counter())
    )
    return [float(gap) for gap in np.diff(ends)]
