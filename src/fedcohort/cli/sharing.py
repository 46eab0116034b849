"""The flags that share the seeds of a command among processes, devices or machines."""

from typing import TYPE_CHECKING, Any

import typer

from fedcohort.cli.parse import write_given

if TYPE_CHECKING:
    from fedcohort.lab.sharding import ShardWorkers
    from fedcohort.lab.shards import Shard

SHARD = typer.Option(metavar="I/N", help="Train share I of N (job arrays).")
DEVICES = typer.Option(metavar="VALUE", help="Share the seeds among cuda:0,cuda:1 ...")
RAY = typer.Option(metavar="VALUE", help="Share the seeds on the Ray cluster there.")


def read_sharing(
    shard: str | None, devices: str | None, ray: str | None, device: str | None
) -> "tuple[Shard | None, ShardWorkers | None]":
    """Return which shard to train, or who trains all of them; None and None without sharing.

    Args:
        shard: Value of --shard, None if it was not given.
        devices: Value of --devices.
        ray: Value of --ray.
        device: Value of --device, which `devices` replaces.

    Raises:
        ValueError: If flags exclude each other, or a value cannot be used.
    """
    # Imported here, not at the top: `--help` must not load it.
    from fedcohort.lab.sharding import ShardWorkers
    from fedcohort.lab.shards import parse_shard

    given = {"shard": shard, "devices": devices, "ray": ray}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ValueError(f"{names[0]} must be given without {names[1]}, got both")
    if devices is not None and device is not None:
        raise ValueError(f"device must not be given with --devices, got {device!r}")
    if shard is not None:
        return parse_shard(shard), None
    if devices is not None:
        return None, ShardWorkers.on_devices(_parse_devices(devices))
    if ray is not None:
        return None, ShardWorkers.on_ray(ray, device or "cpu")
    return None, None


def _parse_devices(text: str) -> list[str]:
    """Return the names between commas, also empty ones, which are refused later."""
    if not text.strip():
        return []
    return [name.strip() for name in text.split(",")]


def check_unshared(sharing: Any, **given: Any) -> None:
    """Refuse flags that mean nothing where seeds are shared.

    Args:
        sharing: A shard or workers; None, and nothing is refused.
        **given: Values by name of the flag.
    """
    for name, value in given.items():
        if sharing is not None and value:
            got = write_given(value)
            raise ValueError(f"{name} must not be given where the seeds are shared, got {got}")
