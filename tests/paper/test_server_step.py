from math import log, nan

import numpy as np
import pytest
from made import result

from fedcohort.paper import server_step
from fedcohort.paper.results import Results


def reached(round, horizon=400):
    return np.where(np.arange(1, horizon + 1) >= round, 0.5, 0.1)


def test_the_equal_step_is_randoms_mean_share():
    rules = server_step.configs_by_rule({})
    assert (
        server_step.mean_share(rules["paper"])
        == pytest.approx(0.2 * (0.1 + 0.3 + 0.6 + 0.9) / 4)
        == pytest.approx(0.095)
    )
    assert rules["equalised"].server_rate == pytest.approx(0.095)
    assert rules["equalised"].aggregations == rules["normalised"].aggregations == ("normalised",)
    assert rules["normalised"].server_rate == rules["paper"].server_rate == 1
    assert rules["paper"].aggregations == ("paper",)


def test_what_is_left_of_a_speed_up_is_worked_by_hand():
    # FedCS: 100 rounds against Random's 200 with the paper's rule, but 200 against 200 with equal
    # steps, so nothing is left. E3CS-0.5: 100 against 200 with both, so all of it is left.
    rounds = {
        "paper": {"random": 200, "fedcs": 100, "e3cs-0.5": 100},
        "equalised": {"random": 200, "fedcs": 200, "e3cs-0.5": 100},
        "normalised": {"random": 20, "fedcs": 20, "e3cs-0.5": 20},
    }
    overrides = {"rounds": 400}
    rules = server_step.configs_by_rule(overrides)
    runs = [
        result(rules[rule], reached(at), selectors=(name,), aggregations=rules[rule].aggregations)
        for rule, schemes in rounds.items()
        for name, at in schemes.items()
    ]
    report = server_step.report(Results(runs), overrides)
    tables = report.tables
    rows = {row["scheme"]: row for row in tables["speed-up over Random to @45, iid"]}
    shown = ("paper", "equalised", "left, equalised", "left, normalised")
    assert [rows["FedCS"][name] for name in shown] == ["2.00×", "1.00×", "0 %", "0 %"]
    assert [rows["E3CS-0.5"][name] for name in shown] == ["2.00×", "2.00×", "100 %", "0 %"]
    assert rows["E3CS-inc"]["left, equalised"] == "-"
    assert {
        row["selector"]: row["log ratio"]
        for row in report.numbers["speed_up"]
        if row["rule"] == "paper"
    } == {
        "fedcs": pytest.approx(log(2)),
        "e3cs-0.5": pytest.approx(log(2)),
    }
    shown = {
        (rule, row["scheme"]): row["@45"]
        for rule in server_step.RULES
        for row in tables[f"iid, {rule}"]
    }
    assert shown["normalised", "FedCS"] == "20"
    assert shown["normalised", "E3CS-inc"] == "not run"


def test_seeds_in_which_one_did_not_get_there_are_counted_and_what_is_left_is_of_the_others():
    row = server_step.speed_up_row(
        "fedcs",
        {
            "paper": {0: log(2), 1: log(4), 2: nan, 3: log(16)},
            "normalised": {},
            "equalised": {0: nan, 1: log(2), 2: log(3)},
        },
    )
    assert row["paper"].endswith("(2 of 3)")  # seed 3 is not of both
    assert row["paper"].startswith(f"{8**0.5:.2f}×")
    assert row["left, equalised"] == "50 %"  # of seed 1, the only one that both know


def test_a_row_is_of_the_seeds_that_all_rules_have():
    rules = {
        "paper": {0: log(2), 1: log(8)},
        "normalised": {0: log(3)},
        "equalised": {0: log(2), 1: log(8)},
    }
    assert server_step.speed_up_row("fedcs", rules) == {
        "scheme": "FedCS",
        "paper": "2.00×",
        "normalised": "3.00×",
        "equalised": "2.00×",
        "left, normalised": "158 %",  # log 3 / log 2: of seed 0 alone
        "left, equalised": "100 %",
    }
    assert server_step.speed_up_row("fedcs", {rule: {} for rule in rules})["left, equalised"] == "-"


def test_of_a_speed_up_that_is_none_nothing_is_left():
    slower = {"paper": {0: log(0.8)}, "normalised": {}, "equalised": {0: log(0.6)}}
    assert server_step.speed_up_row("fedcs", slower)["left, equalised"] == "-"


@pytest.mark.parametrize(
    ("speed_up", "left"),
    [
        (1.03, "-"),  # three rounds in a hundred are no speed-up to take parts of
        (1.06, "50 %"),
    ],
)
def test_of_a_speed_up_of_less_than_a_twentieth_no_part_is_taken(speed_up, left):
    half = {0: log(speed_up) / 2}
    rules = {"paper": {0: log(speed_up)}, "normalised": half, "equalised": half}
    row = server_step.speed_up_row("fedcs", rules)
    assert (row["left, normalised"], row["left, equalised"]) == (left, left)
