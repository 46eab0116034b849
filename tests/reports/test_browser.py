"""The report in a real browser, offline: what a reader sees and does."""

import csv
import io
import os
import shutil
from itertools import pairwise

import numpy as np
import pytest
from run_folders import SMALL, journal_entry, write_comparison, write_journal

from fedcohort.cli.pages import write_report
from fedcohort.lab.runs import run_keys

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FIGURES = {
    "accuracy-rounds",
    "accuracy-time",
    "left-out",
    "success",
    "cep",
    "selections",
    "probabilities",
    "owners",
    "wasted",
    "fairness",
}


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM and not os.environ.get("CI"):
        pytest.skip(
            "NO BROWSER: the report is not tested in one; run scripts/install-test-browser as root"
        )
    assert CHROMIUM, "in CI the browser must be there"
    from playwright.sync_api import sync_playwright

    with (
        sync_playwright() as play,
        play.chromium.launch(executable_path=CHROMIUM, args=FLAGS) as browser,
    ):
        yield browser


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    records = write_comparison(folder)
    write_report(folder)
    return folder, records


@pytest.fixture(scope="module")
def opened(browser, run):
    """Return a function that opens the report. At the end, nothing was requested or logged."""
    requests = []
    messages = []
    contexts = []

    def look(folder=run[0], **how):
        contexts.append(browser.new_context(offline=True, **how))
        page = contexts[-1].new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(f"file://{folder / 'report.html'}")
        page.wait_for_selector("html[data-drawn=yes]")
        return page

    yield look
    for context in contexts:
        context.close()
    assert [
        url
        for url in requests
        if not url.startswith(("data:", "blob:")) and not url.endswith("/report.html")
    ] == []
    assert messages == []


@pytest.fixture(scope="module")
def page(opened):
    """Return one page for all tests that leave it as it was. Opening it takes most of the time."""
    return opened()


def rgb(text):
    return [int(float(part)) for part in text[text.index("(") + 1 : -1].split(",")[:3]]


def brightness(text):
    return sum(rgb(text)) / 3


def downloaded(page, figure, kind):
    with page.expect_download() as waiting:
        page.click(f"#{figure} button[data-as={kind}]")
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def test_all_figures_are_drawn_and_nothing_is_requested(page):
    assert set(page.eval_on_selector_all("figure", "all => all.map(one => one.id)")) == FIGURES
    for figure in FIGURES:
        marks = (
            ".heatmaplayer image"
            if figure == "probabilities"
            else ".trace path, .points path, .boxlayer path, .lines path"
        )
        assert page.locator(f"#{figure} svg.main-svg").count() >= 1
        assert page.locator(f"#{figure}").locator(marks).count() >= 1, figure
    assert (
        page.evaluate(
            "performance.getEntriesByType('resource').filter(e => e.name.startsWith('http')).length"
        )
        == 0
    )


SHOWN = """id => document.querySelector(`#${id} .plot`).data
    .filter(t => t.visible !== "legendonly" && t.showlegend !== false).map(t => t.name)"""


def test_the_legend_toggles_a_scheme(page):
    for shown in (["random"], ["e3cs-0.5", "random"]):
        page.locator("#cep .legendtoggle").first.click()
        page.wait_for_function(f"({SHOWN})('cep').length === {len(shown)}")
        assert page.evaluate(SHOWN, "cep") == shown


def test_a_checkbox_reached_by_keyboard_toggles_a_scheme_in_every_figure(page):
    page.locator("#schemes input").first.focus()
    for shown in (["random"], ["e3cs-0.5", "random"]):
        page.keyboard.press("Space")
        page.wait_for_function(f"({SHOWN})('fairness').length === {len(shown)}")
        for figure in ("accuracy-rounds", "success", "wasted"):
            assert page.evaluate(SHOWN, figure) == shown
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") not in (
        "",
        "none",
    )


def test_another_kind_of_run_is_drawn_and_said_in_words(page):
    for kind in ("primary-label data, paper rule", "iid data, paper rule"):
        page.select_option("#kind", kind)
        page.wait_for_function(
            f"document.querySelector('#fairness .summary').textContent.startsWith('{kind}: ')"
        )
        said = page.locator("#accuracy-rounds .summary").inner_text()
        assert said.startswith(f"{kind}: ")
        assert page.locator("#accuracy-rounds .plot").get_attribute("aria-label").endswith(said)


def test_the_csv_of_a_figure_says_what_the_records_say(page, run):
    name, content = downloaded(page, "accuracy-rounds", "csv")
    assert name == "fedcohort-accuracy-rounds.csv"
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert len(rows) == 2 * 2 * SMALL.rounds
    for row in rows:
        runs = []
        for place, key in enumerate(run_keys(SMALL)):
            kind = f"{key.partition} data, paper rule"
            if (key.selector, kind) == (row["series"], row["kind"]):
                runs.append(place)
        accuracy = run[1]["accuracy"][int(row["round"]) - 1, runs]
        assert float(row["test accuracy"]) == pytest.approx(accuracy.mean(), rel=1e-4)
        assert float(row["sd over seeds"]) == pytest.approx(accuracy.std(ddof=1), rel=1e-3)


def test_the_csv_of_the_heat_map_names_every_client_in_every_round(page):
    _, content = downloaded(page, "probabilities", "csv")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert len(rows) == SMALL.rounds * SMALL.clients
    for round in range(1, SMALL.rounds + 1):
        mine = [row for row in rows if row["round"] == str(round)]
        assert sum(float(row["probability"]) for row in mine) == pytest.approx(
            SMALL.cohort, abs=0.01
        )
        assert all(float(row["probability"]) > 0.99 for row in mine if row["capped"] == "1")
    assert any(row["capped"] == "1" for row in rows)


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<svg"), ("png", b"\x89PNG\r\n")])
def test_a_figure_is_downloaded_as_a_picture(page, kind, start):
    name, content = downloaded(page, "cep", kind)
    assert name == f"fedcohort-cep.{kind}"
    assert content.startswith(start)


def test_dark_readers_get_a_dark_page_and_light_ink_in_the_figures_and_print_is_light(opened):
    page = opened(color_scheme="dark")
    ink = "getComputedStyle(document.querySelector('#cep .xtitle')).fill"
    assert brightness(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 60
    assert brightness(page.evaluate(ink)) > 180
    page.emulate_media(media="print")
    page.wait_for_function(f"{ink} === 'rgb(27, 27, 27)'")
    assert brightness(page.evaluate("getComputedStyle(document.body).backgroundColor")) > 240
    assert not page.locator("form.controls").is_visible()


def test_a_phone_needs_no_sideways_scrolling(opened):
    page = opened(viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    widths = page.eval_on_selector_all(
        ".plot svg.main-svg", "all => all.map(one => one.getBoundingClientRect().right)"
    )
    assert max(widths) <= 360


def test_a_screen_reader_finds_landmarks_ordered_headings_and_figures_in_words(page):
    assert {
        tag: page.locator(tag).count() for tag in ("header", "main", "footer", "h1")
    } == dict.fromkeys(("header", "main", "footer", "h1"), 1)
    levels = [
        int(tag[1])
        for tag in page.eval_on_selector_all("h1,h2,h3,h4", "all => all.map(one => one.tagName)")
    ]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    labels = page.eval_on_selector_all(
        ".plot", "all => all.map(one => one.getAttribute('aria-label'))"
    )
    assert len(labels) == len(FIGURES)
    assert all(len(label) > 40 for label in labels)
    named = """all => all.map(one =>
        one.labels?.length || one.getAttribute('aria-label') || one.textContent.trim())"""
    assert all(page.eval_on_selector_all("button, select, input", named))


def test_the_medians_of_the_boxes_are_those_of_the_records(page, run):
    rows = [
        row
        for row, place in enumerate(run_keys(SMALL))
        if (place.selector, place.partition) == ("random", "iid")
    ]
    counts = np.stack([np.bincount(run[1]["clients"][:, row].ravel(), minlength=8) for row in rows])
    drawn = page.evaluate(
        "document.querySelector('#selections .plot').data.find(t => t.name === 'random').median"
    )
    assert drawn == [np.median(counts[:, 2 * c : 2 * c + 2]) for c in range(4)]


def test_a_client_whose_name_is_markup_is_shown_by_its_name_and_nothing_of_it_is_run(
    opened, tmp_path
):
    name = "<img src=x onerror=alert(1)><b>&amp;50%"
    rows = [
        journal_entry(number, {name: "arrived", "b": "lost"}, {name: 1.0, "b": 0.5})
        for number in (1, 2)
    ]
    write_journal(tmp_path, rows)
    write_report(tmp_path)
    page = opened(tmp_path)
    assert page.locator("img").count() == 0
    for figure, axis in (("fates", "x"), ("probabilities", "y")):
        shown = page.eval_on_selector_all(
            f"#{figure} .{axis}tick text", "all => all.map(one => one.textContent)"
        )
        assert sorted(shown) == sorted([name, "b"])
    assert name in downloaded(page, "fates", "csv")[1].decode()
