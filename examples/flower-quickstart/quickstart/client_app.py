"""The client: `client_app()` in place of `ClientApp()`; everything else is as in any Flower app."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable

from fedcohort.flower import client_app, volatility
from quickstart.faults import misbehave

fails_by_lot = volatility()


def volatile(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Let lots decide who fails, in runs that ask for it."""
    return (
        fails_by_lot(message, context, call_next)
        if context.run_config["volatile"]
        else call_next(message, context)
    )


app = client_app(mods=[volatile, misbehave])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the model that was sent on this client's images and send it back."""
    from quickstart import (
        task,  # here, not above: importing PyTorch takes seconds, and not every message trains
    )

    model = task.Net()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = task.data(int(context.run_config["num-clients"]), which(context))
    loss = task.train(
        model,
        x,
        y,
        int(context.run_config["local-epochs"]),
        float(context.run_config["learning-rate"]),
    )
    metrics = MetricRecord({"num-examples": len(y), "train-loss": loss})
    return Message(
        RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}),
        reply_to=message,
    )


def which(context: Context) -> int:
    """Return this client's number: the simulation's, or the one its SuperNode was started with."""
    return int(context.node_config.get("partition-id", context.node_config.get("client-id", 0)))
