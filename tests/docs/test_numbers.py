"""Numbers on the pages of results come from reports that commands print from records."""

import re
import sys

import pytest
from pages import ROOT

sys.path.append(str(ROOT / "scripts"))

import fill_pages
import list_runs

# Settings, definitions and arithmetic, which no record could show. Everything else must be a
# number of a table that is copied from a report, or stand in a report that the page links to.
SETTINGS = """
0 1 2 3 4 5 6 7 8 9 10 12 20 25 26 28 30 40 45 50 55 60 65 75 85 90 95 100 400 450 500 625 800
2,500 5,000 10,000 50,000 0.5 0.8 0.9 0.1 0.3 0.6 0.095 0.18 0.475 47.5 1,600 1,024 2026-11-16
"""
NUMBER = re.compile(r"(?<![\w.,/-])\d[\d,]*(?:\.\d+)?(?:-\d\d-\d\d)?(?![\w/])")
CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!-- table:[^>]*-->", re.DOTALL)


def prose_numbers(text):
    """Return the numbers of a page outside of its filled tables, code and links."""
    text = CODE.sub(" ", fill_pages.BLOCK.sub(" ", text))
    return {number.rstrip(",") for number in NUMBER.findall(text)}


def shown_numbers(page):
    """Return the numbers of a page's filled tables and of the reports that it links to."""
    text = page.read_text(encoding="utf-8")
    known = set()
    for block in fill_pages.BLOCK.finditer(text):
        known |= set(NUMBER.findall(block["rows"]))
    for target in re.findall(r"\]\(([^)#\s]+\.md)\)", text):
        report = page.parent / target
        if report not in fill_pages.PAGES and report.is_relative_to(ROOT / "results"):
            known |= set(NUMBER.findall(report.read_text(encoding="utf-8")))
    return known


@pytest.mark.parametrize(
    "page", [*fill_pages.PAGES, *fill_pages.QUOTING], ids=lambda page: page.name
)
def test_tables_of_a_page_are_those_of_the_reports(page):
    assert fill_pages.fill(page) == page.read_text(encoding="utf-8")


def test_the_list_of_records_is_that_of_the_records():
    assert list_runs.write() == list_runs.REPORT.read_text(encoding="utf-8")


STUDY = ROOT / "results/what-helps.md"  # its prose counts cases of the study's tables


@pytest.mark.parametrize(
    "page", [page for page in fill_pages.PAGES if page != STUDY], ids=lambda page: page.name
)
def test_prose_has_no_number_of_its_own(page):
    known = set(SETTINGS.split()) | shown_numbers(page)
    assert sorted(prose_numbers(page.read_text(encoding="utf-8")) - known) == []


def test_numbers_are_seen_in_prose_and_not_in_code_tables_or_links():
    text = (
        "It took 1,568 s, or 3.5 %, see `x 77` and [a](b/88.md).\n"
        "<!-- table: a | b | c -->\n| 99 |\n<!-- end -->\n```\n66\n```\non 2026-11-16, E3CS-0.8\n"
    )
    assert prose_numbers(text) == {"1,568", "3.5", "2026-11-16"}


def test_a_table_that_is_not_there_is_an_error(tmp_path):
    report = tmp_path / "report.md"
    report.write_text("# r\n\n## Summary\n\n| a | b |\n| --- | --- |\n| 1 | x |\n| 2 | y |\n")
    rows = fill_pages.read_table(report, "Summary")
    assert fill_pages.choose(rows, "b", "a=2") == [["b"], ["y"]]
    marked = [["a"], ["121 (−10)*"], ["65.00?"]]
    assert fill_pages.choose(marked, "a=paper", "") == [["paper"], ["121"], ["65.00"]]
    assert fill_pages.choose(marked, "a", "") == marked
    for title, columns, condition in (("None", "all", ""), ("Summary", "c", "")):
        with pytest.raises(ValueError, match="must"):
            fill_pages.choose(fill_pages.read_table(report, title), columns, condition)
    with pytest.raises(ValueError, match="must leave rows"):
        fill_pages.choose(rows, "all", "a=3")
