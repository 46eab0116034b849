import numpy as np

from fedcohort.data import label_counts
from fedcohort.data.partitions.iid import iid
from fedcohort.rng import stream


def test_iid_clients_own_every_label_in_proportion():
    labels = np.repeat([0, 1], [9000, 1000])
    parts = iid(labels, 10, stream(0, "partition"))
    rare = label_counts(labels, parts, 2)[:, 1]
    error = 5 * np.sqrt(1000 * 0.1 * 0.9 * 0.9)  # five standard errors, drawn without replacement
    assert (np.abs(rare - 100) <= error).all()
