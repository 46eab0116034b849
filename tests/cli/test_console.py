"""What the console prints: JSON that other tools can read, and published values below ours."""

import json
from math import inf, nan

from fedcohort.cli.console import print_json, stack_published


def test_json_has_null_for_nan_and_words_for_infinity(capsys):
    print_json({"rows": [{"never": inf, "below": -inf, "unknown": nan, "known": 0.5}]})
    printed = json.loads(capsys.readouterr().out, parse_constant=lambda name: f"constant {name}")
    assert printed == {"rows": [{"never": "inf", "below": "-inf", "unknown": None, "known": 0.5}]}


def test_published_values_stand_below_ours_in_one_column():
    row = {"scheme": "random", "@45": "120", "paper @45": "121", "final": "-"}
    assert stack_published(row) == {
        "scheme": "random",
        "@45 paper": "120\n121",
        "final": "-",
    }
