import numpy as np

from fedcohort.reports.findings import SchemeResults

# Two seeds, three rounds: asked 4 each time, used 1 2 3 and 4 0 2; three clients.
SCHEME = SchemeResults(
    seeds=[0, 1],
    asked=np.full((2, 3), 4.0),
    successes=np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 2.0]]),
    counts=np.array([[4, 4, 4], [12, 0, 0]]),
    accuracy=np.array([[0.1, 0.5, 0.4], [0.2, 0.3, 0.6]]),
)


def test_what_a_scheme_says_of_each_seed_is_worked_out_by_hand():
    np.testing.assert_allclose(SCHEME.success, [6 / 12, 6 / 12])
    np.testing.assert_allclose(SCHEME.success_so_far, [[1 / 4, 3 / 8, 6 / 12], [1, 4 / 8, 6 / 12]])
    np.testing.assert_array_equal(SCHEME.participation, [[1, 3, 6], [4, 4, 6]])
    np.testing.assert_allclose(SCHEME.fairness, [1, 1 / 3])
    np.testing.assert_array_equal(SCHEME.final_accuracy, [0.4, 0.6])
    np.testing.assert_array_equal(SCHEME.rounds_to(0.45), [2, 3])


def test_success_weighs_rounds_by_the_number_of_updates_asked_for():
    scheme = SchemeResults([0], asked=np.array([[4.0, 2.0]]), successes=np.array([[1.0, 2.0]]))
    np.testing.assert_allclose(scheme.success, [3 / 6])
