import io

import pytest
from rich.console import Console

from fedcohort.reports.tables import as_tables
from fedcohort.reports.words import format_value

ROWS = [
    {
        "the case": f"case {case}, [bold]",
        **{f"column {place}": 1234567.0 * case for place in range(9)},
    }
    for case in (1, 2)
]


def test_a_table_has_the_keys_as_header_numbers_to_the_right_and_no_rows_no_columns():
    (table,) = as_tables(
        [{"case": "a", "eta": 0.5, "asked": "1/2/3"}, {"case": "b", "eta": 2.0, "asked": "4/5/6"}],
        width=80,
    )
    assert [(str(column.header), column.justify) for column in table.columns] == [
        ("case", "left"),
        ("eta", "right"),
        ("asked", "right"),
    ]
    assert table.row_count == 2
    assert [len(table.columns) for table in as_tables([], width=80)] == [0]


def test_the_parts_of_a_table_repeat_as_many_columns_as_tell_the_rows_apart():
    rows = [
        {"scheme": "E3CS-0", "variant": word, **{f"column {place}": 1e6 for place in range(9)}}
        for word in ("one", "two")
    ]
    parts = as_tables(rows, 60)
    assert len(parts) > 1
    assert [[str(column.header) for column in part.columns[:2]] for part in parts] == [
        ["scheme", "variant"]
    ] * len(parts)
    alike = as_tables([rows[0], rows[0]], 60)
    assert all(str(part.columns[0].header) == "scheme" for part in alike)


@pytest.mark.parametrize("width", [33, 60, 80, 200])
def test_a_table_that_is_too_wide_is_cut_between_columns_and_nothing_of_it_is_lost(width):
    console = Console(width=width, record=True, file=io.StringIO())
    for table in as_tables(ROWS, width, "[a title]"):
        console.print(table)
    text = console.export_text()
    assert text.count("[a title]") == 1
    assert max(len(line) for line in text.splitlines()) <= width
    for row in ROWS:
        for value in list(row.values())[1:]:
            assert text.count(format_value(value)) == 9
    assert text.count("case 1, [bold]") == text.count("case 2, [bold]") >= 1
    assert (text.count("case 1, [bold]") == 1) == (width == 200)


@pytest.mark.parametrize(
    ("values", "side"),
    [(("never", "no", 3.0), "left"), (("-", 1.0, 2.0), "right"), (("a", 1.0), "right")],
)
def test_a_column_stands_to_the_left_if_most_of_its_values_are_words(values, side):
    (table,) = as_tables([{"value": value} for value in values], width=80)
    assert table.columns[0].justify == side
