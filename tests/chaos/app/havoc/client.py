"""A client that adds its number to the model, and does harm in the rounds its orders name.

The orders are a JSON file: by round and client, what to do. Before a client does harm it leaves a
mark, a file named after round, client and harm, so that the harness counts only what happened.
"""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict

from fedcohort.flower import client_app

app = client_app()
NEGATIVE_HEADER = b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"
HUGE_LIST = 400_000  # metric values, 3 MB
HUGE_NAME = 200_000  # characters


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train as a healthy client does, unless there is an order for this round."""
    client = str(context.node_config["client-id"])
    round = int(message.content["config"]["server-round"])
    orders = json.loads(Path(str(context.run_config["orders"])).read_text())
    harm = orders.get(str(round), {}).get(client, "none")
    Path(str(context.run_config["marks"]), f"{round}-{client}-{harm}").touch()

    misbehave_in_time(harm, message.metadata.created_at + message.metadata.ttl)
    w = message.content["arrays"]["w"].numpy()
    trained = w + np.float32(context.node_config["number"])
    metrics = {"num-examples": int(context.node_config["examples"]), "loss": 1.0}
    record = RecordDict(
        {
            "arrays": ArrayRecord({"w": harmful_array(harm, trained)}),
            "metrics": MetricRecord(harmful_metrics(harm, metrics)),
        }
    )
    reply = Message(record, reply_to=message)
    forge(harm, reply)
    return reply


def misbehave_in_time(harm: str, deadline: float) -> None:
    """Hang, answer late, be slow, crash or raise."""
    if harm in ("hang", "late"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)  # this client does not let itself be stopped
    if harm == "hang":
        time.sleep(max(0.0, deadline - time.time()) + 30.0)
    if harm == "late":
        time.sleep(max(0.0, deadline - time.time()) + 0.5)
    if harm == "slow":
        time.sleep(120.0)
    if harm == "crash":
        os._exit(3)
    if harm == "raise":
        raise RuntimeError("a broken client \x1b[2J\n" + "x" * 2_000_000)


def harmful_array(harm: str, trained: np.ndarray) -> Array:
    """Return the trained array, or one that must not be accepted."""
    if harm == "nan":
        return Array(trained * np.float32("nan"))
    if harm == "shape":
        return Array(np.append(trained, trained))
    if harm == "type":
        return Array(trained.astype(np.complex128))
    if harm == "header":
        return Array(dtype="float32", shape=(4,), stype="numpy.ndarray", data=negative(trained))
    if harm == "garbage":
        return Array(dtype="float32", shape=(4,), stype="numpy.ndarray", data=b"\x93NUMPY" * 9)
    return Array(trained.astype(np.float32))


def negative(trained: np.ndarray) -> bytes:
    """Return a .npy file whose header says that the shape is (-1,)."""
    header = NEGATIVE_HEADER.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + trained.tobytes()


def harmful_metrics(harm: str, metrics: dict) -> dict:
    """Return the metrics, or some that must not be accepted or must not harm others."""
    if harm == "extra":
        return metrics | {"more": 1.0}
    if harm == "huge":
        return metrics | {"huge": [1.0] * HUGE_LIST, "n" * HUGE_NAME: 1.0}
    if harm == "examples":
        return metrics | {"num-examples": [1, 2, 3]}
    if harm == "weight":
        return metrics | {"num-examples": -10}
    if harm == "loss":
        return metrics | {"loss": float("inf")}
    return metrics


def forge(harm: str, reply: Message) -> None:
    """Answer another message than the one received, or at another time."""
    fields = vars(reply.metadata)
    if harm == "forged":
        fields["_reply_to_message_id"] = "f" * len(reply.metadata.reply_to_message_id)
    if harm == "clock":
        fields["_created_at"] = reply.metadata.created_at + 3600.0
