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
    ],
)
def test_limits_refuse_what_no_reply_could_keep(arguments, message):
    with pytest.raises(ValueError, match=message):
        Limits(**arguments)
