import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from made import result
from made_run import SMALL, comparison, round_row

from fedcohort import cli
from fedcohort.cli.pages import load_findings, write_report
from fedcohort.lab.archive import save
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import load_or_simulate
from fedcohort.paper import page as reproduction
from fedcohort.reports.charts.curves import success_ratio
from fedcohort.reports.charts.seeds import accuracy_over_seconds, curve_over_rounds, mean_and_sd
from fedcohort.reports.findings import Findings, Scheme
from fedcohort.reports.html import page as pages
from fedcohort.reports.html.page import page, write_page
from fedcohort.reports.html.plots import as_plain
from fedcohort.reports.pages import deployment

EVIL = "<img src=x onerror=alert(1)>\"&'</script><script>alert(2)</script>"


def scheme(successes, **more):
    successes = np.asarray(successes, dtype=float)
    return Scheme(range(len(successes)), np.full(successes.shape, 4.0), successes, **more)


def data_of(text):
    """Return what the page's script reads."""
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL
    )
    return json.loads(found.group(1))


def own(text):
    """Return the page without Plotly, which we did not write."""
    from plotly.offline import get_plotlyjs

    return text.replace(get_plotlyjs().replace("</script", "<\\/script"), "")


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    comparison(path)
    return path


@pytest.fixture(scope="module")
def text(folder):
    return page(load_findings(folder))


def test_the_page_of_a_comparison_has_all_figures_and_no_more_than_six_megabytes(text):
    assert [chart["id"] for chart in data_of(text)["charts"]] == [
        "accuracy-rounds", "accuracy-time", "success", "cep", "selections", "probabilities", "owners", "wasted", "fairness",
    ]  # fmt: skip
    assert len(text.encode()) < 6e6


def test_the_verdict_comes_before_the_table_and_the_table_before_the_figures_and_the_settings_last(
    text,
):
    places = [text.index(f'id="{name}"') for name in ("verdict", "table", "figures", "origin")]
    assert places == sorted(places)


def test_the_page_loads_nothing_from_elsewhere(text):
    for tag, attrs in Tags(own(text)).found:
        assert tag not in ("iframe", "object", "embed", "base")
        assert not (tag == "script" and "src" in attrs)
        assert all(
            not (attrs.get(name) or "").startswith(("http", "//"))
            for name in ("src", "href", "action")
        )
    assert "@import" not in text.split("</style>")[0]


def test_every_table_has_a_caption_and_scoped_headers(text):
    tags = [tag for tag, _ in Tags(own(text)).found]
    assert tags.count("table") == tags.count("caption") == 2
    assert all(
        attrs.get("scope") in ("col", "row") for tag, attrs in Tags(own(text)).found if tag == "th"
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
        outcomes={EVIL: {"arrived": 2, EVIL: 1}},
        lead=[EVIL],
        notes=[EVIL],
        settings={EVIL: EVIL},
        environment={EVIL: EVIL},
        seeds=EVIL,
    )
    text = own(page(evil))
    tags = Tags(text).found
    assert not any(tag == "img" for tag, _ in tags)
    assert sum(tag == "script" for tag, _ in tags) == 3
    assert EVIL not in text
    assert data_of(text)["kinds"] == [EVIL, "b"]


def test_a_figure_for_which_nothing_was_recorded_is_left_out():
    shown = [
        chart["id"]
        for chart in data_of(page(Findings("t", {"k": {"random": scheme([[1, 2]])}})))["charts"]
    ]
    assert shown == ["success", "cep"]


def test_means_are_over_the_seeds_that_have_a_value():
    mean, spread = mean_and_sd(np.array([[0.0, 1.0, np.nan], [2.0, np.nan, np.nan]]))
    np.testing.assert_array_equal(mean, [1.0, 1.0, np.nan])
    np.testing.assert_array_equal(spread, [np.sqrt(2), np.nan, np.nan])


def test_a_curve_is_of_the_seeds_that_came_the_furthest_and_does_not_change_its_company():
    values = np.array(
        [[0.0, np.nan, 1.0, np.nan], [2.0, np.nan, 3.0, np.nan], [9.0, np.nan, np.nan, np.nan]]
    )
    curve = curve_over_rounds(values)
    assert curve.x.tolist() == [1, 3]
    assert curve.mean.tolist() == [1, 2]
    np.testing.assert_allclose(curve.sd, [2**0.5, 2**0.5])
    assert all(part.size == 0 for part in curve_over_rounds(np.full((2, 3), np.nan)))


def test_a_long_curve_is_thinned_and_keeps_both_ends():
    chart = as_plain(success_ratio({"kind": {"random": np.arange(5000.0)[None]}}))
    found = chart["choices"]["kind"][0]["data"]
    assert len(found["x"]) <= 150
    assert (found["x"][0], found["x"][-1]) == (1, 5000)
    assert all(
        y == pytest.approx(x - 1, rel=1e-4) for x, y in zip(found["x"], found["y"], strict=True)
    )


def test_at_each_moment_the_last_accuracy_tested_counts():
    one = scheme(
        [[1, 1, 1]], accuracy=np.array([[0.1, np.nan, 0.5]]), seconds=np.array([[1.0, 1.0, 2.0]])
    )
    found = accuracy_over_seconds(one)  # tested after 1 s and 4 s
    assert (found.x[0], found.x[-1]) == (1, 4)
    assert [y for x, y in zip(found.x, found.mean, strict=True) if x < 4] == [0.1, 0.1]
    assert found.mean[-1] == 0.5


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


def test_without_plotly_the_report_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert write_report(folder) == "No report: it needs pip install 'fedcohort[plots]'"


def test_a_run_that_is_not_finished_is_shown_as_far_as_it_is(tmp_path):
    comparison(tmp_path, chunks=3)
    (tmp_path / "records" / "0000008.npz").unlink()
    found = load_findings(tmp_path)
    assert "Not finished: 8 of 12 rounds are played." in found.lead
    assert found.kinds["iid data, paper rule"]["random"].accuracy.shape == (3, 8)


def test_a_folder_of_an_older_version_has_a_page_without_what_it_did_not_keep(tmp_path):
    comparison(tmp_path, owners=False)
    for path in (tmp_path / "allocations").iterdir():
        path.unlink()
    (tmp_path / "environment.json").unlink()
    shown = [chart["id"] for chart in data_of(page(load_findings(tmp_path)))["charts"]]
    assert {"probabilities", "owners"}.isdisjoint(shown)


def simulation(folder):
    setting = SimulationConfig(("e3cs-0", "random"), 8, 3, 15, 2)
    load_or_simulate("simulate", setting, folder)


def test_a_simulation_has_a_page_without_accuracy(tmp_path):
    simulation(tmp_path)
    shown = {chart["id"]: chart for chart in data_of(page(load_findings(tmp_path)))["charts"]}
    assert list(shown) == ["success", "cep", "selections", "fairness"]
    assert shown["fairness"]["axes"]["y"] == "success ratio"


def journal(folder, rows):
    folder.mkdir(exist_ok=True)
    (folder / "rounds.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


ROUNDS = [
    round_row(1, {"a": "arrived", "b": "lost"}, {"a": 0.7, "b": 0.7, "c": 0.6}),
    round_row(2, {"a": "arrived", "c": "stopped"}, {"a": 1.0, "b": 0.4, "c": 0.6}),
]


def test_a_flower_run_has_a_page_with_what_came_of_each_client(tmp_path):
    journal(tmp_path, ROUNDS)
    (tmp_path / "run.json").write_text('{"rounds": 9, "selector": "e3cs-0.5"}')
    found = load_findings(tmp_path)
    assert found.outcomes == {"a": {"arrived": 2}, "b": {"lost": 1}, "c": {"stopped": 1}}
    assert "9 rounds were asked for" in found.lead[0]
    assert found.allocations["this run"].capped.tolist() == [
        [False, False, False],
        [True, False, False],
    ]
    assert [chart["id"] for chart in data_of(page(found))["charts"]] == [
        "success",
        "cep",
        "probabilities",
        "fates",
    ]


def test_a_round_that_is_being_written_is_left_out_and_a_damaged_one_refused(tmp_path):
    journal(tmp_path, ROUNDS)
    path = tmp_path / "rounds.jsonl"
    path.write_text(path.read_text() + '{"round": 3, "sec')
    assert len(deployment.findings(tmp_path).kinds["this run"]["this run"].asked[0]) == 2
    path.write_text('{"round"\n' + path.read_text())
    with pytest.raises(ValueError, match=r"rounds\.jsonl must hold one round per line, got line 1"):
        load_findings(tmp_path)


def test_federations_of_different_size_have_a_page_without_classes(tmp_path):
    save(
        tmp_path / "runs-cifar10.npz",
        [result(accuracy=(0.1, 0.5), clients=clients, cohort=4) for clients in (20, 36)],
    )
    found = load_findings(tmp_path)
    assert found.classes is None
    assert len(found.kinds) == 2
    assert page(found)


def test_a_reproduction_has_a_page_with_its_tables_and_the_runs_that_differ_in_scheme_and_seed_alone(
    tmp_path,
):
    runs = [
        result(
            accuracy=(0.1, 0.5),
            selectors=(name,),
            first_seed=seed,
            partitions=(partition,),
            rounds=rounds,
        )
        for name, seed, partition, rounds in (
            ("random", 0, "iid", 2),
            ("random", 1, "iid", 2),
            ("fedcs", 0, "iid", 2),
            ("fedcs", 0, "shards", 3),
        )
    ]
    save(tmp_path / "runs-cifar10.npz", runs)
    reproduction.remember(tmp_path, ["table3"], {"rounds": 2})
    found = load_findings(tmp_path)
    assert [title.split(",")[0] for title in found.tables] == ["Table III: cifar10"] * 4
    iid, shards = found.kinds.values()
    assert {name: one.accuracy.shape for name, one in iid.items()} == {
        "random": (2, 2),
        "fedcs": (1, 2),
    }
    np.testing.assert_array_equal(
        np.isnan(shards["fedcs"].accuracy), [[False, False, True]]
    )  # one round is still to come
    assert "4 training runs are at hand, 1 of them not finished." in found.lead
    assert iid["random"].rounds_to(0.5).tolist() == [2, 2]
    assert "accuracy-rounds" in [chart["id"] for chart in data_of(page(found))["charts"]]


def test_a_target_that_is_met_exactly_is_met_on_the_page_too_though_kept_in_float32():
    (kind,) = reproduction.trained_kinds([result(accuracy=(0.1, 0.45, 0.65, 0.7))])[0].values()
    assert [kind["random"].rounds_to(target).tolist() for target in (0.45, 0.65)] == [[2], [3]]


def test_kinds_of_runs_are_told_apart_by_what_differs():
    steps = [result(aggregations=("normalised",), server_rate=rate) for rate in (1.0, 0.095)]
    dealt = [result(partitions=("primary-label",), refill=refill) for refill in (True, False)]
    lengths = [result(accuracy=(0.1,) * rounds, partitions=("shards",)) for rounds in (2, 3)]
    found, _ = reproduction.trained_kinds([*steps, *dealt, *lengths])
    assert list(found) == [
        "cifar10, k=20, iid data, normalised rule, mu 0, successive",
        "cifar10, k=20, iid data, normalised rule times 0.095, mu 0, successive",
        "cifar10, k=20, primary-label data, paper rule, mu 0, successive, refill True",
        "cifar10, k=20, primary-label data, paper rule, mu 0, successive, refill False",
        "cifar10, k=20, shards data, paper rule, mu 0, successive, rounds 2",
        "cifar10, k=20, shards data, paper rule, mu 0, successive, rounds 3",
    ]


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


def test_a_folder_of_nothing_a_folder_that_is_not_there_and_a_run_without_rounds_are_refused_in_one_line(
    call, tmp_path
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun").mkdir()
    journal(tmp_path / "begun", [])
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


def test_neither_the_package_nor_the_command_line_loads_plotly():
    for module in ("fedcohort", "fedcohort.cli"):
        code = f"import sys, {module}; print('plotly' in sys.modules)"
        assert (
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
            == "False\n"
        )


def test_the_page_is_the_same_for_the_same_results(folder, text):
    assert page(load_findings(folder)) == text
    assert write_page(load_findings(folder), folder) == folder / "report.html"
    assert SMALL.dataset in text.split("</title>")[0]
