from math import inf

import numpy as np
import pytest
from made import result

from fedcohort.paper.cells import Cell, collect_cells
from fedcohort.paper.setting import task_config
from fedcohort.paper.tables import (
    long_rows,
    make_tables,
    our_cell,
    our_numbers,
    our_text,
    paper_cell,
    paper_text,
)


def test_fewer_rounds_than_the_papers_say_nothing_of_what_it_reached_later():
    assert Cell((inf, inf), 700.0, rounds_played=600).outside is None
    assert Cell((inf, inf), inf, rounds_played=600).outside is None
    assert Cell((inf, inf), 500.0, rounds_played=600).outside is True
    assert (
        our_text(Cell((inf, inf), 700.0, rounds_played=600), [result()] * 2, 0.45) == "not in 600"
    )
    short = task_config("cifar10", {"rounds": 9})
    assert paper_cell(short, ("random", "iid", "paper", 0.0), [], 0.45).rounds_played == 9


@pytest.mark.parametrize(
    ("seen", "paper", "quantity", "left", "right"),
    [
        ((100.0, 110.0, 120.0), 160.0, 0.45, "110 ± 10", "160 (−50)*"),
        ((100.0, 110.0, 120.0, inf), inf, 0.45, "110 ± 10 (3 of 4)", "never"),
        ((inf, inf), inf, 0.45, "never", "never"),
        ((0.70, 0.72), 0.7146, "final", "71.00 ± 1.41", "71.46 (−0.46)"),
        ((0.70,), 0.69, "final", "70.00", "69.00 (+1.00)?"),
        ((120.0, 122.0), 121.0, 0.45, "121 ± 1", "121 (+0)"),
    ],
)
def test_cells_read_as_in_a_table(seen, paper, quantity, left, right):
    cell, runs = Cell(seen, paper), [result()] * len(seen)
    assert our_text(cell, runs, quantity) == left
    assert paper_text(cell, quantity) == right


def test_what_was_not_run_or_has_not_come_that_far_is_said():
    assert our_text(Cell(()), [], 0.45) == "not run"
    assert our_text(Cell(()), [result(accuracy=(0.1,) * 7, rounds=9)], 0.45) == "not by 7"
    assert our_text(Cell(()), [result(accuracy=(0.1,) * 7, rounds=9)], "final") == "unfinished"


def test_of_fewer_rounds_than_the_papers_every_table_says_so():
    short = result(accuracy=(0.1,) * 800)
    assert our_text(our_cell([short], 0.45), [short], 0.45) == "not in 800"
    whole = result(accuracy=(0.1,) * 2500)
    assert our_text(our_cell([whole], 0.45), [whole], 0.45) == "never"


def test_numbers_tell_never_from_not_yet():
    runs = {
        "never": [result(accuracy=(0.1,) * 9)],
        "not yet": [result(accuracy=(0.1,) * 7, rounds=9)],
    }
    counts = {}
    for word, cell_runs in runs.items():
        row = our_numbers(our_cell(cell_runs, 0.45), cell_runs, 0.45)
        counts[word] = (row["runs"], row["pending"], row["reached"])
    assert counts == {"never": (1, 0, 0), "not yet": (1, 1, 0)}


def test_all_rows_have_the_same_columns_though_the_paper_has_values_for_some_schemes_alone():
    config = task_config("cifar10", {"rounds": 800})  # E3CS-inc cannot be compared then
    rows = {
        row["scheme"]: row
        for row in make_tables(config, collect_cells([], [config])[0][0])["iid, FedAvg"]
    }
    assert len({tuple(row) for row in rows.values()}) == 1
    assert (rows["E3CS-inc"]["paper @45"], rows["Random"]["paper @45"]) == ("-", "121")


def test_one_seed_of_several_that_got_there_has_no_spread():
    assert paper_text(Cell((100.0, inf, inf), 90.0), 0.45) == "90 (+10)?"


def test_runs_that_have_not_come_that_far_are_counted_and_leave_the_spread_unknown():
    config = task_config("cifar10", {})
    key = ("random", "iid", "paper", 0.0)
    runs = [
        result(config, curve, rounds=3, first_seed=seed)
        for seed, curve in enumerate(((0.1, 0.5, 0.5), (0.5,) * 3, (0.1, 0.1)))
    ]
    assert our_text(paper_cell(config, key, runs, 0.45), runs, 0.45) == "2 ± 1 (2 of 3)"
    assert paper_cell(config, key, runs, 0.45).outside is None
    assert paper_text(paper_cell(config, key, runs, 0.45), 0.45) == "121 (−119)?"  # less 2
    assert our_text(paper_cell(config, key, runs, 0.9), runs, 0.9) == "never (2 of 3)"
    assert (
        our_text(paper_cell(config, key, runs, "final"), runs, "final") == "50.00 ± 0.00 (2 of 3)"
    )
    assert paper_text(paper_cell(config, key, runs[2:], "final"), "final") == "71.46"


def test_published_values_stand_only_where_they_can_be_compared():
    config = task_config("cifar10", {})
    key = ("random", "iid", "paper", 0.0)
    assert paper_cell(config, key, [], 0.45).paper == 121
    assert paper_cell(config, key, [], "final").paper == pytest.approx(0.7146)
    assert paper_cell(task_config("cifar10", {"rounds": 9}), key, [], 0.45).paper == 121
    assert paper_cell(task_config("cifar10", {"rounds": 9}), key, [], "final").paper is None
    assert paper_cell(task_config("cifar10", {}, cohort=10), key, [], 0.45).paper is None
    assert paper_cell(task_config("cifar10", {"dataset": "digits"}), key, [], 0.45).paper is None
    assert paper_cell(config, ("random", "iid", "normalised", 0.0), [], 0.45).paper is None
    inc, never = ("e3cs-inc", "iid", "paper", 0.0), ("fedcs", "iid", "paper", 0.0)
    assert paper_cell(config, inc, [], 0.45).paper == 89
    assert (
        paper_cell(task_config("cifar10", {"rounds": 900}), inc, [], 0.45).paper is None
    )  # it turns at a quarter of the rounds
    assert paper_cell(config, never, [], 0.65).paper == inf
    assert (
        paper_cell(task_config("cifar10", {"rounds": 2600}), never, [], 0.65).paper is None
    )  # who knows what came of it later


def test_the_table_of_two_seeds_is_the_one_worked_by_hand():
    config = task_config("cifar10", {})
    curves = np.zeros((2, 2500))
    for row, first in enumerate((101, 121)):
        curves[row, first - 1 :] = 0.5
    runs = [result(config, curve, first_seed=seed) for seed, curve in enumerate(curves)]
    ((found,), _) = collect_cells(runs, [config])
    tables = make_tables(config, found)
    assert list(tables) == ["iid, FedAvg", "iid, FedProx", "non-iid, FedAvg", "non-iid, FedProx"]
    row = next(row for row in tables["iid, FedAvg"] if row["scheme"] == "Random")
    assert row == {
        "scheme": "Random",
        "runs": 2,
        "@45": "111 ± 14",
        "paper @45": "121 (−10)",
        "@55": "never",
        "paper @55": "251*",
        "@65": "never",
        "paper @65": "515*",
        "final": "50.00 ± 0.00",
        "paper final": "71.46 (−21.46)*",
    }
    assert tables["non-iid, FedProx"][0]["@45"] == "not run"
    numbers = next(
        r
        for r in long_rows(config, found)
        if (r["selector"], r["partition"], r["mu"]) == ("random", "iid", 0.0)
    )
    assert (numbers["mean"], numbers["paper"], numbers["difference"], numbers["runs"]) == (
        111,
        121,
        -10,
        2,
    )


def test_the_columns_of_a_table_do_not_depend_on_its_first_scheme():
    config = task_config("cifar10", {"rounds": 800})
    cells = collect_cells([], [config])[0][0]
    inc_first = dict(sorted(cells.items(), key=lambda item: item[0][0] != "e3cs-inc"))
    for rows in make_tables(config, inc_first).values():
        assert rows[0]["scheme"] == "E3CS-inc"
        assert all("paper @45" in row for row in rows)
