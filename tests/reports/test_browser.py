"""The report in a real browser, offline: what a reader sees and does."""

import csv
import io
import os
import re
import shutil
from dataclasses import replace
from itertools import pairwise

import pytest
from run_folders import SMALL, journal_entry, write_comparison, write_journal

from fedcohort.cli.pages import write_report
from fedcohort.lab.runs import run_keys
from fedcohort.reports.svg.frame import LABEL_GAP, WIDE, with_labels

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FIRST = ["answer", "worst"]
FIGURES = {
    "accuracy-rounds",
    "accuracy-time",
    "left-out",
    "labels-left-out",
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

    def look(folder=run[0], unfolded=True, **how):
        contexts.append(browser.new_context(offline=True, **how))
        page = contexts[-1].new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(f"file://{folder / 'report.html'}")
        page.wait_for_selector("html[data-ready=yes]")
        if unfolded:
            page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
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


def visible(page, selector):
    return page.locator(selector).locator("visible=true")


def test_all_figures_are_drawn_and_nothing_is_requested(page):
    shown = page.eval_on_selector_all("figure", "all => all.map(one => one.id)")
    assert shown[:2] == FIRST
    assert set(shown[2:]) == FIGURES
    for figure in shown:
        assert visible(page, f"#{figure} svg.drawing").count() == 1, figure
        marks = visible(page, f"#{figure} svg :is(path, circle, rect, image)")
        assert marks.count() >= 2, figure
    assert (
        page.evaluate(
            "performance.getEntriesByType('resource').filter(e => e.name.startsWith('http')).length"
        )
        == 0
    )


def test_everything_but_the_answer_is_folded_until_it_is_opened(opened):
    page = opened(unfolded=False)
    assert page.locator("p.answer").is_visible()
    for figure in FIRST:
        assert visible(page, f"#{figure} svg").count() == 1
    for figure in FIGURES:
        assert not page.locator(f"#{figure}").is_visible()
    page.locator("#figures > summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#cep").is_visible()


HIGHLIGHTED = """id => [...document.querySelectorAll(`#${id} .panel:not([hidden]) .series`)]
    .filter(one => !one.classList.contains("other")).map(one => one.dataset.name)"""


# A grey line with a point of the window at which no other line lies above it.
FREE_POINT = """() => {
    for (const series of document.querySelectorAll("#cep .panel:not([hidden]) .series.other")) {
        const line = series.querySelector(".line");
        const matrix = line.getScreenCTM();
        for (let share = 0; share <= 1; share += 0.02) {
            const at = line.getPointAtLength(share * line.getTotalLength()).matrixTransform(matrix);
            if (series.contains(document.elementFromPoint(at.x, at.y))) {
                return [series.dataset.name, at.x, at.y, getComputedStyle(line).stroke];
            }
        }
    }
}"""


@pytest.fixture(scope="module")
def crowded(opened, tmp_path_factory):
    """Return the page of a run with seven schemes."""
    folder = tmp_path_factory.mktemp("crowded")
    schemes = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "random", "pow-d")
    write_comparison(folder, replace(SMALL, selectors=schemes))
    write_report(folder)
    return opened(folder)


def test_at_most_four_lines_are_highlighted_and_a_grey_one_is_named_when_hovered(crowded):
    for figure in ("answer", "accuracy-rounds", "cep"):
        names = crowded.evaluate(HIGHLIGHTED, figure)
        drawn = visible(crowded, f"#{figure} .series").count()
        assert drawn == 7
        assert 1 < len(names) <= 4
    crowded.locator("#cep").scroll_into_view_if_needed()
    assert visible(crowded, "#cep .series.other .label").count() == 0
    name, x, y, before = crowded.evaluate(FREE_POINT)
    crowded.mouse.move(x, y)
    shown = visible(crowded, "#cep .series.other .label").all_text_contents()
    assert shown == [name]
    after = crowded.evaluate(
        "getComputedStyle(document.querySelector('#cep .series.other:hover .line')).stroke"
    )
    assert after != before


def test_a_checkbox_reached_by_keyboard_highlights_a_scheme_and_a_fifth_is_refused(crowded):
    checked = crowded.locator("#schemes input:checked").count()
    free = crowded.locator("#schemes input:not(:checked)").first
    name = free.get_attribute("value")
    free.focus()
    crowded.keyboard.press("Space")
    assert name in crowded.evaluate(HIGHLIGHTED, "cep")
    assert name in crowded.evaluate(HIGHLIGHTED, "accuracy-rounds")
    assert crowded.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    for _ in range(4 - checked - 1):
        crowded.locator("#schemes input:not(:checked)").first.check()
    assert len(crowded.evaluate(HIGHLIGHTED, "cep")) == 4
    assert crowded.locator("#schemes input:disabled").count() == 3
    crowded.locator("#schemes input:checked").first.uncheck()
    assert crowded.locator("#schemes input:disabled").count() == 0


def test_another_kind_of_run_is_shown_in_all_figures(page):
    for kind in ("primary-label data, paper rule", "iid data, paper rule"):
        page.select_option("#kind", kind)
        for figure in ("accuracy-rounds", "fairness", "wasted"):
            (title,) = visible(page, f"#{figure} .panel-title").all_inner_texts()
            assert title == kind
    assert visible(page, "#answer svg").count() == 1  # the answer stays


def test_the_values_under_the_pointer_are_said(page):
    drawing = visible(page, "#accuracy-rounds svg")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    said = visible(page, "#accuracy-rounds .readout").inner_text()
    assert re.match(r"round \d+: ", said)
    assert "random 0." in said
    page.mouse.move(0, 0)
    assert visible(page, "#accuracy-rounds .readout").all_inner_texts() in ([], [""])


def test_a_definition_opens_on_hover_on_focus_and_on_touch(opened):
    page = opened(unfolded=False)
    term = page.locator(".term").first
    assert not term.locator(".meaning").is_visible()
    term.hover()
    assert term.locator(".meaning").is_visible()
    page.mouse.move(0, 0)
    assert not term.locator(".meaning").is_visible()
    term.focus()
    assert term.locator(".meaning").is_visible()
    page.keyboard.press("Escape")
    assert not term.locator(".meaning").is_visible()

    phone = opened(
        unfolded=False, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    last = phone.locator("#who .term").last
    last.tap()
    box = last.locator(".meaning").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert phone.evaluate("document.documentElement.scrollWidth") == 390


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
    ink = "getComputedStyle(document.querySelector('#cep .title')).fill"
    assert brightness(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 60
    assert brightness(page.evaluate(ink)) > 160
    page.emulate_media(media="print")
    page.wait_for_function(f"{ink} === 'rgb(51, 51, 51)'")
    assert brightness(page.evaluate("getComputedStyle(document.body).backgroundColor")) > 240
    assert not page.locator("form.controls").is_visible()


def test_print_opens_what_is_folded_and_closes_it_again(opened):
    page = opened(unfolded=False)
    page.emulate_media(media="print")
    page.wait_for_function("document.querySelectorAll('details:not([open])').length === 0")
    assert page.locator("#cep").is_visible()
    page.emulate_media(media="screen")
    page.wait_for_function("document.querySelectorAll('details[open]').length === 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_no_width_needs_sideways_scrolling_of_the_page(opened, width, scheme):
    page = opened(viewport={"width": width, "height": 740}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    ends = visible(page, "#answer svg, #worst svg").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().right)"
    )
    assert len(ends) == 2
    assert max(ends) <= width


def test_a_phone_gets_drawings_of_its_own_with_letters_that_can_be_read(opened):
    page = opened(viewport={"width": 390, "height": 844})
    for figure in FIRST:
        drawing = visible(page, f"#{figure} svg")
        assert "narrow" in drawing.get_attribute("class")
        heights = drawing.locator("text").evaluate_all(
            "all => all.filter(one => getComputedStyle(one).visibility === 'visible')"
            ".map(one => one.getBoundingClientRect())"
            ".map(box => [box.height, box.left, box.right])"
        )
        assert min(height for height, _, _ in heights) > 10
        assert min(left for _, left, _ in heights) >= 0
        assert max(right for _, _, right in heights) <= 390


def test_without_the_script_the_answer_and_every_figure_can_be_read(opened, run, browser):
    context = browser.new_context(offline=True, java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"file://{run[0] / 'report.html'}")
        assert page.locator("p.answer").is_visible()
        for figure in FIRST:
            assert visible(page, f"#{figure} svg").count() == 1
        page.locator("#figures > summary").click()
        assert visible(page, "#cep svg").count() == 2  # both kinds of run
        assert not page.locator("form.controls").is_visible()
        assert visible(page, "button").count() == 0
    finally:
        context.close()


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
        "svg", "all => all.map(one => one.getAttribute('aria-label'))"
    )
    assert len(labels) >= len(FIGURES)
    assert all(len(label) > 40 for label in labels)
    named = """all => all.map(one =>
        one.labels?.length || one.getAttribute('aria-label') || one.textContent.trim())"""
    assert all(page.eval_on_selector_all("button, select, input", named))


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
    for figure, axis in (("fates", "middle"), ("probabilities", "end")):
        shown = page.eval_on_selector_all(
            f"#{figure} .tick.{axis}", "all => all.map(one => one.textContent)"
        )
        assert {f"{name[:29]}…", "b"} <= set(shown)
    assert name in downloaded(page, "fates", "csv")[1].decode()


WIDTH_OF_LABEL = """name => {
    const label = document.querySelector("svg.wide .series:not(.other) .label").cloneNode();
    label.textContent = name;
    document.querySelector("svg.wide .series:not(.other)").append(label);
    const width = label.getComputedTextLength();
    label.remove();
    return width;
}"""


@pytest.mark.parametrize("name", ["answers per minute", "random, normalised rule", "asked"])
def test_a_drawing_has_room_for_the_bold_labels_at_its_right(page, name):
    width = page.evaluate(WIDTH_OF_LABEL, name)
    assert 0 < width <= with_labels(WIDE, [name]).right - LABEL_GAP + 4


def test_on_paper_a_header_is_no_larger_than_the_cells_below_it(opened):
    page = opened()
    page.emulate_media(media="print")
    size = "one => parseFloat(getComputedStyle(one).fontSize)"
    header = page.eval_on_selector("#ranking thead th", size)
    assert header <= page.eval_on_selector("#ranking tbody td", size)


def test_a_name_with_a_hyphen_stays_on_one_line_on_a_phone(opened):
    page = opened(viewport={"width": 320, "height": 700})
    lines = page.eval_on_selector_all(
        "#ranking .whole", "all => all.map(one => one.getClientRects().length)"
    )
    assert lines
    assert set(lines) == {1}


@pytest.mark.parametrize("name", ["b" * 100, "b" * 30, f"{'edge' * 15}-1", "0b1e-4f7c-" * 4])
def test_a_very_long_name_of_a_client_stays_in_its_column_on_a_phone(opened, tmp_path, name):
    write_journal(tmp_path, [journal_entry(1, {name: "lost", "b": "arrived"})])
    write_report(tmp_path)
    page = opened(tmp_path, viewport={"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    beyond = page.eval_on_selector_all(
        "#ranking tbody th, #tables tbody th",
        "all => all.map(one => one.scrollWidth - one.clientWidth)",
    )
    assert max(beyond) <= 0
