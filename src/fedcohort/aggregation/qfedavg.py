"""The rule `q-fedavg`: clients with a high loss count more (q-FedAvg)."""

import numpy as np

from fedcohort.aggregation.base import Arrivals, Rule, Setting
from fedcohort.arrays import Floats

FAIRNESS = 1.0  # q; 0 is an average in which every client counts the same


class QFedAvg(Rule):
    """Weigh each update by a power of its client's loss.

    With L = 1 / learning rate, loss F_i and update d_i the change is the sum of F_i^q L d_i over
    the sum of q F_i^(q-1) |L d_i|^2 + L F_i^q, with q = 1. The published rule takes the loss of
    the model that was sent; this one takes the mean loss over the client's training steps, which
    costs no extra pass over the data.

    Args:
        setting: Sizes and the learning rate of the clients.

    Raises:
        ValueError: If there is no learning rate.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if setting.learning_rate is None:
            raise ValueError("learning_rate must be given for q-fedavg, got None")
        self.inverse_rate = 1.0 / setting.learning_rate

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return F_i^q L, divided by the sum of q F_i^(q-1) |L d_i|^2 + L F_i^q."""
        loss = np.where(arrivals.valid, np.maximum(arrivals.loss, 0.0), 0.0)
        norm = np.where(arrivals.valid, arrivals.norm, 0.0)
        length = self.inverse_rate
        power = loss**FAIRNESS
        slope = FAIRNESS * np.where(arrivals.valid, loss ** (FAIRNESS - 1), 0.0)

        curvature = slope * (length * norm) ** 2 + length * power
        total = np.sum(curvature, axis=-1, keepdims=True)
        weights = np.zeros(power.shape)
        np.divide(length * power, total, out=weights, where=total > 0)
        return weights
