"""E3CS's robust update of all weights at once, whoever is available."""

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints, pick, place
from fedcohort.selection.allocation import log_sum


def charge_losses(
    log_weights: Floats,
    clients: Ints,
    charge: Floats,
    log_cap: Floats,
    share: float,
    present: Bools | None,
) -> Floats:
    """Cap the weights, charge the failures and share out beta.

    Args:
        log_weights: Logarithms of the weights, shape [..., K].
        clients: The clients asked, shape [..., k].
        charge: What each of them loses, in nats, shape [..., k].
        log_cap: Logarithm of the cap, shape [...].
        share: Share of the weight that is spread evenly, beta.
        present: Who could be asked, shape [..., K]; None for everyone.

    Returns:
        The new log-weights, shape [..., K].
    """
    # 1. Weights above the cap are stored as the cap.
    logs = np.minimum(log_weights, log_cap[..., None])

    # 2. The clients asked are charged.
    place(logs, clients, pick(logs, clients) - charge)

    # 3. The weights of those present sum to one.
    count: int | Ints = log_weights.shape[-1]
    if present is not None:
        count = present.sum(axis=-1, keepdims=True)
        logs[~present] = -np.inf
    logs -= log_sum(logs)

    # 4. A share beta of the weight is spread evenly.
    if share:
        weights = np.exp(logs, out=logs)
        weights *= 1 - share
        weights += share / count
        logs = np.log(weights, out=weights)

    # 5. Those present share the weight that they had before; the absent keep theirs.
    if present is not None:
        logs += log_sum(np.where(present, log_weights, -np.inf))
        logs = np.where(present, logs, log_weights)
    return logs
