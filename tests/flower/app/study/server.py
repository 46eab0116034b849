"""The server of the tests: any strategy on a model of a few numbers.

It writes the final model into the folder, where the test reads it.
"""

import json
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAdam, FedAvg

from fedcohort.flower import AutoDeadline, CohortStrategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    model = ArrayRecord({"w": Array(np.zeros(int(config["shape"]), dtype=np.float32))})
    kwargs = {"fraction_evaluate": float(config["evaluate"])}
    if config["strategy"] == "stock":
        k = int(config["cohort"])
        strategy = FedAvg(
            fraction_train=1e-9,
            min_train_nodes=k,
            min_available_nodes=int(config["clients"]) or k,
            **kwargs,
        )
    else:
        inner = FedAdam(**kwargs) if config["strategy"] == "adam" else FedAvg(**kwargs)
        deadline = float(config["deadline"]) or None
        if config["auto"]:
            deadline = AutoDeadline(least=20.0, most=deadline, fewest=4)
        strategy = CohortStrategy(
            inner,
            str(config["selector"]),
            int(config["cohort"]),
            deadline=deadline,
            enough=int(config["enough"]) or None,
            eligible={"region": str(config["eligible"])} if config["eligible"] else None,
            seed=int(config["seed"]),
            num_clients=int(config["clients"]) or None,
            aggregation=str(config["aggregation"]),
            wait=float(config["wait"]),
            folder=str(config["folder"]) or None,
            resume=bool(config["resume"]),
        )
    times = []

    def between_rounds(round: int, arrays: ArrayRecord) -> None:
        """Note the time. A file `hold-ROUND` lets the test hold the run between two rounds."""
        times.append(time.time())
        patience = time.time() + 120
        while (
            config["folder"]
            and (Path(str(config["folder"])) / f"hold-{round}").exists()
            and time.time() < patience
        ):
            time.sleep(0.05)

    result = strategy.start(
        grid,
        model,
        int(config["rounds"]),
        train_config=ConfigRecord({"lr": 1.0}),
        evaluate_fn=between_rounds,
    )
    final = [float(x) for x in result.arrays["w"].numpy()] if result.arrays else []
    done = {"w": final, "seconds": np.diff(times).tolist()}
    if config["folder"]:
        Path(str(config["folder"])).mkdir(parents=True, exist_ok=True)
        (Path(str(config["folder"])) / "final.json").write_text(json.dumps(done))
