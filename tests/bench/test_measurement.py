import re

from fedcohort.bench.measurement import describe_machine, make_row


def test_a_row_holds_the_median_and_the_quartiles_in_its_unit():
    row = make_row("one round", "ms", 1e3, [0.004, 0.001, 0.002, 0.003, 0.005])
    assert row == {
        "what": "one round",
        "median": 3.0,
        "Q1": 2.0,
        "Q3": 4.0,
        "unit": "ms",
        "n": 5,
    }


def test_the_machine_is_described_with_cores_and_versions():
    assert re.search(r"\d+ cores, Python 3\.\d+\.\d+, NumPy \d.*, commit ", describe_machine())
