"""Rules of writing: short lines, explained words, links that lead somewhere, a short README."""

import re

import pytest
from pages import DOCS, PAGES, ROOT

LONGEST_LINE = 120
FACT_MARK = re.compile(r"<!--(?:fact:[\w.-]+|/)-->")  # no part of what a reader sees
TERMS = re.compile(
    r"\b(cohort|world|success ratio|CEP|quota|inclusion probabilit|deadline round|E3CS-inc)",
    re.IGNORECASE,
)
NUMBER = re.compile(r"(?<![\w.,-])[-−]?\d[\d,]*(?:\.\d+)?")


def page_name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_no_line_of_prose_is_too_long(page):
    too_long = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        is_table_row = line.startswith(("|", "<!-- table: "))
        if len(FACT_MARK.sub("", line)) > LONGEST_LINE and not is_table_row:
            too_long.append(number)
    assert too_long == []


@pytest.mark.parametrize("page", [*DOCS, ROOT / "README.md"], ids=page_name)
def test_a_page_that_uses_a_word_of_the_glossary_links_to_it(page):
    text = page.read_text(encoding="utf-8")
    is_glossary = page.name == "glossary.md"
    is_include = "<!-- include:" in text.splitlines()[0] or "hide: [toc]" in text
    if TERMS.search(text) and not is_glossary and not is_include:
        assert "glossary.md" in text


def test_the_glossary_explains_seventeen_words_with_an_example_each():
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    entries = text.split("\n## ")[1:]
    assert len(entries) == 17
    assert [entry.splitlines()[0] for entry in entries if "*Example:*" not in entry] == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_to_files_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text)
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_to_headings_lead_to_headings_of_the_repositorys_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    missing = []
    for target, anchor in re.findall(r"\]\(([^)#\s]*\.md|)#([^)\s]+)\)", text):
        if "://" not in target and anchor not in anchors(page.parent / target if target else page):
            missing.append(f"{target}#{anchor}")
    assert missing == []


def anchors(page):
    """Return the names that a link to a page may end with."""
    text = page.read_text(encoding="utf-8")
    found = set(re.findall(r'<a id="([^"]+)">', text))
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(words.strip().replace(" ", "-"))
    return found


def test_the_readme_is_read_in_a_minute_or_two():
    words = (ROOT / "README.md").read_text(encoding="utf-8").split()
    assert 600 <= len(words) <= 900


def test_the_readme_has_at_most_three_tables_with_one_number_in_a_cell():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert 1 <= len(tables) <= 3

    for row in "".join(tables).splitlines():
        for cell in row.strip("|").split("|")[1:]:
            value = re.sub(r"±.*", "", cell)
            assert len(NUMBER.findall(value)) <= 1, row
