"""q-FedAvg by hand."""

import numpy as np
import pytest

from fedcohort.aggregation.base import Setting
from fedcohort.aggregation.qfedavg import QFedAvg


def test_weights_by_hand(arrivals):
    # q = 1, L = 1 / 0.5 = 2. Client 0: F = 1, |d| = 1: h = (2 * 1)^2 + 2 * 1 = 6.
    # Client 1: F = 3, |d| = 0.5: h = (2 * 0.5)^2 + 2 * 3 = 7. Weights F L / (6 + 7).
    rule = QFedAvg(Setting(1, 2, learning_rate=0.5))
    known = arrivals([0, 1], [1, 1], loss=[1.0, 3.0], norm=[1.0, 0.5])
    assert rule.weigh(known)[0].tolist() == pytest.approx([2 / 13, 6 / 13])


def test_clients_that_failed_count_nowhere(arrivals):
    rule = QFedAvg(Setting(1, 2, learning_rate=0.5))
    known = arrivals([0, 1], [1, 0], loss=[1.0, np.nan], norm=[1.0, np.nan])
    assert rule.weigh(known)[0].tolist() == pytest.approx([2 / 6, 0.0])


def test_no_loss_anywhere_moves_nothing(arrivals):
    rule = QFedAvg(Setting(1, 1, learning_rate=0.5))
    assert rule.weigh(arrivals([0], [1], loss=[0.0], norm=[0.0]))[0].tolist() == [0.0]


def test_without_a_learning_rate_the_rule_is_refused():
    with pytest.raises(ValueError, match="learning_rate must be given for q-fedavg, got None"):
        QFedAvg(Setting(1, 2))
