"""A client that returns what it was sent: all that is left to time is the round itself."""

from flwr.app import Context, Message, MetricRecord, RecordDict

from fedcohort.flower import client_app

app = client_app()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Return the model."""
    metrics = MetricRecord({"num-examples": 1})
    return Message(
        RecordDict({"arrays": message.content["arrays"], "metrics": metrics}), reply_to=message
    )
