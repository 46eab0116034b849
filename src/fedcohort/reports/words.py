"""Values as a reader wants to see them."""

from collections.abc import Sequence
from math import isnan
from typing import Any

from fedcohort.arrays import Floats
from fedcohort.statistics import sd


def format_value(value: Any) -> str:
    """Return a value of a table as text.

    Args:
        value: Any value. Floats get three digits, and a comma between thousands. None and nan
            become a dash.

    Examples:
        >>> [format_value(value) for value in (0.12345, 12345.6, 20, None, True)]
        ['0.123', '12,346', '20', '-', 'yes']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if isnan(value):
        return "-"
    if abs(value) < 999.5:
        return f"{value:.3g}"
    return f"{value:,.0f}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Args:
        number: How many there are.
        noun: The noun in the singular.

    Examples:
        >>> counted(1, "seed"), counted(2000, "seed")
        ('1 seed', '2,000 seeds')
    """
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural}"


def signed(value: float, digits: int = 1) -> str:
    """Return a difference with its sign, and a minus that is as wide as the plus.

    Args:
        value: The difference.
        digits: Digits after the decimal point.

    Examples:
        >>> signed(0.72), signed(-1.0), signed(-0.01)
        ('+0.7', '\u22121.0', '0.0')
    """
    text = f"{value:+.{digits}f}".replace("-", "\u2212")
    return text[1:] if not text[1:].strip("0.") else text


def percent(share: float) -> str:
    """Return a share in whole percent, with a space at which no line breaks.

    Args:
        share: The share, 1 for all.

    Examples:
        >>> percent(0.644).split()
        ['64', '%']
    """
    return f"{100 * share:.0f}\u00a0%"


def exact_percent(share: float) -> str:
    """Return a share that somebody set, such as a target, in percent with up to four digits.

    Args:
        share: The share, 1 for all.

    Examples:
        >>> exact_percent(0.625).split(), exact_percent(0.1).split()
        (['62.5', '%'], ['10', '%'])
    """
    return f"{100 * share:.4g}\u00a0%"


def three_digits(value: float) -> str:
    """Return a value with three digits after the point, a dash for nan.

    Examples:
        >>> three_digits(0.5), three_digits(float("nan"))
        ('0.500', '-')
    """
    return "-" if isnan(value) else f"{value:.3f}"


def mean_with_sd(values: Floats, digits: int = 3) -> str:
    """Return "mean ± standard deviation" of one value per seed, without the nan.

    Args:
        values: [S] one value per seed. One value has no deviation. None at all become a dash.
        digits: Digits after the decimal point.
    """
    known = values[values == values]
    if not known.size:
        return "-"
    text = f"{known.mean():.{digits}f}"
    if known.size > 1:
        text += f" ± {sd(known):.{digits}f}"
    return text


def listed(names: Sequence[str], conjunction: str = "and") -> str:
    """Return names as a list in a sentence.

    Args:
        names: At least one name.
        conjunction: The word before the last name.

    Examples:
        >>> listed(["a", "b", "c"]), listed(["a", "b"], "or")
        ('a, b and c', 'a or b')
    """
    *first, last = names
    if not first:
        return last
    return f"{', '.join(first)} {conjunction} {last}"
