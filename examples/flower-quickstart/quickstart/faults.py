"""Clients that misbehave because their SuperNode was told to: `--node-config 'client-id="3" fault="slow"'`."""

from time import sleep

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable


def misbehave(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Take for ever, or return a model that is not a number; well-behaved nodes train."""
    fault = context.node_config.get("fault", "")
    if message.metadata.message_type != MessageType.TRAIN or not fault:
        return call_next(message, context)
    if fault == "slow":
        sleep(3600)
    broken = {
        name: Array(np.full_like(array.numpy(), np.nan))
        for name, array in message.content["arrays"].items()
    }
    metrics = MetricRecord({"num-examples": 1, "train-loss": 0.0})
    return Message(
        RecordDict({"arrays": ArrayRecord(broken), "metrics": metrics}), reply_to=message
    )
