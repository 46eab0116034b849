"""A client of the tests: adds its number to the model, and misbehaves as its node was told."""

import os
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict

from fedcohort.flower import client_app, volatility

fail_at_random = volatility()


def volatile(message, context, call_next):
    """Let clients fail at random in runs that ask for it."""
    if context.run_config["volatile"]:
        return fail_at_random(message, context, call_next)
    return call_next(message, context)


app = client_app(mods=[volatile], properties=["region"])


def planned(behaviours: str, round: int) -> str:
    """Return the behaviour in a round.

    `slow|nan|` is slow in the first round, sends NaNs in the second, and is well from then on.
    """
    plan = behaviours.split("|")
    return plan[min(round, len(plan)) - 1]


@app.train()
def train(message: Message, context: Context) -> Message:
    round = int(message.content["config"]["server-round"])
    behaviour = planned(str(context.node_config.get(str(context.run_config["trouble"]), "")), round)
    if marks := context.node_config.get("marks"):  # where the test sees that training has begun
        Path(str(marks), f"{context.run_id}-{round}-{os.getpid()}").touch()
    if behaviour == "late":
        time.sleep(8)
    if behaviour == "slow":
        for _ in range(600):
            time.sleep(0.1)
    if behaviour == "raise":
        raise RuntimeError("a broken client")
    if behaviour == "crash":
        os._exit(3)
    w = message.content["arrays"]["w"].numpy()
    number = float(context.node_config.get("number", context.node_config.get("partition-id", 1)))
    w = w + np.float32("nan" if behaviour == "nan" else number)
    if behaviour == "shape":
        w = np.append(w, w)
    metrics = {"num-examples": int(context.node_config.get("examples", 10)), "loss": 1.0}
    if behaviour == "schema":
        metrics["more"] = 1.0
    array = Array(w.astype(np.float32))
    if behaviour == "dimension":  # what NumPy refuses to load; the header keeps its length
        array.data = array.data.replace(b"'shape': (4,), } ", b"'shape': (-1,), }", 1)
    record = RecordDict(
        {
            "arrays": ArrayRecord({"w": array}),
            "metrics": MetricRecord(metrics),
        }
    )
    return Message(record, reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    loss = float(np.abs(message.content["arrays"]["w"].numpy()).mean())
    return Message(
        RecordDict({"metrics": MetricRecord({"num-examples": 10, "loss": loss})}), reply_to=message
    )
