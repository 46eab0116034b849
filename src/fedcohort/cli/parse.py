"""Flags with several values, and flags with a number or a word."""

from math import isnan

from fedcohort.checks import parse_number
from fedcohort.lab.config_checks import WORLDS_WITHOUT_CLASSES


def parse_words(text: str) -> tuple[str, ...]:
    """Return comma-separated words."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def split_list(name: str, text: str) -> list[str]:
    """Return the parts of a comma-separated list; nothing for a list of commas alone.

    Args:
        name: The flag's name, for the message.
        text: Its value.

    Raises:
        ValueError: If a part is missing between others.
    """
    parts = [part.strip() for part in text.split(",")]
    words = [part for part in parts if part]
    if words and len(words) < len(parts):
        raise ValueError(f"{name} must be a comma-separated list without gaps, got {text!r}")
    return words


def write_given(value: object) -> str:
    """Return a flag's value for a message; a flag without one was given as itself."""
    return "it" if value is True else str(value)


def parse_numbers(name: str, text: str) -> tuple[float, ...]:
    """Return comma-separated numbers.

    Args:
        name: The flag's name, for the message.
        text: Its value.

    Raises:
        ValueError: If a word is no number, or missing between others.
    """
    numbers = tuple(parse_number(word) for word in split_list(name, text))
    if any(map(isnan, numbers)):
        raise ValueError(f"{name} must be comma-separated numbers, got {text!r}")
    return numbers


def parse_eta(text: str) -> float | str:
    """Return E3CS's learning rate, a number or "auto"."""
    if text == "auto":
        return text
    eta = parse_number(text)
    if isnan(eta):
        raise ValueError(f"eta must be a number or 'auto', got {text!r}")
    return eta


def check_rates(rates: str | None, world: str) -> None:
    """Refuse rates of classes of clients in a world that has no such classes.

    Args:
        rates: The flag's value, None if it was not given.
        world: Name of the world.

    Raises:
        ValueError: If the rates would have no effect.
    """
    if rates is not None and world in WORLDS_WITHOUT_CLASSES:
        raise ValueError(
            f"rates must not be given for the world {world!r}, which does not use them, "
            f"got {rates!r}"
        )
