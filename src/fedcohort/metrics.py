"""What came of it: participation, fairness, and regret with its bounds.

K num_clients, k cohort_size, phi fraction, sigma floor = phi k/K, R spare = k (1 - phi), rho = R / (1 - sigma), eta rate
"""

from math import log

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints


def success_ratio(successes: Ints, cohort_size: int) -> Floats:
    """Return, for every round, the share of all updates asked for so far that arrived; successes [..., T] per round."""
    asked = cohort_size * np.arange(1, successes.shape[-1] + 1)
    ratio: Floats = np.cumsum(successes, axis=-1) / asked
    return ratio


def jain(counts: Ints) -> Floats:
    """Return Jain's index of counts [..., K]: 1 if all are equal, 1/K if one has everything; 1 if there is nothing."""
    total = counts.sum(axis=-1, dtype=np.float64)
    squares = (counts.astype(np.float64) ** 2).sum(axis=-1)
    index = np.divide(
        total**2, counts.shape[-1] * squares, out=np.ones_like(total), where=squares > 0
    )
    return np.asarray(index)


def class_quartiles(counts: Ints, classes: Ints) -> Floats:
    """Return Q1, median and Q3 of the selections within each class, averaged over runs: [classes, 3]."""
    of_class = [
        np.percentile(counts[..., classes == c], [25, 50, 75], axis=-1)
        for c in range(int(classes.max()) + 1)
    ]
    return np.stack([q.reshape(3, -1).mean(axis=-1) for q in of_class])


def best_fixed(gains: Floats, spare: Floats, floors: Floats) -> Floats:
    """Return the spare share q of the best allocation q R_t + sigma_t that is the same in all rounds: [..., K], sum 1.

    gains: [..., K] what a unit of q earns on each client, sum over rounds of R_t x_(i,t). No q may push a p above 1, so each
    is at most the least (1 - sigma_t) / R_t: the best clients get that until all is given.
    """
    spared = spare > 0
    most = float(((1 - floors[spared]) / spare[spared]).min()) if spared.any() else 1.0
    order = np.argsort(-gains, axis=-1, kind="stable")
    given = np.clip(1 - most * np.arange(gains.shape[-1]), 0.0, most)
    shares = np.empty(gains.shape)
    np.put_along_axis(shares, order, np.broadcast_to(given, gains.shape), axis=-1)
    return shares


def clairvoyant_value(answering: Ints, spare: Floats, floors: Floats) -> Floats:
    """Return what one who knows each round's answers earns; answering [..., T] counts those who would answer."""
    return floors * answering + np.minimum(spare, (1 - floors) * answering)


def spare_and_floors(
    fractions: Floats, num_clients: int, cohort_size: int
) -> tuple[Floats, Floats]:
    """Return R_t and sigma_t for the fractions phi_t of all rounds."""
    return cohort_size * (1 - fractions), fractions * cohort_size / num_clients


def paper_bound(eta: float, spare: Floats, num_clients: int) -> float:
    """Return the bound of Theorem 1, eta sum R_t + (K / eta) ln K; proved only where `theorem_holds`."""
    return eta * float(spare.sum()) + num_clients / eta * log(num_clients)


def corrected_bound(eta: float, spare: Floats, floors: Floats, num_clients: int) -> float:
    """Return the same bound with KL(q | uniform) in place of ln K: at most ln(K / max rho_t), as no q exceeds 1/rho_t."""
    slots = spare / (1 - np.where(spare > 0, floors, 0.0))
    if not slots.max() > 0:
        return 0.0
    return eta * float(spare.sum()) + num_clients / eta * log(
        num_clients / max(1.0, float(slots.max()))
    )


def robust_bound(eta: float, spare: Floats, floors: Floats, num_clients: int) -> float:
    """Return the bound of the robust update without share, for a constant floor: eta R T / 2 + (K / eta) ln(K / rho)."""
    return corrected_bound(eta, spare, floors, num_clients) - eta * float(spare.sum()) / 2


def theorem_holds(eta: float, spare: Floats, floors: Floats, num_clients: int) -> Bools:
    """Return for which rounds the proof's step holds: eta R_t / (K p) <= 1 for all p >= sigma_t, so sigma_t >= eta R_t / K."""
    return floors * (1 + 1e-12) >= eta * spare / num_clients


def first_at(curves: Floats, target: float) -> Floats:
    """Return the first round, counted from 1, in which each curve [T, R] reaches the target; nan if it never does."""
    with np.errstate(invalid="ignore"):
        reached = curves >= target
    return np.where(reached.any(axis=0), reached.argmax(axis=0) + 1.0, np.nan)
