"""Clients that fail by lot, for Flower's simulation engine: decided by seed, client and round, never by the clock.

The simulation engine runs clients one after the other on a few actors, so that a wall-clock deadline there would favour those
with low ids. The lots are those of `fedcohort simulate`: the same seed is the same world.
"""

from functools import partial

from flwr.app import Context, Message, MessageType
from flwr.clientapp.typing import ClientAppCallable, Mod

from fedcohort.checks import check_int
from fedcohort.flower.errors import FAILED, error_reply
from fedcohort.world.volatility import PAPER_RATES, answers_at, class_rates


def volatility(seed: int | None = None, rates: tuple[float, ...] = PAPER_RATES) -> Mod:
    """Return a mod that lets training fail by lot; equal blocks of clients have these success rates.

    seed: None takes `seed` of the run's configuration.
    """
    class_rates(max(1, len(rates)), rates)  # refuses what is no rate here, not on every client
    return partial(
        fail_by_lot, seed=None if seed is None else check_int("seed", seed, 0), rates=tuple(rates)
    )


def fail_by_lot(
    message: Message,
    context: Context,
    call_next: ClientAppCallable,
    *,
    seed: int | None,
    rates: tuple[float, ...],
) -> Message:
    """Answer that the client failed, or let it train; evaluation and questions never fail."""
    if message.metadata.message_type.split(".")[0] != MessageType.TRAIN:
        return call_next(message, context)
    for name in ("partition-id", "num-partitions"):
        if name not in context.node_config:
            raise ValueError(
                f"node_config must hold {name!r} for volatility, as in simulation, got {context.node_config}"
            )
    client, clients = (
        int(context.node_config["partition-id"]),
        int(context.node_config["num-partitions"]),
    )
    world = check_int("seed", context.run_config.get("seed") if seed is None else seed, 0)
    round = round_of(message)
    if answers_at(class_rates(clients, rates), world, round - 1, client):
        return call_next(message, context)
    return error_reply(message, FAILED, f"client {client} fails in round {round}, by lot")


def round_of(message: Message) -> int:
    """Return the server's round, counted from 1: stock strategies write it into their configuration."""
    for record in message.content.config_records.values():
        if "server-round" in record:
            return check_int("server-round", record["server-round"], 1)
    raise ValueError(
        "message must hold 'server-round' in a configuration, as stock strategies send, got none"
    )
