"""Clients that fail at random in Flower's simulation engine.

The seed, the client and the round decide who fails, never the clock: the simulation engine runs
clients one after another on a few actors, so a deadline by the clock would favour clients with
low ids. The failures are those of `fedcohort simulate` with the same seed.
"""

from functools import partial

from flwr.app import Context, Message, MessageType
from flwr.clientapp.typing import ClientAppCallable, Mod

from fedcohort.checks import check_int
from fedcohort.flower.errors import FAILED, error_reply
from fedcohort.world.bernoulli import answers_at
from fedcohort.world.classes import PAPER_RATES, class_rates


def volatility(seed: int | None = None, rates: tuple[float, ...] = PAPER_RATES) -> Mod:
    """Return a client mod that lets training fail at random.

    Args:
        seed: Seed of the failures. None takes `seed` of the run's configuration.
        rates: Success rates of equal blocks of clients, by partition id.

    Returns:
        A mod for `client_app(mods=[...])`.

    Raises:
        ValueError: If the seed is negative, or a rate is not between 0 and 1.

    Examples:
        >>> from fedcohort.flower import client_app, volatility
        >>> app = client_app(mods=[volatility(seed=1)])
    """
    if seed is not None:
        seed = check_int("seed", seed, 0)
    class_rates(max(1, len(rates)), rates)  # refuses bad rates now, not later on every client
    return partial(fail_at_random, seed=seed, rates=tuple(rates))


def fail_at_random(
    message: Message,
    context: Context,
    call_next: ClientAppCallable,
    *,
    seed: int | None,
    rates: tuple[float, ...],
) -> Message:
    """Answer that the client failed, or let it train. Evaluations and queries never fail."""
    if message.metadata.message_type.split(".")[0] != MessageType.TRAIN:
        return call_next(message, context)

    for name in ("partition-id", "num-partitions"):
        if name not in context.node_config:
            raise ValueError(
                f"node_config must hold {name!r} for volatility, as in simulation, "
                f"got {context.node_config}"
            )
    client = int(context.node_config["partition-id"])
    num_clients = int(context.node_config["num-partitions"])
    if seed is None:
        seed = check_int("seed", context.run_config.get("seed"), 0)
    round = _server_round(message)

    if answers_at(class_rates(num_clients, rates), seed, round - 1, client):
        return call_next(message, context)
    return error_reply(message, FAILED, f"client {client} fails in round {round}, by lot")


def _server_round(message: Message) -> int:
    """Return the round, counted from 1. Flower's strategies send it as configuration."""
    for record in message.content.config_records.values():
        if "server-round" in record:
            return check_int("server-round", record["server-round"], 1)
    raise ValueError(
        "message must hold 'server-round' in a configuration, as stock strategies send, got none"
    )
