"""Flags that hold several values, and numbers or a word."""


def words(text: str) -> tuple[str, ...]:
    """Return comma-separated words."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def numbers(name: str, text: str) -> tuple[float, ...]:
    """Return comma-separated numbers; anything else is refused by name."""
    try:
        return tuple(float(word) for word in words(text))
    except ValueError:
        raise ValueError(f"{name} must be comma-separated numbers, got {text!r}") from None


def eta(text: str) -> float | str:
    """Return E3CS's learning rate, or auto."""
    try:
        return "auto" if text == "auto" else float(text)
    except ValueError:
        raise ValueError(f"eta must be a number or 'auto', got {text!r}") from None
