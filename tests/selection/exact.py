"""Exact answers to compare the code with, written anew and without floats where possible."""

from fractions import Fraction
from itertools import pairwise
from math import erfc, exp, lgamma, log, sqrt

import numpy as np

F = Fraction


def water_fill(weights, k, sigma):
    """Return p, the capped set and alpha in rationals.

    Cap everyone above 1, share out the rest, and repeat until nobody is above.
    """
    spare = k - len(weights) * F(sigma)
    capped = set()
    while True:
        free = [i for i in range(len(weights)) if i not in capped]
        alpha = sum(F(weights[i]) for i in free) / (spare - len(capped) * (1 - F(sigma)))
        over = {i for i in free if sigma + weights[i] / alpha > 1}
        if not over:
            p = [F(1) if i in capped else sigma + w / alpha for i, w in enumerate(weights)]
            return p, capped, alpha
        capped |= over


def printed_alphas(weights, k, sigma):
    """Return every alpha that the paper's printed rule accepts.

    The rule compares w_j, and not Psi_j, with Psi_(i_v).
    """
    psi = sorted(F(w) / (1 - sigma) for w in weights)
    accepted = set()
    for low, high in pairwise(psi):
        slots = k - len(weights) * sigma - sum(1 - sigma for w in weights if w > low)
        if slots > 0:
            alpha = sum(F(w) for w in weights if w <= low) / slots
            if low <= alpha < high:
                accepted.add(alpha)
    return accepted


def total_at(alpha, weights, sigma):
    """Return the sum of the probabilities that an alpha gives."""
    return sum(min(F(1), sigma + w / alpha) for w in weights)


def chi_square_tail(x, degrees):
    """Return P(chi-square > x) = Q(degrees / 2, h) for h = x / 2.

    Q(1/2, h) = erfc(sqrt h), Q(1, h) = exp(-h), Q(a+1, h) = Q(a, h) + h^a e^-h / Gamma(a+1).
    """
    half = max(x, 1e-300) / 2
    if degrees % 2:
        a = 0.5
        tail = erfc(sqrt(half))
    else:
        a = 1.0
        tail = exp(-half)
    while a < degrees / 2:
        tail += exp(a * log(half) - half - lgamma(a + 1))
        a += 1
    return tail


def members(clients, num_clients):
    """Return who is in, [N, K], for cohorts [N, k]."""
    inside = np.zeros((len(clients), num_clients), dtype=bool)
    np.put_along_axis(inside, clients, True, axis=-1)
    return inside


def chance_of_counts(clients, p):
    """Return an upper bound on the chance of inclusion counts as far from N p as these.

    Let z_i = (N_i - N p_i) / sqrt(N p_i (1 - p_i)) for the clients with 0 < p < 1. Then z is
    normal with the correlations of membership, and sum z^2 is a sum of lambda_j chi-square(1)
    over that matrix's eigenvalues. As the cohort size is fixed, at most n - 1 of them are not
    zero. The sum is at most lambda_max times a chi-square of as many degrees as the rank.
    """
    free = (p > 0) & (p < 1)
    inside = members(clients, len(p))[:, free]
    p = p[free]
    draws = len(clients)
    z = (inside.sum(axis=0) - draws * p) / np.sqrt(draws * p * (1 - p))
    scaled = (inside - p) / np.sqrt(p * (1 - p))
    eigenvalues = np.linalg.eigvalsh(scaled.T @ scaled / draws - np.outer(z, z) / draws)
    rank = int((eigenvalues > 1e-9 * eigenvalues[-1]).sum())
    return chi_square_tail(float(z @ z) / eigenvalues[-1], rank)


class Rigged:
    """A source of chance that hands out chosen numbers in turn, the ends of [0, 1) among them."""

    def __init__(self, numbers):
        self.numbers = np.array(numbers)

    def random(self, size):
        return np.resize(self.numbers, size)
