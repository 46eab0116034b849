from math import inf

import pytest

from fedcohort.paper.published import table


@pytest.mark.parametrize(
    ("dataset", "key", "cell"),
    [  # read in the paper's two tables
        ("cifar10", ("e3cs-0.5", "iid", 0.0), {0.45: 106, 0.55: 198, 0.65: 468, "final": 0.6948}),
        (
            "cifar10",
            ("pow-d", "primary-label", 0.5),
            {0.45: 736, 0.55: 1928, 0.65: inf, "final": 0.5848},
        ),
        (
            "emnist-letters",
            ("fedcs", "primary-label", 0.0),
            {0.65: 39, 0.75: 69, 0.85: inf, "final": 0.8424},
        ),
        (
            "emnist-letters",
            ("random", "iid", 0.5),
            {0.65: 29, 0.75: 57, 0.85: 157, "final": 0.8894},
        ),
    ],
)
def test_cells_are_those_of_the_paper(dataset, key, cell):
    assert table(dataset)[key] == pytest.approx(cell)


@pytest.mark.parametrize(("dataset", "never"), [("cifar10", 4 + 10), ("emnist-letters", 5)])
def test_every_cell_is_there_and_as_many_are_never_as_the_paper_prints_nan(dataset, never):
    cells = table(dataset)
    assert len(cells) == 7 * 2 * 2
    assert all(len(cell) == 4 for cell in cells.values())
    assert sum(value == inf for cell in cells.values() for value in cell.values()) == never


def test_other_data_have_no_published_values():
    assert table("digits") == {}
