"""The server of the tests: any strategy on a model of a few numbers; its final model is written where the test reads it."""

import json
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAdam, FedAvg

from fedcohort.flower import CohortStrategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    of = context.run_config
    model = ArrayRecord({"w": Array(np.zeros(int(of["shape"]), dtype=np.float32))})
    kwargs = {"fraction_evaluate": float(of["evaluate"])}
    if of["strategy"] == "stock":
        k = int(of["cohort"])
        strategy = FedAvg(
            fraction_train=1e-9,
            min_train_nodes=k,
            min_available_nodes=int(of["clients"]) or k,
            **kwargs,
        )
    else:
        inner = FedAdam(**kwargs) if of["strategy"] == "adam" else FedAvg(**kwargs)
        strategy = CohortStrategy(
            inner,
            str(of["selector"]),
            int(of["cohort"]),
            deadline=float(of["deadline"]) or None,
            seed=int(of["seed"]),
            num_clients=int(of["clients"]) or None,
            aggregation=str(of["aggregation"]),
            wait=float(of["wait"]),
            folder=str(of["folder"]) or None,
            resume=bool(of["resume"]),
        )
    times = []

    def between_rounds(round: int, arrays: ArrayRecord) -> None:
        """Note the time; the test may hold the run here, with a file, for what it wants to do between two rounds."""
        times.append(time.time())
        patience = time.time() + 120
        while (
            of["folder"]
            and (Path(str(of["folder"])) / f"hold-{round}").exists()
            and time.time() < patience
        ):
            time.sleep(0.05)

    result = strategy.start(
        grid,
        model,
        int(of["rounds"]),
        train_config=ConfigRecord({"lr": 1.0}),
        evaluate_fn=between_rounds,
    )
    final = [float(x) for x in result.arrays["w"].numpy()] if result.arrays else []
    done = {"w": final, "seconds": np.diff(times).tolist()}
    if of["folder"]:
        Path(str(of["folder"])).mkdir(parents=True, exist_ok=True)
        (Path(str(of["folder"])) / "final.json").write_text(json.dumps(done))
