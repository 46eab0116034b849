import numpy as np

from fedcohort.lab.recorder import Allocations
from fedcohort.reports.charts.clients import (
    MAX_CLIENTS,
    inclusion_probabilities,
    labels_per_client,
    outcomes_per_client,
    selections_per_class,
)


def allocations(num_clients):
    inclusion = np.linspace(0.1, 0.9, 2 * num_clients).reshape(2, num_clients)
    return {"e3cs-0": Allocations(np.array([0, 4]), inclusion, inclusion > 0.8)}


def test_the_boxes_of_a_scheme_pool_the_seeds_of_each_class():
    counts = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    chart = selections_per_class({"all": {"random": counts}}, np.array([0, 0, 1, 1]), (0.1, 0.9))
    (boxes,) = chart.panels["all"].series
    assert boxes.labels == ["0.1", "0.9"]
    assert [sorted(values.tolist()) for values in boxes.values] == [[1, 2, 5, 6], [3, 4, 7, 8]]
    words = "Median times asked, by class of success rate 0.1/0.9: random 3.5/5.5."
    assert chart.panels["all"].words == words


def test_classes_that_answer_equally_often_are_told_apart():
    """In the world `swap` the first class answers as often as the last, over all rounds."""
    rates = (0.5, 0.4500001, 0.45, 0.5)
    chart = selections_per_class({"all": {"random": np.eye(4)}}, np.arange(4), rates)
    (boxes,) = chart.panels["all"].series
    labels = ["0.5 (class 1)", "0.45 (class 2)", "0.45 (class 3)", "0.5 (class 4)"]
    assert boxes.labels == labels
    assert f"by class of success rate {'/'.join(labels)}: random" in chart.panels["all"].words


def test_probabilities_have_one_panel_per_scheme_and_rounds_from_one():
    chart = inclusion_probabilities(allocations(3), ["a", "b", "c"])
    (heat_map,) = chart.panels["e3cs-0"].series
    assert heat_map.rounds.tolist() == [1, 5]
    assert heat_map.clients == ["a", "b", "c"]
    assert heat_map.probabilities.shape == heat_map.marked.shape == (3, 2)
    assert "first seed" not in chart.caption
    assert "1 of 3 clients are capped" in chart.panels["e3cs-0"].words


def test_a_large_federation_is_shown_by_clients_evenly_spread():
    chart = inclusion_probabilities(allocations(1000))
    assert len(chart.panels["e3cs-0"].series[0].clients) == MAX_CLIENTS
    assert chart.caption.endswith("120 of 1,000 clients, evenly spread.")


def test_all_owners_are_drawn_unless_their_number_is_limited():
    owners = {"iid": np.ones((200, 3), dtype=np.int64)}
    everyone = labels_per_client(owners)
    some = labels_per_client(owners, max_clients=50)
    assert [len(layer.labels) for layer in everyone.panels["iid"].series] == [200] * 3
    assert [len(layer.labels) for layer in some.panels["iid"].series] == [50] * 3
    drawn = some.panels["iid"].series[0].labels
    assert (drawn[0], drawn[-1]) == (0, 199)
    assert set(np.diff(drawn).tolist()) == {4, 5}
    assert "evenly spread" not in everyone.caption
    assert some.caption.endswith("50 of 200 clients, evenly spread.")


def test_outcomes_that_we_do_not_know_come_last():
    outcomes = {"a": {"odd": 2}, "b": {"arrived": 1, "lost": 3}, "c": {}}
    chart = outcomes_per_client(outcomes)
    layers = chart.panels["all"].series
    assert [layer.name for layer in layers] == ["arrived", "lost", "odd"]
    assert layers[0].heights.tolist() == [0, 1, 0]
    assert chart.panels["all"].words == "3 clients, in all: arrived 1, lost 3, odd 2."


def test_nothing_recorded_gives_no_panels():
    assert not inclusion_probabilities({}).panels
    assert not labels_per_client({}).panels
    assert not outcomes_per_client({}).panels


def test_the_share_of_the_most_frequent_label_is_that_of_the_median_client():
    # The clients own 3 of 4, 2 of 2 and 5 of 10 samples of their most frequent label.
    owners = {"iid": np.array([[3, 1], [0, 2], [5, 5]])}
    assert labels_per_client(owners).panels["iid"].words == (
        "iid: 3 clients own 2 to 10 samples. For the median client, 75\u00a0% of them "
        "have its most "
        "frequent label."
    )
