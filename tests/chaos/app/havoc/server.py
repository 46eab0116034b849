"""The server: FedAvg inside CohortStrategy, on a model of four numbers."""

import json
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedcohort.flower import CohortStrategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Play the rounds and write `final.json` beside the orders, where the harness finds it."""
    config = context.run_config
    strategy = CohortStrategy(
        FedAvg(fraction_evaluate=0.0),
        "e3cs-0.5",
        int(config["cohort"]),
        deadline=float(config["deadline"]),
        seed=int(config["seed"]),
        num_clients=int(config["clients"]),
        wait=float(config["wait"]),
        folder=str(config["folder"]),
        resume=bool(config["resume"]),
    )
    model = ArrayRecord({"w": Array(np.zeros(4, dtype=np.float32))})
    result = strategy.start(grid, model, int(config["rounds"]))
    final = result.arrays["w"].numpy().tolist()
    Path(str(config["orders"])).with_name("final.json").write_text(json.dumps(final))
