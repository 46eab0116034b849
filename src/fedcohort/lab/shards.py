"""A shard of a comparison: some of its seeds. Which ones is decided by the settings alone."""

import re
from dataclasses import dataclass, fields, replace

from fedcohort.lab.config import ComparisonConfig

_FORM = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, order=True)
class Shard:
    """One of several shards that share the seeds of a comparison.

    Attributes:
        number: Which one, from 1.
        count: How many there are.

    Raises:
        ValueError: If the number is not between 1 and the count.

    Examples:
        >>> str(Shard(2, 8))
        '2/8'
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ValueError(f"shard must be i/n with 1 <= i <= n, got {self}")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> Shard:
    """Return the shard that "i/n" names.

    Args:
        text: Number and count of the shard.

    Raises:
        ValueError: If the text has another form, or i is not between 1 and n.

    Examples:
        >>> parse_shard("2/8")
        Shard(number=2, count=8)
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"shard must be i/n with 1 <= i <= n, such as 2/8, got {text!r}")
    return Shard(int(match[1]), int(match[2]))


def shard_config(config: ComparisonConfig, shard: Shard) -> ComparisonConfig:
    """Return the settings of a shard: the same, with its share of the seeds.

    Shards have consecutive seeds, and as many as each other or one more.

    Args:
        config: The comparison.
        shard: Which shard.

    Raises:
        ValueError: If there are more shards than seeds.

    Examples:
        >>> whole = ComparisonConfig(seeds=5, first_seed=10)
        >>> part = shard_config(whole, Shard(2, 3))
        >>> part.first_seed, part.seeds
        (12, 2)
    """
    check_count(config, shard.count, "shards")
    share, left_over = divmod(config.seeds, shard.count)
    before = shard.number - 1
    return replace(
        config,
        first_seed=config.first_seed + before * share + min(before, left_over),
        seeds=share + (before < left_over),
    )


def check_count(config: ComparisonConfig, count: int, name: str) -> None:
    """Refuse more shards, or devices, than a comparison has seeds.

    Args:
        config: The comparison.
        count: How many there are.
        name: What is counted, for the message.
    """
    if count > config.seeds:
        raise ValueError(
            f"{name} must be at most as many as seeds, {config.seeds}, got {count}; "
            "every shard needs a seed of its own"
        )


def describe_differences(config: ComparisonConfig, expected: ComparisonConfig) -> str:
    """Return which settings differ, and how: "rounds 12, not 10"; empty if none does."""
    words = []
    for setting in fields(ComparisonConfig):
        value = getattr(config, setting.name)
        wanted = getattr(expected, setting.name)
        if value != wanted:
            words.append(f"{setting.name} {value}, not {wanted}")
    return "; ".join(words)
