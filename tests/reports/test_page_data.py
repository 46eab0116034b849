"""The numbers behind the figures of a whole page, beside plain loops over the records."""

from math import sqrt

import numpy as np
import pytest
from page_text import data_of
from run_folders import SMALL, write_comparison

from fedcohort.cli.pages import load_findings
from fedcohort.lab import folder as run_folder
from fedcohort.reports.html.page import page
from fedcohort.reports.palette import scheme_style

KINDS = ["iid data, paper rule", "primary-label data, paper rule"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the charts of a page by id, and the records that the page was made from."""
    folder = tmp_path_factory.mktemp("comparison")
    records = write_comparison(folder)
    records["accuracy"][[0, 5]] = np.nan  # two rounds without a test
    run_folder.save_records(folder, 0, records)
    charts = data_of(page(load_findings(folder)))["charts"]
    return {chart["id"]: chart for chart in charts}, records, folder


def mean(values):
    return sum(values) / len(values)


def spread(values):
    squares = [(value - mean(values)) ** 2 for value in values]
    return sqrt(sum(squares) / (len(values) - 1))


def schemes(chart):
    """Yield the kind, the rows of the batch axis and the series of every scheme of a chart."""
    assert list(chart["choices"]) == KINDS
    for partition, kind in enumerate(KINDS):
        series = chart["choices"][kind]
        assert [one["name"] for one in series] == list(SMALL.selectors)
        for place, one in enumerate(series):
            style = scheme_style(one["name"])
            assert (one["colour"], one["dash"]) == (style.colour, style.dash)
            first = 6 * place + 3 * partition
            yield kind, [first, first + 1, first + 2], one


def assert_lines(chart, rounds, values_of):
    """Check the lines of a chart; `values_of` returns the values of one run by round."""
    ends = {kind: [] for kind in KINDS}
    for kind, rows, line in schemes(chart):
        assert line["data"]["x"] == rounds
        runs = [values_of(row) for row in rows]
        columns = [[run[round - 1] for run in runs] for round in rounds]
        assert line["data"]["y"] == pytest.approx([mean(one) for one in columns], rel=1e-4)
        spreads = [spread(one) for one in columns]
        assert line["data"]["sd"] == pytest.approx(spreads, rel=1e-3, abs=1e-12)
        ends[kind].append((mean(columns[-1]), line["name"]))
    for kind, values in ends.items():
        words = ", ".join(f"{name} {value:.4g}" for value, name in sorted(values)[::-1])
        assert chart["summary"][kind] == f"At the end, {chart['axes']['y']}: {words}."


def test_lines_over_rounds_are_means_over_the_seeds_of_a_scheme(made):
    charts, records, _ = made
    tested = [2, 3, 4, 5, 7, 8, 9, 10, 11, 12]
    assert_lines(charts["accuracy-rounds"], tested, lambda row: records["accuracy"][:, row])
    used = records["valid"].sum(axis=2).tolist()

    def used_so_far(row):
        return [sum(used[n][row] for n in range(round + 1)) for round in range(12)]

    assert_lines(charts["cep"], list(range(1, 13)), used_so_far)
    assert_lines(
        charts["success"],
        list(range(1, 13)),
        lambda row: [used / (3 * n) for n, used in enumerate(used_so_far(row), start=1)],
    )


def test_the_curve_over_time_has_at_each_moment_what_was_tested_last(made):
    charts, records, _ = made
    for _, rows, line in schemes(charts["accuracy-time"]):
        tests = []
        for row in rows:
            now = 0.0
            own = []
            for accuracy, seconds in zip(
                records["accuracy"][:, row], records["seconds"][:, row], strict=True
            ):
                now += seconds
                if accuracy == accuracy:
                    own.append((now, accuracy))
            tests.append(own)
        moments = line["data"]["x"]
        assert len(moments) == 12
        assert moments[0] == pytest.approx(max(own[0][0] for own in tests), rel=1e-4)
        assert moments[-1] == pytest.approx(min(own[-1][0] for own in tests), rel=1e-4)
        for moment, value in list(zip(moments, line["data"]["y"], strict=True))[1:-1]:
            known = [[one for when, one in own if when <= moment][-1] for own in tests]
            assert value == pytest.approx(mean(known), rel=1e-4)


def test_boxes_bars_and_dots_are_those_of_a_scheme(made):
    charts, records, _ = made
    counts = {}
    for row in range(12):
        asked = records["clients"][:, row].ravel().tolist()
        counts[row] = [asked.count(client) for client in range(8)]

    for _, rows, boxes in schemes(charts["selections"]):
        assert boxes["data"]["x"] == ["0.1", "0.3", "0.6", "0.9"]
        for group in range(4):
            pooled = []
            for row in rows:
                pooled += counts[row][2 * group : 2 * group + 2]
            pooled.sort()
            box = [boxes["data"][part][group] for part in ("low", "median", "high")]
            assert box == pytest.approx([pooled[0], (pooled[2] + pooled[3]) / 2, pooled[5]])

    for kind, rows, bar in schemes(charts["wasted"]):
        wasted = [sum(records["wasted_seconds"][:, row].tolist()) for row in rows]
        assert bar["data"]["x"] == [bar["name"]]
        assert bar["data"]["y"] == pytest.approx([mean(wasted)], rel=1e-4)
        assert bar["data"]["sd"] == pytest.approx([spread(wasted)], rel=1e-4)
        words = f"{bar['name']} {mean(wasted):.0f} ± {spread(wasted):.0f}"
        assert words in charts["wasted"]["summary"][kind]

    for _, rows, dot in schemes(charts["fairness"]):
        fairness = [36**2 / (8 * sum(count**2 for count in counts[row])) for row in rows]
        accuracy = [records["accuracy"][-1, row] for row in rows]
        assert dot["data"]["x"] == pytest.approx([mean(fairness)], rel=1e-4)
        assert dot["data"]["y"] == pytest.approx([mean(accuracy)], rel=1e-4)
        assert dot["data"]["sd x"] == pytest.approx([spread(fairness)], rel=1e-4)
        assert dot["data"]["sd y"] == pytest.approx([spread(accuracy)], rel=1e-4)

    for _, rows, dots in schemes(charts["left-out"]):
        assert dots["data"]["x"] == ["10%", "30%", "60%", "90%"]
        for group in range(4):
            values = [float(records["class_accuracy"][-1, row, group]) for row in rows]
            assert dots["data"]["y"][group] == pytest.approx(mean(values), rel=1e-4)
            assert dots["data"]["sd"][group] == pytest.approx(spread(values), rel=1e-3)


def test_probabilities_and_owners_are_those_of_the_folder(made):
    charts, _, folder = made
    ((path, stored),) = run_folder.load_allocations(folder)
    assert path.exists()
    (heat,) = charts["probabilities"]["choices"]["e3cs-0.5"]
    assert heat["data"]["x"] == list(range(1, 13))
    assert heat["data"]["y"] == list(range(8))
    for client in range(8):
        chances = stored["e3cs-0.5/inclusion"][:, client].astype(float).tolist()
        assert heat["data"]["z"][client] == pytest.approx(chances, abs=0.0006)
        capped = stored["e3cs-0.5/capped"][:, client].tolist()
        assert heat["data"]["capped"][client] == [n for n, one in enumerate(capped) if one]
    assert stored["e3cs-0.5/capped"].any()
    assert "of the first seed" in charts["probabilities"]["caption"]
    assert "lowest first" in charts["probabilities"]["caption"]

    rng = np.random.default_rng(1)  # as the folder was written
    for partition in ("iid", "primary-label"):
        owned = rng.integers(0, 9, (8, 4)).tolist()
        layers = charts["owners"]["choices"][partition]
        assert [layer["name"] for layer in layers] == [f"label {label}" for label in range(4)]
        for label, layer in enumerate(layers):
            assert layer["data"]["x"] == list(range(8))
            assert layer["data"]["y"] == [own[label] for own in owned]


def test_every_figure_names_its_axes(made):
    charts, _, _ = made
    axes = {name: tuple(chart["axes"].values()) for name, chart in charts.items()}
    assert axes == {
        "accuracy-rounds": ("round", "test accuracy"),
        "accuracy-time": ("virtual seconds", "test accuracy"),
        "left-out": ("how often the class answers", "final accuracy"),
        "success": ("round", "success ratio"),
        "cep": ("round", "updates used so far"),
        "selections": ("success rate of the class", "times asked"),
        "probabilities": ("round", "client"),
        "owners": ("client", "samples"),
        "wasted": ("scheme", "wasted client-seconds"),
        "fairness": ("fairness (Jain's index)", "final accuracy"),
    }
