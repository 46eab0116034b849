"""Numbers on the pages of results come from reports that commands print from records."""

import re
import sys

import pytest
from pages import ROOT

sys.path.append(str(ROOT / "scripts"))

import fill_pages
import list_runs
import looked_at

from fedcohort.lab.config import ComparisonConfig

NUMBER = re.compile(r"(?<![\w.,/-])\d[\d,]*(?:\.\d+)?(?:-\d\d-\d\d)?(?![\w/])")
CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!-- table:[^>]*-->", re.DOTALL)


def prose_numbers(text):
    """Return the numbers of a page outside of its filled tables and facts, code and links."""
    text = fill_pages.FACT.sub(" ", fill_pages.BLOCK.sub(" ", text))
    text = CODE.sub(" ", text)
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


# A figure: a number of another, a number with a unit of what is measured, or one with a point.
PART = re.compile(r"(?<![\w.,/-])\d[\d,]*(?:\.\d+)? of (?:the )?\d[\d,]*(?![\w-])")
UNITS = "µs|ms|s|seconds?|minutes?|hours?|%|points?|×|times|rounds|updates|client-steps(?:/s)?"
UNITS += "|bytes|[kMGT]B(?:/s)?|cases|runs|seeds"
FIGURE = re.compile(rf"(?<![\w.,/-])[+−-]?\d(?:[\d,]*\d)?(?:\.\d+)?\s?(?:{UNITS})(?![\w-])")
POINT = re.compile(r"(?<![\w.,/=-])[+−-]?\d+(?:\.\d+(?:e-?\d+)?|e-?\d+)(?!\w|\.\d)")
# Written by benchmarks/run.py; tests/bench/test_run.py writes it again.
PRINTED_WHOLE = ROOT / "docs/benchmarks-latest.md"
# Their tables are compared by tests/test_readme.py, cell by cell.
TABLES_COMPARED = [ROOT / "README.md"]
OTHERS = [page for page in fill_pages.QUOTING if page != PRINTED_WHOLE]
OTHERS += [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
OTHERS += sorted((ROOT / "examples").rglob("README.md"))


def page_name(page):
    return page.relative_to(ROOT).as_posix()


def unmarked_figures(text):
    """Return the figures of a page outside of filled tables and facts, code and links."""
    text = fill_pages.FACT.sub(" ", fill_pages.BLOCK.sub(" ", text))
    text = CODE.sub(" ", text)
    found = set()
    for kind in (PART, FIGURE, POINT):  # a part of one figure is no other
        found |= set(kind.findall(text))
        text = kind.sub(" ", text)
    return {" ".join(figure.split()) for figure in found}


@pytest.mark.parametrize("page", OTHERS, ids=page_name)
def test_every_measured_figure_of_a_page_comes_from_a_record(page):
    """A new figure gets a fact or a filled table; a setting goes to the page's list."""
    text = page.read_text(encoding="utf-8")
    if page in TABLES_COMPARED:
        text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    check_list(unmarked_figures(text), looked_at.NOT_MEASURED, page_name(page))


def check_list(found, lists, name, known=frozenset()):
    """Refuse numbers of a page that are neither known nor in its list, and a list with others."""
    listed = looked_at.numbers_of(lists, name)
    assert sorted(found - known - listed) == [], f"{name}: numbers without a record"
    assert sorted(listed - found) == [], f"{name}: numbers in tests/docs/looked_at.py alone"


def test_every_list_of_numbers_is_of_a_page():
    assert set(looked_at.NOT_MEASURED) <= {page_name(page) for page in OTHERS}
    assert set(looked_at.SETTINGS) <= {page_name(page) for page in fill_pages.PAGES}


def test_figures_are_seen_in_prose_and_tables_and_not_in_facts():
    text = (
        "It took 0.2 s, 12\npoints or 1,200 client-steps/s on 36 clients; `7 ms`, 3 servers.\n"
        "![It gets 13.7 of 20 updates, Random 9.5](a-1.5.svg), that is −0.18. Errors: 1e-11, E3.\n"
        "<!--fact:study.cases-->23 cases<!--/-->\n\n| a | 4.5 | 88 |\n"
        "<!-- table: a | b | c -->\n| 9.9 ms |\n<!-- end -->\n"
    )
    assert unmarked_figures(text) == {
        *("0.2 s", "12 points", "1,200 client-steps/s", "4.5"),
        *("13.7 of 20", "9.5", "−0.18", "1e-11"),
    }


def test_the_equal_step_of_compare_is_the_one_on_the_page():
    config = ComparisonConfig()
    share = config.cohort / config.clients * sum(config.rates) / len(config.rates)
    text = (ROOT / "docs/concepts/when-selection-matters.md").read_text(encoding="utf-8")
    assert f"{share:.3f} with the defaults of `compare`" in text
    assert re.findall(r"--server-rate (\S+) ", text) == [f"{share:.3f}"]


@pytest.mark.parametrize("page", [*fill_pages.PAGES, *fill_pages.QUOTING], ids=page_name)
def test_tables_of_a_page_are_those_of_the_reports(page):
    assert fill_pages.fill(page) == page.read_text(encoding="utf-8")


EXPLORATIONS = sorted((ROOT / "results/explorations").iterdir())


@pytest.mark.parametrize("record", EXPLORATIONS, ids=page_name)
def test_every_short_exploration_says_how_it_was_made_or_what_is_not_recorded(record):
    text = record.read_text(encoding="utf-8")
    assert re.search(r"python \w+/\w+\.py|fedcohort compare", text)
    if '"sha256"' in text:  # a fit, which follows from its data
        assert re.search(r'"sha256": "[0-9a-f]{64}"', text)
        return
    for what in (r"date\"?: \"?\d{4}-\d\d-\d\d", r"commit\"?: ", r"versions\"?: "):
        assert re.search(what, text, re.IGNORECASE), what


def test_the_list_of_records_is_that_of_the_records():
    assert list_runs.write() == list_runs.REPORT.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", fill_pages.PAGES, ids=page_name)
def test_prose_has_no_number_of_its_own(page):
    found = prose_numbers(page.read_text(encoding="utf-8"))
    check_list(found, looked_at.SETTINGS, page_name(page), known=shown_numbers(page))


def test_numbers_are_seen_in_prose_and_not_in_code_tables_or_links():
    text = (
        "It took 1,568 s, or 3.5 %, see `x 77` and [a](b/88.md).\n"
        "<!-- table: a | b | c -->\n| 99 |\n<!-- end -->\n```\n66\n```\non 2026-11-16, E3CS-0.8\n"
        "in <!--fact:study.cases-->23<!--/--> cases\n"
    )
    assert prose_numbers(text) == {"1,568", "3.5", "2026-11-16"}


def test_a_table_that_is_not_there_is_an_error(tmp_path):
    report = tmp_path / "report.md"
    report.write_text("# r\n\n## Summary\n\n| a | b |\n| --- | --- |\n| 1 | x |\n| 2 | y |\n")
    rows = fill_pages.read_table(report, "Summary")
    assert fill_pages.choose(rows, "b", "a=2") == [["b"], ["y"]]
    marked = [["@45"], ["121 (−10)*"], ["never (1 of 3)"]]
    assert fill_pages.choose(marked, "@45=@45, round", "") == [["@45, round"], *marked[1:]]
    for title, columns, condition in (("None", "all", ""), ("Summary", "c", "")):
        with pytest.raises(ValueError, match="must"):
            fill_pages.choose(fill_pages.read_table(report, title), columns, condition)
    with pytest.raises(ValueError, match="must leave rows"):
        fill_pages.choose(rows, "all", "a=3")
