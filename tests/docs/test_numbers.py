"""Numbers on the pages of results come from reports that commands print from records."""

import re
import sys

import pytest
from pages import ROOT

sys.path.append(str(ROOT / "scripts"))

import fill_pages
import list_runs

from fedcohort.lab.config import ComparisonConfig

# Settings, definitions and arithmetic, which no record could show. Everything else must be a
# number of a table that is copied from a report, or stand in a report that the page links to.
SETTINGS = """
0 1 2 3 4 5 6 7 8 9 10 12 20 25 26 28 30 40 45 49 50 55 60 65 75 85 90 95 100 400 450 500 625 800
2,500 5,000 10,000 40,000 50,000 0.02 16 120 0.5 0.8 0.9 0.1 0.3 0.6 0.095 0.18 0.475
47.5 1,600 1,024 2026-11-15 2026-11-16 2026-11-18 2026-11-19 700
"""
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


# A figure: a number with a unit of what is measured, or a number with a point in a table.
UNITS = "µs|ms|s|seconds?|minutes?|hours?|%|points?|×|times|rounds|updates|client-steps(?:/s)?"
UNITS += "|bytes|[kMGT]B(?:/s)?|cases|runs"
FIGURE = re.compile(rf"(?<![\w.,/-])[+−-]?\d(?:[\d,]*\d)?(?:\.\d+)?\s?(?:{UNITS})(?![\w-])")
POINT = re.compile(r"(?<![\w.,/=-])[+−-]?\d+\.\d+(?![\w.])")
# Settings, limits, definitions and invented examples, each looked at. No measurement stands here.
NOT_MEASURED = {
    # How often replies are looked for, and what was trained.
    "docs/benchmarks.md": "0.02 s, 0.1 s, 0.25 s, 28 runs, 3 s, 300 rounds",
    "docs/concepts/participation-and-fairness.md": "0.5",
    "docs/concepts/samplers.md": "1,000 times, 600 rounds",
    "docs/concepts/when-selection-matters.md": "45 %",
    "docs/glossary.md": "10 %, 30 %, 60 %, 90 %, 62 %, 81 %, 19 points, 13 updates, 500 rounds, "
    "6,657 updates, 40 seconds, 60 seconds, 70 seconds, 80 %, 1,000 rounds, 6 runs",
    "docs/how-to/advise.md": (
        "0 s, 0.4, 0.9, 1 %, 1,000 rounds, 3 %, 5 %, 5 rounds, 500 rounds, 95 %"
    ),
    "docs/how-to/aggregation.md": "4 MB, 400 MB",
    "docs/how-to/flower.md": "1 MB, 1 kB, 2 rounds, 2 s, 5 s",
    "docs/how-to/operate.md": "0.9, 1.25, 10 s, 200 times, 5 s, 60 s, 600 s",
    "docs/how-to/replay.md": "20 rounds, 95 %",
    "docs/how-to/report.md": "0.8, 3 MB, 400 points, 5 %, 95 %",  # limits, levels of a test
    "docs/how-to/resume.md": "20 rounds",
    "docs/how-to/selector.md": "1.3, 10 %, 30 %, 60 %, 90 %",
    "docs/how-to/traces.md": "30 seconds",
    "docs/how-to/world.md": "9 times",
    "docs/how-to/worlds.md": "0.1, 0.4, 0.5, 0.8, 0.9, 30 rounds",
    "docs/index.md": "20 updates, 600 rounds, 90 %",
    "docs/paper/code.md": "0.1, 0.9",
    "docs/tutorial.md": "47.5 %, 60 seconds",
}
# Their tests print them again: tests/test_readme.py and tests/bench/test_run.py.
PRINTED_WHOLE = [ROOT / "README.md", ROOT / "docs/benchmarks-latest.md"]


def unmarked_figures(text):
    """Return the figures of a page outside of filled tables and facts, code and links."""
    text = fill_pages.FACT.sub(" ", fill_pages.BLOCK.sub(" ", text))
    text = CODE.sub(" ", text)
    found = set(FIGURE.findall(text))
    for line in text.splitlines():
        if line.startswith("|"):
            found |= set(POINT.findall(line))
    return {" ".join(figure.split()) for figure in found}


@pytest.mark.parametrize(
    "page",
    [page for page in fill_pages.QUOTING if page not in PRINTED_WHOLE],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_measured_figure_of_a_page_comes_from_a_record(page):
    """A new figure gets a fact or a filled table; a setting goes to the list above."""
    reviewed = NOT_MEASURED.get(str(page.relative_to(ROOT)), "").split(", ")
    found = unmarked_figures(page.read_text(encoding="utf-8"))
    assert sorted(found - set(reviewed)) == []


def test_figures_are_seen_in_prose_and_tables_and_not_in_facts():
    text = (
        "It took 0.2 s, 12\npoints or 1,200 client-steps/s on 36 clients; `7 ms`, 3 servers.\n"
        "<!--fact:study.cases-->23 cases<!--/-->\n\n| a | 4.5 | 88 |\n"
        "<!-- table: a | b | c -->\n| 9.9 ms |\n<!-- end -->\n"
    )
    assert unmarked_figures(text) == {"0.2 s", "12 points", "1,200 client-steps/s", "4.5"}


def test_the_equal_step_of_compare_is_the_one_on_the_page():
    config = ComparisonConfig()
    share = config.cohort / config.clients * sum(config.rates) / len(config.rates)
    text = (ROOT / "docs/concepts/when-selection-matters.md").read_text(encoding="utf-8")
    assert f"{share:.3f} with the defaults of `compare`" in text
    assert re.findall(r"--server-rate (\S+) ", text) == [f"{share:.3f}"]


@pytest.mark.parametrize(
    "page", [*fill_pages.PAGES, *fill_pages.QUOTING], ids=lambda page: page.name
)
def test_tables_of_a_page_are_those_of_the_reports(page):
    assert fill_pages.fill(page) == page.read_text(encoding="utf-8")


def test_the_list_of_records_is_that_of_the_records():
    assert list_runs.write() == list_runs.REPORT.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", fill_pages.PAGES, ids=lambda page: page.name)
def test_prose_has_no_number_of_its_own(page):
    known = set(SETTINGS.split()) | shown_numbers(page)
    assert sorted(prose_numbers(page.read_text(encoding="utf-8")) - known) == []


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
