import sys

import numpy as np
import pytest
from page_text import Tags, chart_ids
from run_folders import SMALL, write_comparison, write_journal

from fedcohort import cli
from fedcohort.cli.pages import load_findings, write_report
from fedcohort.reports.answer import Answer
from fedcohort.reports.findings import Findings, SchemeResults
from fedcohort.reports.html import page as pages
from fedcohort.reports.html.page import page, write_page

EVIL = "<img src=x onerror=alert(1)>\"&'</script><script>alert(2)</script>"


def scheme(successes, **more):
    successes = np.asarray(successes, dtype=float)
    return SchemeResults(range(len(successes)), np.full(successes.shape, 4.0), successes, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    write_comparison(path)
    return path


@pytest.fixture(scope="module")
def text(folder):
    return page(load_findings(folder))


def test_the_page_of_a_comparison_has_the_picture_of_the_answer_first_and_then_all_figures(text):
    assert chart_ids(text) == [
        "answer",
        "worst",
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
    ]


def test_the_page_loads_nothing_from_elsewhere(text):
    for tag, attrs in Tags(text).found:
        assert tag not in ("iframe", "object", "embed", "base")
        assert not (tag == "script" and "src" in attrs)
        assert all(
            not (attrs.get(name) or "").startswith(("http", "//"))
            for name in ("src", "href", "action")
        )
    assert "@import" not in text.split("</style>")[0]


def test_every_table_has_a_caption_and_scoped_headers(text):
    tags = [tag for tag, _ in Tags(text).found]
    assert tags.count("table") == tags.count("caption") == 4  # two on the first screen
    assert all(
        attrs.get("scope") in ("col", "row") for tag, attrs in Tags(text).found if tag == "th"
    )


def test_settings_seeds_versions_and_commit_are_at_the_end(text):
    end = text[text.index('id="origin"') :].split("</main>")[0]
    for words in (
        "<dt>learning_rate</dt><dd>0.05</dd>",
        "<dt>seeds</dt><dd>0 to 2</dd>",
        "<dt>numpy</dt>",
        "<dt>commit</dt>",
    ):
        assert words in end


def test_whatever_a_name_holds_is_shown_as_it_is_and_never_run():
    evil = Findings(
        title=EVIL,
        kinds={EVIL: {EVIL: scheme([[1, 2]])}, "b": {EVIL: scheme([[1, 2]])}},
        tables={EVIL: [{EVIL: EVIL, "x": EVIL}]},
        answer=Answer(EVIL, basis=[EVIL], to_paste={EVIL: EVIL}),
        outcomes={EVIL: {"arrived": 2, EVIL: 1}},
        lead=[EVIL],
        notes=[EVIL],
        settings={EVIL: EVIL},
        environment={EVIL: EVIL},
        seeds=EVIL,
    )
    text = page(evil)
    tags = Tags(text).found
    assert not any(tag == "img" for tag, _ in tags)
    assert sum(tag == "script" for tag, _ in tags) == 2
    assert EVIL not in text
    assert any(words == EVIL for words, _ in Tags(text).words)


def test_a_figure_for_which_nothing_was_recorded_is_left_out():
    findings = Findings("t", {"k": {"random": scheme([[1, 2]])}})
    assert chart_ids(page(findings)) == ["success", "cep"]


def test_a_page_that_cannot_be_made_leaves_the_old_one(folder, monkeypatch):
    write_report(folder)
    before = {path.name: path.read_bytes() for path in folder.glob("*.html")}

    def broken(of):
        raise RuntimeError("no ink")

    monkeypatch.setattr(pages, "page", broken)
    with pytest.raises(RuntimeError, match="no ink"):
        write_report(folder)
    assert {
        path.name: path.read_bytes() for path in folder.iterdir() if "html" in path.name
    } == before


@pytest.fixture
def call(monkeypatch, capsys):
    def run(*args):
        monkeypatch.setattr(sys, "argv", ["fedcohort", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code, *capsys.readouterr()

    return run


def test_report_writes_the_page_and_says_where_last(call, folder):
    assert call("report", folder) == (0, f"Report: {folder / 'report.html'}\n", "")


def test_folders_without_a_single_round_are_refused_in_one_line(call, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun").mkdir()
    write_journal(tmp_path / "begun", [])
    wrong = {
        "empty": "runs must be a folder of compare",
        "none": "runs must be a folder of results",
        "begun": "at least one round",
    }
    for name, message in wrong.items():
        code, out, err = call("report", tmp_path / name)
        assert (code, out) == (2, "")
        assert message in err
        assert name in err
        assert err.count("\n") == 1


def test_the_page_is_the_same_for_the_same_results(folder, text):
    assert page(load_findings(folder)) == text
    assert write_page(load_findings(folder), folder) == folder / "report.html"
    assert SMALL.dataset in text.split("</title>")[0]
