"""The order of a page, what is folded, its size, its words, and its highlighted lines."""

import re
from dataclasses import replace

import numpy as np
import pytest
from page_text import Tags, csv_of
from run_folders import SMALL, journal_entry, write_comparison, write_journal

from fedcohort.advice import Description, Options, advise, play_description
from fedcohort.advice.page import advice_findings
from fedcohort.cli.pages import load_findings
from fedcohort.reports.glossary import TERMS, find_terms
from fedcohort.reports.html import page as pages
from fedcohort.reports.html.elements import rows_table
from fedcohort.reports.html.page import page
from fedcohort.reports.html.terms import Marker

SCHEMES = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "random", "pow-d")
BLOCKS = ("p", "caption", "figcaption", "li")


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seven")
    write_comparison(folder, replace(SMALL, selectors=SCHEMES))
    return page(load_findings(folder))


@pytest.fixture(scope="module")
def flower(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flower")
    rounds = []
    for number in range(1, 6):
        outcomes = {"a": "arrived", "b": "stopped", "<b>c</b>": "lost"}
        rounds.append(journal_entry(number, outcomes, {"a": 1.0, "b": 0.6, "<b>c</b>": 0.4}))
    write_journal(folder, rounds)
    return page(load_findings(folder))


@pytest.fixture(scope="module")
def advice():
    log = play_description(Description(12, 4, (0.2, 0.9), deadline=60.0, seconds=20.0, rounds=60))
    return page(advice_findings(advise(log, Options(selectors=("e3cs-0.5",), rounds=40))))


@pytest.fixture(params=["comparison", "flower", "advice"])
def text(request):
    return request.getfixturevalue(request.param)


def test_the_first_words_of_the_page_below_its_title_are_one_sentence(text):
    main = text[text.index("<main>") :]
    first = re.search(r"<p[^>]*>", main).group()
    assert first == '<p class="answer">'
    answer = main[main.index(first) :].split("</p>")[0]
    words = re.sub(r'<span class="meaning".*?</span>', "", answer)
    words = re.sub(r"<[^>]+>", "", words)
    assert words.endswith(".")
    assert ". " not in words
    assert re.search(r"\d", words)


def test_picture_table_and_who_is_left_out_follow_and_the_rest_is_folded(text):
    places = [text.index(part) for part in ('class="answer"', "<figure", 'id="ranking"')]
    places += [text.index('id="who"'), text.index('id="more"')]
    assert places == sorted(places)
    first, rest = text.split('id="more"')
    assert "<details" not in first
    assert rest.count("<details id=") >= 4
    assert "<details open" not in text
    outside = re.sub(r"<details.*?</details>", "", rest, flags=re.DOTALL)
    assert "<figure" not in outside
    assert "<table" not in outside


def test_no_page_has_more_than_three_megabytes_or_asks_for_anything_from_elsewhere(text):
    assert len(text.encode()) <= 3e6
    for tag, given in Tags(text).found:
        assert tag not in ("iframe", "object", "embed", "base", "img")
        for name in ("src", "href", "action", "xlink:href"):
            assert (given.get(name) or "#").startswith(("#", "data:"))
    assert "url(" not in text.split("</style>")[0]
    assert "http" not in text


def test_a_page_of_a_large_comparison_stays_below_three_megabytes(tmp_path):
    config = replace(
        SMALL,
        selectors=(*SCHEMES, "age", "f3ast", "cs-ucb", "optimal"),
        aggregations=("paper", "normalised", "inverse", "mifa"),
        partitions=("iid", "primary-label", "dirichlet"),
        clients=200,
        cohort=20,
        rounds=400,
        seeds=2,
    )
    write_comparison(tmp_path, config)
    text = page(load_findings(tmp_path))
    assert len(csv_of(text)["accuracy-rounds"]) > 11 * 4 * 3 * 100
    assert len(text.encode()) <= 3e6


def test_a_page_that_would_be_too_large_draws_fewer_kinds_of_run(tmp_path, monkeypatch):
    partitions = ("iid", "primary-label", "dirichlet", "shards", "independent-label")
    write_comparison(tmp_path, replace(SMALL, partitions=partitions))
    findings = load_findings(tmp_path)
    whole = page(findings)
    assert "kinds of run are drawn" not in whole
    monkeypatch.setattr(pages, "MAX_BYTES", len(whole.encode()) - 1)
    text = page(findings)
    assert len(text) < len(whole)
    assert "3 of 5 kinds of run are drawn, the hardest first." in text
    menu = text[text.index('<select id="kind">') :].split("</select>")[0]
    assert menu.count("<option>") == 3
    assert {row[0] for row in csv_of(text)["cep"][1:]} == set(list(findings.kinds)[:3])
    assert "All tables (5)" in text


def test_every_word_of_the_glossary_has_its_definition_where_it_first_stands(text):
    blocks = re.findall(rf"<({'|'.join(BLOCKS)})(?: [^>]*)?>(.*?)</\1>", text, re.DOTALL)
    checked = 0
    for tag, inside in blocks:
        if "panel-title" in inside or "<label" in inside or "swatch" in inside:
            continue
        marked = re.findall(r'aria-describedby="([^"]+)"', inside)
        for name in marked:
            assert f'id="{name}"' in inside
        plain = re.sub(r'<span class="meaning".*?</span>', "", inside)
        unmarked = re.sub(r'<span class="term".*?</span>', "§", plain)
        words = {term.word for _, _, term in find_terms(_text(unmarked))}
        defined = set(re.findall(r'id="term-\d+">(.*?)</span>', inside))
        meanings = {term.word: term.meaning for term in TERMS}
        missing = [word for word in words if _escaped(meanings[word]) not in defined]
        if tag != "p" or defined or "readout" not in inside:
            assert missing == [] or _is_name(inside), inside
        checked += len(marked)
    assert checked > 3


def _text(html):
    return re.sub(r"<[^>]+>", "", html)


def _escaped(text):
    return text.replace("'", "&#x27;")


def _is_name(inside):
    """Return whether a block is a name of a kind of run, which is no prose."""
    return "<" not in inside and inside.count(" ") < 6


def test_a_term_is_marked_once_in_a_block_can_be_focused_and_keeps_foreign_markup_harmless():
    html = Marker().mark("A cohort <b>and</b> a cohort with a quota.")
    assert html.count('class="term"') == 2
    assert html.count('tabindex="0"') == 2
    assert "&lt;b&gt;" in html
    assert 'role="tooltip"' in html


def test_definitions_are_sentences_and_no_word_is_defined_twice():
    assert len({term.word for term in TERMS}) == len(TERMS)
    for term in TERMS:
        assert term.meaning.endswith(".")
        assert find_terms(term.word)[0][2] is term


def test_at_most_four_series_of_a_drawing_are_highlighted_and_have_different_colours(text):
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert drawings
    for drawing in drawings:
        named = re.findall(r'class="series (h\d)" data-name="([^"]*)"', drawing)
        assert len(named) <= 4
        assert len({slot for slot, _ in named}) == len(named)


def test_a_crowded_drawing_has_grey_lines_and_labels_all_of_its_lines(comparison):
    drawn = comparison[comparison.index('id="accuracy-rounds"') :].split("</svg>")[0]
    assert len(re.findall(r'class="series h\d', drawn)) in (2, 3, 4)
    assert drawn.count('class="series other"') >= 3
    assert drawn.count('class="label"') == 7
    for name in SCHEMES:
        assert f">{name}</text>" in drawn


def test_a_flower_page_says_what_arrived_what_was_lost_and_who_never_got_through(flower):
    answer = _text(flower[flower.index('class="answer">') + 15 :].split("</p>")[0])
    assert answer.startswith("33\u00a0% of 15 answers arrived; 5 of the 10 others ")
    assert "look after clients &lt;b&gt;c&lt;/b&gt; and b, who never got an update" in answer
    rows = load_rows(flower)
    assert [row[0] for row in rows] == ["&lt;b&gt;c&lt;/b&gt;", "b", "a"]


def load_rows(text):
    table = text[text.index('id="ranking"') :].split("</tbody>")[0].split("<tbody>")[1]
    rows = []
    for row in table.split("<tr")[1:]:
        cells = re.findall(r"<(?:th|td)[^>]*>(.*?)</(?:th|td)>", row)
        signs = r'<span class="(?:mark|unseen|tag)".*?</span>'
        rows.append([_text(re.sub(signs, "", cell)) for cell in cells])
    return rows


def test_an_advice_page_has_the_curve_of_deadlines_the_selectors_and_settings(advice):
    tables = csv_of(advice)
    assert "deadlines" in tables
    seconds = np.array([float(row[2]) for row in tables["deadlines"][1:]])
    assert (seconds > 0).all()
    assert {row[0] for row in load_rows(advice)} == {"random", "e3cs-0.5"}
    paste = advice[advice.index('id="paste"') :]
    assert "[0.2" not in paste.split("<pre")[0]
    assert "CohortStrategy(" in paste
    assert "selectors = " in paste


def test_schemes_of_the_table_are_on_the_list_of_words(comparison):
    words = comparison[comparison.index('id="words"') :]
    for name in ("e3cs-0", "e3cs-0.5", "e3cs-inc", "fedcs", "pow-d", "random"):
        assert f"<dt>{name}</dt>" in words


def test_names_of_schemes_have_their_own_definitions():
    found = find_terms("e3cs-0, e3cs-0.8 and random, but drawn at random")
    assert [term.word for _, _, term in found] == ["e3cs-0", "e3cs-0.5", "random"]


def test_names_with_hyphens_are_not_broken_and_stay_harmless():
    rows = [{"scheme": "e3cs-0.5, paper rule"}, {"scheme": "<b>-x"}]
    html = rows_table("Schemes", rows, Marker())
    assert '<span class="whole">e3cs-0.5,</span> paper rule</th>' in html
    assert '<span class="whole">&lt;b&gt;-x</span></th>' in html


def test_a_client_with_a_number_is_not_broken_in_a_sentence():
    html = Marker().mark("Came: edge-23. <i>-1</i> & two-sided.")
    assert html == (
        'Came: <span class="whole">edge-23</span>. &lt;i&gt;-1&lt;/i&gt; &amp; two-sided.'
    )
