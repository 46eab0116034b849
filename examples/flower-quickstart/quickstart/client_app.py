"""The client: `client_app()` in place of `ClientApp()`; all else is as in any Flower app."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable

from fedcohort.flower import client_app, volatility
from quickstart.faults import misbehave

fail_at_random = volatility()


def volatile(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Let clients fail at random in runs that ask for it."""
    if context.run_config["volatile"]:
        return fail_at_random(message, context, call_next)
    return call_next(message, context)


app = client_app(mods=[volatile, misbehave])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the model that was sent on this client's images and send it back."""
    # Imported here, not at the top: PyTorch takes seconds, and not every message trains.
    from quickstart import task

    config = context.run_config
    model = task.Net()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    images, labels = task.load_data(int(config["num-clients"]), client_number(context))
    loss = task.train(
        model,
        images,
        labels,
        epochs=int(config["local-epochs"]),
        learning_rate=float(config["learning-rate"]),
    )

    arrays = ArrayRecord(model.state_dict())
    metrics = MetricRecord({"num-examples": len(labels), "train-loss": loss})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


def client_number(context: Context) -> int:
    """Return the partition of the simulation, or the `client-id` of the SuperNode."""
    return int(context.node_config.get("partition-id", context.node_config.get("client-id", 0)))
