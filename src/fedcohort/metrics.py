"""Measures of a run: participation, fairness, and regret with its bounds.

The paper's symbols: K num_clients, k cohort_size, T rounds, phi_t fraction, sigma_t = phi_t k / K
floor, R_t = k (1 - phi_t) spare, rho_t = R_t / (1 - sigma_t), eta learning rate of the weights.
A quota reserves the fraction phi_t of every fair share k / K: client i is asked in round t with
probability p_it = q_it R_t + sigma_t, where the spare shares q_it sum to 1 over all clients.
"""

from math import log

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints


def success_ratio(successes: Ints, cohort_size: int | Ints) -> Floats:
    """Return, for every round, which share of all updates asked for so far arrived.

    Args:
        successes: Number of updates that arrived in each round, [..., T].
        cohort_size: Number of clients asked in each round, k, or [..., T] if it varies.

    Returns:
        Ratios between 0 and 1, [..., T]; nan while nobody was asked.

    Examples:
        >>> success_ratio(np.array([1, 2, 0]), cohort_size=2).tolist()
        [0.5, 0.75, 0.5]
    """
    asked = np.cumsum(np.broadcast_to(cohort_size, successes.shape), axis=-1)
    ratio: Floats = np.cumsum(successes, axis=-1) / np.where(asked > 0, asked, np.nan)
    return ratio


def jain(counts: Ints) -> Floats:
    """Return Jain's fairness index of counts.

    Args:
        counts: How often each client was selected, [..., K].

    Returns:
        Index [...]: 1 if all counts are equal (also if all are 0), 1/K if one client has all.

    Examples:
        >>> jain(np.array([[7, 7, 7, 7], [0, 9, 0, 0]])).tolist()
        [1.0, 0.25]
    """
    total = counts.sum(axis=-1, dtype=np.float64)
    squares = (counts.astype(np.float64) ** 2).sum(axis=-1)
    index = np.divide(
        total**2, counts.shape[-1] * squares, out=np.ones_like(total), where=squares > 0
    )
    return np.asarray(index)


def worst(accuracy: Floats) -> Floats:
    """Return the lowest accuracy over groups: that of the group which is left out most.

    Args:
        accuracy: Accuracy on the test samples of each group, [..., G]; nan where it has none.

    Returns:
        Lowest accuracy [...], nan where no group has test samples.

    Examples:
        >>> worst(np.array([[0.5, 0.25, np.nan], [0.75, 1.0, 0.5]])).tolist()
        [0.25, 0.5]
    """
    return np.asarray(np.fmin.reduce(accuracy, axis=-1))


def gap(accuracy: Floats) -> Floats:
    """Return how far the group with the lowest accuracy is behind the one with the highest.

    Args:
        accuracy: Accuracy on the test samples of each group, [..., G]; nan where it has none.

    Returns:
        Highest minus lowest accuracy [...], nan where no group has test samples.

    Examples:
        >>> gap(np.array([[0.5, 0.25, np.nan], [0.75, 1.0, 0.5]])).tolist()
        [0.25, 0.5]
    """
    return np.asarray(np.fmax.reduce(accuracy, axis=-1) - np.fmin.reduce(accuracy, axis=-1))


def class_quartiles(counts: Ints, classes: Ints) -> Floats:
    """Return the quartiles of the selections within each class, averaged over runs.

    Args:
        counts: How often each client was selected, [..., K].
        classes: Class of each client, from 0, [K].

    Returns:
        First quartile, median and third quartile of each class, [classes, 3].

    Examples:
        >>> counts = np.array([0, 1, 2, 3, 4, 4, 8])
        >>> class_quartiles(counts, classes=np.array([0, 0, 0, 0, 0, 1, 1])).tolist()
        [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]]
    """
    quartiles = []
    for number in range(int(classes.max()) + 1):
        members = counts[..., classes == number]
        per_run = np.percentile(members, [25, 50, 75], axis=-1)
        quartiles.append(per_run.reshape(3, -1).mean(axis=-1))
    return np.stack(quartiles)


def best_fixed(gains: Floats, spare: Floats, floors: Floats) -> Floats:
    """Return the spare shares q of the best allocation that stays the same in all rounds.

    No probability q_i R_t + sigma_t may exceed 1, so each share is at most the least
    (1 - sigma_t) / R_t. The best clients get that much until all is given.

    Args:
        gains: What a unit of q_i earns, [..., K]: the sum over rounds of R_t x_it, where x_it is 1
            if client i would answer in round t.
        spare: R_t of every round, [T].
        floors: sigma_t of every round, [T].

    Returns:
        Shares q [..., K], which sum to 1.

    Examples:
        >>> best_fixed(np.array([1.0, 9.0, 2.0, 5.0]), np.full(3, 2.0), np.zeros(3)).tolist()
        [0.0, 0.5, 0.0, 0.5]
    """
    has_spare = spare > 0
    cap = 1.0
    if has_spare.any():
        cap = float(((1 - floors[has_spare]) / spare[has_spare]).min())

    order = np.argsort(-gains, axis=-1, kind="stable")
    ordered_shares = np.clip(1 - cap * np.arange(gains.shape[-1]), 0.0, cap)
    shares = np.empty(gains.shape)
    np.put_along_axis(shares, order, np.broadcast_to(ordered_shares, gains.shape), axis=-1)
    return shares


def clairvoyant_value(answering: Ints, spare: Floats, floors: Floats) -> Floats:
    """Return the expected successes of an allocation that knows each round's answers.

    Args:
        answering: Number of clients that would answer in each round, [..., T].
        spare: R_t of every round, [T].
        floors: sigma_t of every round, [T].

    Returns:
        Expected successes of each round, [..., T].

    Examples:
        >>> clairvoyant_value(np.array([3, 1]), np.array([2.0, 2.0]), np.zeros(2)).tolist()
        [2.0, 1.0]
    """
    return floors * answering + np.minimum(spare, (1 - floors) * answering)


def spare_and_floors(
    fractions: Floats, num_clients: int, cohort_size: int
) -> tuple[Floats, Floats]:
    """Split the cohort of every round into a part given by weight and a part given to all.

    Args:
        fractions: phi_t of every round, [T].
        num_clients: Number of clients, K.
        cohort_size: Number of clients asked in each round, k.

    Returns:
        R_t = k (1 - phi_t), [T], and sigma_t = phi_t k / K, [T].

    Examples:
        >>> spare, floors = spare_and_floors(np.array([0.0, 0.5]), num_clients=10, cohort_size=4)
        >>> spare.tolist(), floors.tolist()
        ([4.0, 2.0], [0.0, 0.2])
    """
    return cohort_size * (1 - fractions), fractions * cohort_size / num_clients


def paper_bound(eta: float, spare: Floats, num_clients: int) -> float:
    """Return the paper's bound on the regret, Theorem 1: eta sum_t R_t + (K / eta) ln K.

    It is proved only where `theorem_holds`.

    Args:
        eta: Learning rate of the weights.
        spare: R_t of every round, [T].
        num_clients: Number of clients, K.

    Returns:
        Upper bound on the regret after T rounds.

    Examples:
        >>> round(paper_bound(0.5, np.full(2500, 20.0), num_clients=100))
        25921
    """
    return eta * float(spare.sum()) + num_clients / eta * log(num_clients)


def corrected_bound(eta: float, spare: Floats, floors: Floats, num_clients: int) -> float:
    """Return the paper's bound with ln(K / max_t rho_t) in place of ln K.

    The proof needs KL(q | uniform), which is at most ln(K / max_t rho_t), because no share q_i
    exceeds 1 / rho_t. The bound is 0 if no round has anything to spare.

    Args:
        eta: Learning rate of the weights.
        spare: R_t of every round, [T].
        floors: sigma_t of every round, [T].
        num_clients: Number of clients, K.

    Returns:
        Upper bound on the regret after T rounds.

    Examples:
        >>> round(corrected_bound(0.5, np.full(2500, 20.0), np.zeros(2500), num_clients=100))
        25322
    """
    rho = spare / (1 - np.where(spare > 0, floors, 0.0))
    if not rho.max() > 0:
        return 0.0
    divergence = log(num_clients / max(1.0, float(rho.max())))
    return eta * float(spare.sum()) + num_clients / eta * divergence


def robust_bound(eta: float, spare: Floats, floors: Floats, num_clients: int) -> float:
    """Return the bound of the robust update without share, for a constant floor.

    It is eta R T / 2 + (K / eta) ln(K / rho).

    Args:
        eta: Learning rate of the weights.
        spare: R_t of every round, [T].
        floors: sigma_t of every round, [T].
        num_clients: Number of clients, K.

    Returns:
        Upper bound on the regret after T rounds.

    Examples:
        >>> round(robust_bound(0.5, np.full(2500, 20.0), np.zeros(2500), num_clients=100))
        12822
    """
    return corrected_bound(eta, spare, floors, num_clients) - eta * float(spare.sum()) / 2


def theorem_holds(eta: float, spare: Floats, floors: Floats, num_clients: int) -> Bools:
    """Return in which rounds the proof of Theorem 1 holds.

    The proof needs eta R_t / (K p) <= 1 for every p >= sigma_t, hence sigma_t >= eta R_t / K.

    Args:
        eta: Learning rate of the weights.
        spare: R_t of every round, [T].
        floors: sigma_t of every round, [T].
        num_clients: Number of clients, K.

    Returns:
        Whether the proof holds in each round, [T].

    Examples:
        >>> spare, floors = spare_and_floors(np.array([0.0, 0.5]), num_clients=100, cohort_size=20)
        >>> theorem_holds(0.5, spare, floors, num_clients=100).tolist()
        [False, True]
    """
    tolerance = 1e-12  # of rounding
    return floors * (1 + tolerance) >= eta * spare / num_clients


def first_at(curves: Floats, target: float) -> Floats:
    """Return the first round, counted from 1, in which each curve reaches a target.

    Args:
        curves: Values of R runs after each round, [T, R]; nan where there is none.
        target: Value to reach.

    Returns:
        Rounds [R], nan for a curve that never reaches the target.

    Examples:
        >>> first_at(np.array([[0.1, 0.1], [0.6, 0.2], [0.7, 0.3]]), target=0.5).tolist()
        [2.0, nan]
    """
    with np.errstate(invalid="ignore"):
        reached = curves >= target
    return np.where(reached.any(axis=0), reached.argmax(axis=0) + 1.0, np.nan)
