"""Text that clients send: short, harmless when it is printed, and in a natural order."""

import re

LONGEST_REASON = 500  # characters
LONGEST_QUOTE = 100  # characters
is_printable = str.isprintable


def printable(text: str, longest: int = LONGEST_REASON) -> str:
    """Return the beginning of a text; control characters cannot command a terminal.

    The text is cut before it is made printable, so that a long text costs no more than a short one.
    """
    return "".join(letter if is_printable(letter) else "?" for letter in text[:longest])


def quote(name: object) -> str:
    """Return the `repr` of what a client sent, at most about a hundred characters of it."""
    if isinstance(name, str | bytes | list):
        if len(name) > LONGEST_QUOTE:
            return f"{name[:LONGEST_QUOTE]!r}… (length {len(name)})"
    elif isinstance(name, int) and abs(name) >= 10**LONGEST_QUOTE:
        return f"an integer of {name.bit_length()} bits"
    return repr(name)


def describe_error(error: BaseException) -> str:
    """Return the type and the text of an error in one short line."""
    text = printable(" ".join(str(error)[:LONGEST_REASON].split()))
    name = type(error).__name__
    return f"{name}: {text}"[:LONGEST_REASON] if text else name


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts client-2 before client-10.

    Every second part is a number. Numbers are compared by their length first, then by their digits.
    """
    key = []
    for position, part in enumerate(re.split(r"([0-9]+)", name)):
        if position % 2:
            digits = part.lstrip("0")
            key.append((len(digits), digits))
        else:
            key.append((0, part))
    return key
