from math import inf, nan

import pytest

from fedcohort.flower import Limits


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"least_examples": 0}, "least_examples must be a finite number above 0, got 0"),
        ({"most_examples": inf}, "most_examples must be a finite number above 0, got inf"),
        ({"least_examples": 5, "most_examples": 4}, "most_examples must be at least 5, got 4"),
        ({"max_norm": 0.0}, "max_norm must be a number above 0, got 0.0"),
        ({"max_norm": nan}, "max_norm must be a number above 0, got nan"),
        ({"max_norm": "far"}, "max_norm must be a number above 0, got 'far'"),
        ({"norm_factor": 1}, "norm_factor must be a number above 1, got 1"),
        ({"examples_factor": 0.5}, "examples_factor must be a number above 1, got 0.5"),
        ({"max_loss": inf}, "max_loss must be a finite number above 0, got inf"),
        ({"loss_factor": 1}, "loss_factor must be a number above 1, got 1"),
        ({"most_metrics": 0}, "most_metrics must be a whole number at least 1, got 0"),
        ({"most_config_bytes": -1}, "most_config_bytes must be a whole number at least 0, got -1"),
        ({"longest_name": 1.5}, "longest_name must be a whole number at least 1, got 1.5"),
    ],
)
def test_limits_refuse_what_no_reply_could_keep(arguments, message):
    with pytest.raises(ValueError, match=message):
        Limits(**arguments)
