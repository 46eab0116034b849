"""The server: `CohortStrategy` around `FedAvg`; everything else is as in any Flower app."""

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedcohort.flower import CohortStrategy
from quickstart import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for the rounds that the configuration asks for and say how good the model is."""
    of = context.run_config
    strategy = CohortStrategy(
        FedAvg(fraction_evaluate=0.0),
        str(of["selector"]),
        int(of["cohort-size"]),
        deadline=float(of["deadline"]) or None,
        num_clients=int(of["num-clients"]),
        aggregation=str(of["aggregation"]),
        seed=int(of["seed"]),
        folder=str(of["folder"]) or None,
        resume=bool(of["resume"]),
    )
    model = task.new_model(int(of["seed"]))
    x, y = task.data(int(of["num-clients"]), None)

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        model.load_state_dict(arrays.to_torch_state_dict())
        return MetricRecord({"accuracy": task.accuracy(model, x, y)})

    strategy.start(
        grid, ArrayRecord(model.state_dict()), int(of["num-rounds"]), evaluate_fn=evaluate
    )
