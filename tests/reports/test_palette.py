from fedcohort.reports.palette import (
    COLOURS,
    COLOURS_ON_DARK,
    FIRST_SCHEMES,
    NUM_DASHES,
    NUM_HUES,
    Style,
    scheme_style,
)
from fedcohort.selection.registry import PAPER_SELECTORS, SELECTORS


def test_the_papers_selectors_have_colours_of_their_own():
    assert set(PAPER_SELECTORS) <= set(FIRST_SCHEMES)
    assert len({scheme_style(name).colour for name in FIRST_SCHEMES}) == len(FIRST_SCHEMES)


def test_the_papers_selectors_look_as_in_the_published_figures():
    styles = [scheme_style(name) for name in PAPER_SELECTORS]
    assert [COLOURS[style.colour] for style in styles] == [
        "#0072B2",
        "#E69F00",
        "#009E73",
        "#CC79A7",
        "#D55E00",
        "#56B4E9",
        "#000000",
    ]
    assert [style.dash for style in styles] == [0, 1, 2, 3, 0, 1, 2]


def test_every_registered_selector_has_a_style_of_its_own():
    assert len({scheme_style(name) for name in SELECTORS}) == len(SELECTORS)


def test_a_new_selector_gets_a_free_style_and_changes_no_other(monkeypatch):
    before = {name: scheme_style(name) for name in SELECTORS}
    monkeypatch.setitem(SELECTORS, "newest", SELECTORS["random"])
    assert {name: scheme_style(name) for name in before} == before
    assert scheme_style("newest") not in before.values()


def test_a_name_that_is_no_selector_always_has_the_same_solid_line():
    style = scheme_style("someone new")
    assert style == scheme_style("someone new")
    assert style == Style(style.colour, dash=0)
    assert style.colour < NUM_HUES


def test_every_colour_has_a_counterpart_on_a_dark_page():
    assert len(COLOURS) == len(COLOURS_ON_DARK) == NUM_HUES + 1
    assert all(scheme_style(name).dash < NUM_DASHES for name in SELECTORS)
