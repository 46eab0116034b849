"""Flags with several values, and flags with a number or a word."""


def parse_words(text: str) -> tuple[str, ...]:
    """Return comma-separated words."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def parse_numbers(name: str, text: str) -> tuple[float, ...]:
    """Return comma-separated numbers.

    Args:
        name: The flag's name, for the message.
        text: Its value.

    Raises:
        ValueError: If a word is no number.
    """
    try:
        return tuple(float(word) for word in parse_words(text))
    except ValueError:
        raise ValueError(f"{name} must be comma-separated numbers, got {text!r}") from None


def parse_eta(text: str) -> float | str:
    """Return E3CS's learning rate, a number or "auto"."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"eta must be a number or 'auto', got {text!r}") from None
