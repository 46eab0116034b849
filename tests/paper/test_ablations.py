from dataclasses import replace

import numpy as np
import pytest
from made import result

from fedcohort.paper.ablations import (
    compare_test_data,
    compare_variants,
    configs,
    with_participation,
)
from fedcohort.paper.setting import task_config

CONFIG = task_config("cifar10", {"rounds": 2}, selectors=("e3cs-0", "e3cs-robust"))


def ends_at(*finals, official=None):
    """Return finished runs of two rounds with these final accuracies, one per seed."""
    runs = []
    for seed, final in enumerate(finals):
        tested = None if official is None else (0.0, official)
        runs.append(result(CONFIG, (0.0, final), official=tested, first_seed=seed))
    return runs


def test_a_difference_is_that_to_the_first_variant_of_the_scheme_paired_by_seed():
    variants = {
        ("successive", "e3cs-0"): ends_at(0.50, 0.60),
        ("exact", "e3cs-0"): ends_at(0.53, 0.61, 0.99),  # 3 and 1 points more; seed 2 has no pair
        ("exact", "e3cs-robust"): ends_at(0.49, 0.59),  # beside E3CS-0: a point less in both
    }
    rows = compare_variants(CONFIG, variants)
    assert [row["difference"] for row in rows] == ["", "+2.00 ± 1.00", "-1.00 ± 0.00"]
    assert [row["runs"] for row in rows] == [2, 3, 2]


def test_test_data_are_compared_as_official_less_reserved():
    variants = {
        ("successive", "random"): ends_at(0.50, 0.52, official=0.48),  # 48 less 51
        ("successive", "fedcs"): ends_at(0.50),
        ("successive", "pow-d"): [],
    }
    random, fedcs, powd = compare_test_data(variants)
    assert random["difference"] == "-3.00"
    assert random["official test set"].startswith("48.00")
    assert random["clients' reserved data"].startswith("51.00")
    assert (fedcs["official test set"], fedcs["difference"]) == ("not tested", "-")
    assert powd["difference"] == "-"


def test_test_data_are_compared_by_seed():
    # Seed 1 has no official accuracy: 52 - 50 alone counts, not 52 less the mean of 50 and 60.
    tested, _ = ends_at(0.50, 0.60, official=0.52)
    _, untested = ends_at(0.50, 0.60)
    (row,) = compare_test_data({("successive", "random"): [tested, untested]})
    assert row["difference"] == "+2.00"


@pytest.mark.parametrize("rounds", [1, 3])
def test_runs_that_are_not_finished_have_no_difference(rounds):
    runs = [result(CONFIG, (0.5,) * rounds, rounds=4)]
    rows = compare_variants(
        CONFIG, {("successive", "e3cs-0"): ends_at(0.5), ("exact", "e3cs-0"): runs}
    )
    assert rows[1]["difference"] == "-"


def test_candidates_of_pow_d_are_compared_by_who_answers_and_who_is_asked():
    one, other = ends_at(0.5, 0.6)
    # Both runs ask 40 times. One gets 30 answers and asks everyone as often, the other gets 20
    # and asks one client alone.
    evenly = np.full(100, 40 / 100)
    alone = np.r_[40.0, np.zeros(99)]
    runs = [
        replace(one, valid=np.array([10, 20]), counts=evenly),
        replace(other, valid=np.array([10, 10]), counts=alone),
    ]
    rows = with_participation([{"variant": "a"}, {"variant": "b"}], {"a": runs, "b": []})
    assert rows[0] == {
        "variant": "a",
        "success ratio": "0.625 ± 0.177",
        "Jain": "0.505 ± 0.700",
    }
    assert rows[1] == {"variant": "b", "success ratio": "-", "Jain": "-"}


def test_participation_is_that_of_finished_runs():
    done, *_ = ends_at(0.5)
    done = replace(done, valid=np.array([10, 20]), counts=np.full(100, 40 / 100))
    early = result(CONFIG, (0.1,), rounds=2, valid=(20,), counts=np.r_[20, np.zeros(99)])
    rows = with_participation(
        [{"variant": "a"}, {"variant": "b"}], {"a": [done, early], "b": [early]}
    )
    assert (rows[0]["success ratio"], rows[0]["Jain"]) == ("0.750", "1.000")
    assert (rows[1]["success ratio"], rows[1]["Jain"]) == ("-", "-")


def test_runs_of_pow_d_differ_in_nothing_but_candidates():
    usual, *_, few, many = configs({"selectors": ("pow-d",), "rounds": 3})
    assert (usual.candidates, few.candidates, many.candidates) == (None, 30, 70)
    assert replace(few, candidates=None) == replace(many, candidates=None) == usual
    assert all(config.candidates is None for config in configs({"selectors": ("random",)}))
