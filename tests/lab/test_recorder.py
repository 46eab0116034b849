import numpy as np
import pytest

from fedcohort.lab.recorder import MAX_ROUNDS, AllocationRecorder
from fedcohort.selection.e3cs import E3CS


def test_the_probabilities_of_the_first_run_are_recorded():
    selector = E3CS(4, 2, rng=[0, 1])
    selector.log_weights = np.log([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]])
    recorder = AllocationRecorder(rounds=10)
    recorder.record("e3cs-0", selector, 0)
    inclusion, capped = recorder.rows["e3cs-0"][0]
    # k w / sum w = 2 w / 10; nobody is above 1.
    np.testing.assert_allclose(inclusion, [0.2, 0.4, 0.6, 0.8], atol=1e-3)  # float16
    assert not capped.any()


@pytest.mark.parametrize(
    ("rounds", "interval"),
    [(MAX_ROUNDS, 1), (MAX_ROUNDS + 1, 2), (2 * MAX_ROUNDS - 1, 2), (2 * MAX_ROUNDS + 1, 3)],
)
def test_at_most_so_many_rounds_are_recorded_at_equal_distances(rounds, interval):
    selector = E3CS(4, 2, rng=0)
    recorder = AllocationRecorder(rounds)
    for round in range(rounds):
        recorder.record("e3cs-0", selector, round)
    assert list(recorder.rows["e3cs-0"]) == list(range(0, rounds, interval))
    assert len(recorder.rows["e3cs-0"]) <= MAX_ROUNDS
