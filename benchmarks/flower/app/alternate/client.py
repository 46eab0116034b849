"""A client that returns the model unchanged, so that the round alone takes time."""

from flwr.app import Context, Message, MetricRecord, RecordDict

from fedcohort.flower import client_app

app = client_app()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Return the model."""
    metrics = MetricRecord({"num-examples": 1})
    content = RecordDict({"arrays": message.content["arrays"], "metrics": metrics})
    return Message(content, reply_to=message)
