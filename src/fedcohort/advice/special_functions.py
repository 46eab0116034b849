"""Functions of two distributions, and Gauss-Jacobi rules, which NumPy lacks."""

from math import sqrt

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats

SHIFT = 8  # Stirling's series is exact to 1e-11 from here on


def log_gamma(values: npt.ArrayLike) -> Floats:
    """Return the logarithm of the gamma function of positive numbers.

    Args:
        values: Numbers above 0, any shape.

    Examples:
        >>> np.exp(log_gamma([1.0, 5.0])).round(9).tolist()  # 0! and 4!
        [1.0, 24.0]
    """
    x = np.asarray(values, dtype=np.float64)
    below = np.zeros(x.shape)
    for step in range(SHIFT):
        below += np.log(x + step)
    y = x + SHIFT
    series = 1 / (12 * y) - 1 / (360 * y**3) + 1 / (1260 * y**5) - 1 / (1680 * y**7)
    return np.asarray((y - 0.5) * np.log(y) - y + 0.5 * np.log(2 * np.pi) + series - below)


def normal_tail(values: npt.ArrayLike) -> Floats:
    """Return the probability that a standard normal number is above each value.

    The rational approximation of erfc has a relative error below 2e-7 everywhere.

    Args:
        values: Any numbers.

    Examples:
        >>> normal_tail([0.0, 1.959964]).round(6).tolist()
        [0.5, 0.025]
    """
    x = np.asarray(values, dtype=np.float64) / sqrt(2)
    t = 1 / (1 + 0.5 * np.abs(x))
    coefficients = (
        -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806,
        0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277,
    )  # fmt: skip
    exponent = np.zeros(x.shape)
    for coefficient in reversed(coefficients):
        exponent = exponent * t + coefficient
    erfc = t * np.exp(exponent - x**2)
    return np.asarray(np.where(x >= 0, erfc, 2 - erfc) / 2)


def normal_quantile(probabilities: npt.ArrayLike) -> Floats:
    """Return the values below which a standard normal number lies with these probabilities.

    Args:
        probabilities: Numbers between 0 and 1; they are cut to [1e-9, 1 - 1e-9].

    Examples:
        >>> abs(normal_quantile([0.5, 0.975]).round(4)).tolist()
        [0.0, 1.96]
    """
    wanted = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-9, 1 - 1e-9)
    low = np.full(wanted.shape, -6.5)
    high = np.full(wanted.shape, 6.5)
    for _ in range(40):  # bisection: 13 / 2^40 is below 2e-11
        middle = (low + high) / 2
        is_low = 1 - normal_tail(middle) < wanted
        low = np.where(is_low, middle, low)
        high = np.where(is_low, high, middle)
    return np.asarray((low + high) / 2)


def jacobi_rule(size: int, at_zero: float, at_one: float) -> tuple[Floats, Floats]:
    """Return the points and weights of a Gauss-Jacobi rule between 0 and 1, [size] each.

    The weighted sum over the points is the integral of x^(at_zero - 1) (1 - x)^(at_one - 1) f(x),
    exact if f is a polynomial of degree 2 size - 1 or less. Golub and Welsch: the points are the
    eigenvalues of the matrix of the polynomials' recurrence.

    Args:
        size: Number of points.
        at_zero: Exponent at 0, above 0; 1 for functions that are smooth there.
        at_one: Exponent at 1, above 0.

    Examples:
        >>> points, weights = jacobi_rule(4, 0.5, 1.0)  # the integral of x^(-1/2) x is 2/3
        >>> round(float(weights @ points), 9)
        0.666666667
    """
    right = at_one - 1
    left = at_zero - 1
    both = left + right
    first = (left - right) / (both + 2)
    k = np.arange(1.0, size)
    middle = (left - right) * both / ((2 * k + both) * (2 * k + both + 2))
    second = 4 * (1 + left) * (1 + right) / ((2 + both) ** 2 * (3 + both))
    k = k[1:]
    beside = 4 * k * (k + left) * (k + right) * (k + both)
    beside /= (2 * k + both) ** 2 * (2 * k + both + 1) * (2 * k + both - 1)
    off_diagonal = np.sqrt(np.append(second, beside))
    matrix = np.diag(np.append(first, middle))
    matrix += np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)

    values, vectors = np.linalg.eigh(matrix)
    total = np.exp(log_gamma(at_zero) + log_gamma(at_one) - log_gamma(at_zero + at_one))
    return np.asarray((1 + values) / 2), np.asarray(total * vectors[0] ** 2)
