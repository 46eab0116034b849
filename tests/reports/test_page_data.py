"""The numbers behind the figures of a whole page, beside plain loops over the records."""

from math import sqrt

import numpy as np
import pytest
from page_text import series_of
from run_folders import SMALL, write_comparison

from fedcohort.cli.pages import load_findings
from fedcohort.lab import folder as run_folder
from fedcohort.reports.html.page import page

KINDS = ["iid data, paper rule", "primary-label data, paper rule"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a page, the records that it was made from, and their folder."""
    folder = tmp_path_factory.mktemp("comparison")
    records = write_comparison(folder)
    records["accuracy"][[0, 5]] = np.nan  # two rounds without a test
    run_folder.save_records(folder, 0, records)
    text = page(load_findings(folder))
    return text, records, folder


def mean(values):
    return sum(values) / len(values)


def spread(values):
    squares = [(value - mean(values)) ** 2 for value in values]
    return sqrt(sum(squares) / (len(values) - 1))


def schemes(text, figure):
    """Yield the kind, the rows of the batch axis and the columns of every scheme of a figure."""
    panels = series_of(text, figure)
    assert sorted(panels) == KINDS
    for partition, kind in enumerate(KINDS):
        assert list(panels[kind]) == list(SMALL.selectors)
        for place, (name, data) in enumerate(panels[kind].items()):
            first = 6 * place + 3 * partition
            yield kind, name, [first, first + 1, first + 2], data


def assert_lines(text, figure, y, rounds, values_of):
    """Check the lines of a figure; `values_of` returns the values of one run by round."""
    ends = {kind: [] for kind in KINDS}
    for kind, name, rows, data in schemes(text, figure):
        assert data["round"] == rounds
        runs = [values_of(row) for row in rows]
        columns = [[run[round - 1] for run in runs] for round in rounds]
        assert data[y] == pytest.approx([mean(one) for one in columns], rel=1e-4)
        spreads = [spread(one) for one in columns]
        assert data["sd over seeds"] == pytest.approx(spreads, rel=1e-3, abs=1e-12)
        ends[kind].append((mean(columns[-1]), name))
    for values in ends.values():
        words = ", ".join(f"{name} {value:.4g}" for value, name in sorted(values)[::-1])
        assert f"At the end, {y}: {words}." in text


def test_lines_over_rounds_are_means_over_the_seeds_of_a_scheme(made):
    text, records, _ = made
    tested = [2, 3, 4, 5, 7, 8, 9, 10, 11, 12]
    assert_lines(
        text, "accuracy-rounds", "test accuracy", tested, lambda row: records["accuracy"][:, row]
    )
    used = records["valid"].sum(axis=2).tolist()

    def used_so_far(row):
        return [sum(used[n][row] for n in range(round + 1)) for round in range(12)]

    assert_lines(text, "cep", "updates used so far", list(range(1, 13)), used_so_far)
    assert_lines(
        text,
        "success",
        "success ratio",
        list(range(1, 13)),
        lambda row: [used / (3 * n) for n, used in enumerate(used_so_far(row), start=1)],
    )


def test_the_curve_over_time_has_at_each_moment_what_was_tested_last(made):
    text, records, _ = made
    for _, _, rows, line in schemes(text, "accuracy-time"):
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
        moments = line["virtual seconds"]
        assert len(moments) == 12
        assert moments[0] == pytest.approx(max(own[0][0] for own in tests), rel=1e-4)
        assert moments[-1] == pytest.approx(min(own[-1][0] for own in tests), rel=1e-4)
        for moment, value in list(zip(moments, line["test accuracy"], strict=True))[1:-1]:
            known = [[one for when, one in own if when <= moment][-1] for own in tests]
            assert value == pytest.approx(mean(known), rel=1e-4)


def test_boxes_bars_and_dots_are_those_of_a_scheme(made):
    text, records, _ = made
    counts = {}
    for row in range(12):
        asked = records["clients"][:, row].ravel().tolist()
        counts[row] = [asked.count(client) for client in range(8)]

    for _, _, rows, boxes in schemes(text, "selections"):
        assert boxes["success rate"] == [0.1, 0.3, 0.6, 0.9]
        for group in range(4):
            pooled = []
            for row in rows:
                pooled += counts[row][2 * group : 2 * group + 2]
            pooled.sort()
            box = [boxes[part][group] for part in ("least", "median", "most")]
            assert box == pytest.approx([pooled[0], (pooled[2] + pooled[3]) / 2, pooled[5]])

    for _, name, rows, bar in schemes(text, "wasted"):
        wasted = [sum(records["wasted_seconds"][:, row].tolist()) for row in rows]
        assert bar["scheme"] == [name]
        assert bar["wasted client-seconds"] == pytest.approx([mean(wasted)], rel=1e-4)
        assert bar["sd over seeds"] == pytest.approx([spread(wasted)], rel=1e-4)
        words = f"{name} {mean(wasted):.0f} ± {spread(wasted):.0f}"
        assert words in text

    for _, _, rows, dot in schemes(text, "fairness"):
        fairness = [36**2 / (8 * sum(count**2 for count in counts[row])) for row in rows]
        accuracy = [records["accuracy"][-1, row] for row in rows]
        assert dot["Jain's index"] == pytest.approx([mean(fairness)], rel=1e-4)
        assert dot["final accuracy"] == pytest.approx([mean(accuracy)], rel=1e-4)
        assert dot["sd of Jain's index"] == pytest.approx([spread(fairness)], rel=1e-4)
        assert dot["sd of final accuracy"] == pytest.approx([spread(accuracy)], rel=1e-4)

    for _, _, rows, dots in schemes(text, "left-out"):
        assert dots["success rate"] == ["10\u00a0%", "30\u00a0%", "60\u00a0%", "90\u00a0%"]
        for group in range(4):
            values = [float(records["class_accuracy"][-1, row, group]) for row in rows]
            assert dots["final accuracy"][group] == pytest.approx(mean(values), rel=1e-4)
            assert dots["sd over seeds"][group] == pytest.approx(spread(values), rel=1e-3)

    for _, _, rows, dots in schemes(text, "labels-left-out"):
        assert dots["label"] == list(range(records["label_accuracy"].shape[-1]))
        for label in range(records["label_accuracy"].shape[-1]):
            values = [float(records["label_accuracy"][-1, row, label]) for row in rows]
            assert dots["final accuracy"][label] == pytest.approx(mean(values), rel=1e-4)


def test_probabilities_and_owners_are_those_of_the_folder(made):
    text, _, folder = made
    ((path, stored),) = run_folder.load_allocations(folder)
    assert path.exists()
    heat = series_of(text, "probabilities")["e3cs-0.5"]["e3cs-0.5"]
    assert heat["round"] == list(range(1, 13)) * 8
    assert heat["client"] == [client for client in range(8) for _ in range(12)]
    chances = stored["e3cs-0.5/inclusion"].T.astype(float).ravel().tolist()
    assert heat["probability"] == pytest.approx(chances, abs=0.0006)
    capped = stored["e3cs-0.5/capped"].T
    assert heat["capped"] == capped.ravel().tolist()
    assert capped.any()
    assert "of the first" in text
    assert "in the order of the rates in the settings" in text

    rng = np.random.default_rng(1)  # as the folder was written
    owners = series_of(text, "owners")
    for partition in ("iid", "primary-label"):
        owned = rng.integers(0, 9, (8, 4)).tolist()
        assert list(owners[partition]) == [f"label {label}" for label in range(4)]
        for label, layer in enumerate(owners[partition].values()):
            assert layer["client"] == list(range(8))
            assert layer["samples"] == [own[label] for own in owned]


def test_every_figure_names_its_axes(made):
    text, _, _ = made
    axes = {
        "accuracy-rounds": ("round", "test accuracy"),
        "accuracy-time": ("virtual seconds", "test accuracy"),
        "left-out": ("how often the class answers", "final accuracy"),
        "labels-left-out": ("label", "final accuracy"),
        "success": ("round", "success ratio"),
        "cep": ("round", "updates used so far"),
        "selections": ("success rate of the class", "times asked"),
        "probabilities": ("round", "client"),
        "owners": ("client", "samples"),
        "wasted": ("wasted client-seconds",),
        "fairness": ("fairness (Jain&#x27;s index)", "final accuracy"),
    }
    for figure, titles in axes.items():
        drawn = text[text.index(f'<figure id="{figure}"') :].split("</figure>")[0]
        for title in titles:
            assert f">{title}</text>" in drawn
