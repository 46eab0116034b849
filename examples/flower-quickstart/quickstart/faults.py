"""Faults for the demonstration, set by `--node-config 'client-id="3" fault="slow"'`."""

from time import sleep

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable


def misbehave(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Take forever ("slow"), return NaNs ("broken"), or train if the node has no fault."""
    fault = context.node_config.get("fault", "")
    if message.metadata.message_type != MessageType.TRAIN or not fault:
        return call_next(message, context)
    if fault == "slow":
        sleep(3600)

    broken = {}
    for name, array in message.content["arrays"].items():
        broken[name] = Array(np.full_like(array.numpy(), np.nan))
    arrays = ArrayRecord(broken)
    metrics = MetricRecord({"num-examples": 1, "train-loss": 0.0})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
