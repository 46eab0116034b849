import numpy as np

from fedcohort.lab.recorder import AllocationRecorder
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
