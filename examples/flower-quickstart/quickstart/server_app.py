"""The server: `CohortStrategy` around `FedAvg`; all else is as in any Flower app."""

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedcohort.flower import CohortStrategy
from quickstart import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for the configured number of rounds and measure the accuracy after each."""
    config = context.run_config
    strategy = CohortStrategy(
        FedAvg(fraction_evaluate=0.0),
        str(config["selector"]),
        int(config["cohort-size"]),
        deadline=float(config["deadline"]) or None,
        num_clients=int(config["num-clients"]),
        aggregation=str(config["aggregation"]),
        seed=int(config["seed"]),
        folder=str(config["folder"]) or None,
        resume=bool(config["resume"]),
    )
    model = task.new_model(int(config["seed"]))
    images, labels = task.load_data(int(config["num-clients"]), client=None)

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        model.load_state_dict(arrays.to_torch_state_dict())
        return MetricRecord({"accuracy": task.accuracy(model, images, labels)})

    strategy.start(
        grid,
        ArrayRecord(model.state_dict()),
        num_rounds=int(config["num-rounds"]),
        evaluate_fn=evaluate,
    )
