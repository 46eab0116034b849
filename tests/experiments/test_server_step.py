import numpy as np
import pytest
from made import result

from fedcohort.experiments import server_step
from fedcohort.experiments.artefact import Pool


def reached(round, horizon=400):
    return np.where(np.arange(1, horizon + 1) >= round, 0.5, 0.1)


def test_the_equal_step_is_randoms_mean_share():
    rules = server_step.by_rule({})
    assert server_step.mean_share(rules["paper"]) == pytest.approx(0.2 * (0.1 + 0.3 + 0.6 + 0.9) / 4) == pytest.approx(0.095)
    assert rules["equalised"].server_rate == pytest.approx(0.095)
    assert rules["equalised"].aggregations == rules["normalised"].aggregations == ("normalised",)
    assert rules["normalised"].server_rate == rules["paper"].server_rate == 1
    assert rules["paper"].aggregations == ("paper",)


def test_what_is_left_of_a_speed_up_is_worked_by_hand():
    # FedCS: 100 rounds against Random's 200 with the paper's rule; with equal steps 200 against 200, so nothing is left;
    # E3CS-0.5: 100 against 200, then 100 against 200, so all of it
    rounds = {
        "paper": {"random": 200, "fedcs": 100, "e3cs-0.5": 100},
        "equalised": {"random": 200, "fedcs": 200, "e3cs-0.5": 100},
        "normalised": {"random": 20, "fedcs": 20, "e3cs-0.5": 20},
    }
    changes = {"rounds": 400}
    rules = server_step.by_rule(changes)
    runs = [
        result(rules[rule], reached(at), selectors=(name,), aggregations=rules[rule].aggregations)
        for rule, schemes in rounds.items()
        for name, at in schemes.items()
    ]
    tables = server_step.report(changes, Pool(runs)).tables
    rows = {row["scheme"]: row for row in tables["speed-up over Random to @45, iid"]}
    assert (rows["FedCS"]["paper"], rows["FedCS"]["equalised"], rows["FedCS"]["left"]) == ("2.00×", "1.00×", "0 %")
    assert (rows["E3CS-0.5"]["equalised"], rows["E3CS-0.5"]["left"]) == ("2.00×", "100 %")
    assert rows["E3CS-inc"]["left"] == "-"
    shown = {(rule, row["scheme"]): row["@45"] for rule in server_step.RULES for row in tables[f"iid, {rule}"]}
    assert shown["normalised", "FedCS"] == "20"
    assert shown["normalised", "E3CS-inc"] == "not run"
