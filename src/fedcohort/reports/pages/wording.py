"""Sentences that several pages share."""

from collections.abc import Sequence


def list_seeds(first_seed: int, count: int) -> str:
    """Return which seeds were played: "3", or "0 to 9"."""
    if count == 1:
        return str(first_seed)
    return f"{first_seed} to {first_seed + count - 1}"


def list_rates(rates: Sequence[float]) -> str:
    """Return the success rates of the classes in percent."""
    return ", ".join(f"{rate:.0%}" for rate in rates)
