"""Which layout of records is usual: one client never decides it."""

import json

import numpy as np
import pytest
from fakes import federation, learner, record, returned, same
from flwr.app import MetricRecord
from flwr.serverapp.strategy import FedAvg
from helpers import initial

from fedcohort.flower import CohortStrategy
from fedcohort.flower.layouts import Layout, UsualLayout


def read_journal(folder):
    return [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]


def statuses(row):
    return {asked["client"]: asked["status"] for asked in row["asked"]}


def odd(number, **more):
    """A learner that reports metrics of its own from round 1 on."""
    client = learner(number)
    sound = client.train

    def train(message):
        content = sound(message)
        metrics = dict(content["metrics"])
        content["metrics"] = MetricRecord({**metrics, **more})
        return content

    client.train = train
    return client


def updated_after_round_1(number):
    """Return how a client trains whose app then reports one more metric."""
    sound, later = learner(number).train, odd(number, extra=7.0).train

    def train(message):
        first = int(message.content.config_records["config"]["server-round"]) == 1
        return (sound if first else later)(message)

    return train


@pytest.mark.parametrize("place", [0, 1])
def test_in_a_tie_of_layouts_nobody_is_rejected_and_the_extra_metric_is_ignored(
    clock, tmp_path, place
):
    grid = federation(clock, 2)
    grid.clients[100 + place] = odd(place, extra=7.0)
    run = CohortStrategy(
        FedAvg(fraction_evaluate=0.0), "random", 2, deadline=5.0, wait=10.0, folder=tmp_path
    )
    result = run.start(grid, initial(), 2)
    assert [statuses(row) for row in read_journal(tmp_path)] == [dict.fromkeys("01", "arrived")] * 2
    assert [list(result.train_metrics_clientapp[number]) for number in (1, 2)] == [
        ["train_loss"]
    ] * 2
    assert same(
        result.arrays,
        CohortStrategy(FedAvg(fraction_evaluate=0.0), "random", 2, deadline=5.0, wait=10.0)
        .start(federation(clock, 2), initial(), 2)
        .arrays,
    )


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_tie_is_decided_by_the_layout_of_earlier_rounds(clock, tmp_path, place, resumed):
    """All three return in round 1; in round 2 one fails and another is odd."""
    late = (place + 1) % 3
    grid = federation(clock, 3, lambda client, round: client == late and round == 2)
    sound, strange = learner(place), odd(place, extra=7.0)

    def train(message):
        number = int(message.content.config_records["config"]["server-round"])
        return (sound if number == 1 else strange).train(message)

    grid.clients[100 + place].train = train
    for last in [1, 2] if resumed else [2]:
        CohortStrategy(
            FedAvg(fraction_evaluate=0.0),
            "random",
            3,
            deadline=5.0,
            wait=10.0,
            folder=tmp_path,
            resume=last == 2,
        ).start(grid, initial(), last)
    second = statuses(read_journal(tmp_path)[1])
    assert second[str(place)] == "rejected"
    assert second[str((place + 2) % 3)] == "arrived"


def test_a_federation_that_changes_its_metrics_together_is_followed(clock, tmp_path):
    grid = federation(clock, 3)
    for number in range(3):
        grid.clients[100 + number].train = updated_after_round_1(number)
    run = CohortStrategy(
        FedAvg(fraction_evaluate=0.0), "random", 3, deadline=5.0, wait=10.0, folder=tmp_path
    )
    metrics = run.start(grid, initial(), 3).train_metrics_clientapp
    assert run.training.totals.arrived == 9
    assert [sorted(metrics[number]) for number in (1, 2, 3)] == [
        ["train_loss"],
        ["extra", "train_loss"],
        ["extra", "train_loss"],
    ]


def test_an_honest_client_that_answers_alone_after_odd_ones_counts(clock):
    grid = federation(clock, 1)
    grid.clients[100].train = lambda message: returned(
        record(w=np.ones((2, 2)), b=np.ones(1)), {"num-examples": 3}
    )
    run = CohortStrategy(FedAvg(fraction_evaluate=0.0), "random", 1, deadline=5.0, wait=10.0)
    run.start(grid, initial(), 3)
    assert run.training.totals.arrived == 3


def test_one_reply_alone_makes_no_layout_usual_and_two_alike_do():
    layout = Layout("arrays", "metrics", (("loss", -1),))
    alone = UsualLayout()
    assert alone.choose([layout]) is None
    assert alone.usual is None
    assert alone.choose([layout, layout]) == layout
    assert alone.usual == layout


OLD = Layout("arrays", "metrics", (("loss", -1),))
NEW = Layout("arrays", "metrics", (("f1", -1), ("loss", -1)))
OTHER = Layout("arrays", "metrics", ())


@pytest.mark.parametrize(
    ("layouts", "chosen", "usual"),
    [
        ([OLD, NEW, NEW], NEW, NEW),
        ([NEW, NEW], NEW, NEW),
        ([OLD, OLD, NEW], OLD, OLD),
        ([OLD, NEW], OLD, OLD),
        ([OLD, OLD, NEW, NEW], OLD, OLD),
        ([OLD, NEW, OTHER], OLD, OLD),
        ([NEW, OTHER], None, OLD),
        ([NEW], None, OLD),
        ([OLD], OLD, OLD),
    ],
)
def test_more_than_half_of_a_round_replace_the_usual_layout_and_fewer_do_not(
    layouts, chosen, usual
):
    memory = UsualLayout()
    memory.usual = OLD
    assert memory.choose(layouts) == chosen
    assert memory.usual == usual


def test_one_client_that_keeps_the_old_metrics_does_not_reject_the_others(clock, tmp_path):
    """Four of five apps are updated after round 1 and report one more metric."""
    grid = federation(clock, 5)
    for number in range(1, 5):
        grid.clients[100 + number].train = updated_after_round_1(number)
    run = CohortStrategy(
        FedAvg(fraction_evaluate=0.0), "random", 5, deadline=5.0, wait=10.0, folder=tmp_path
    )
    run.start(grid, initial(), 3)
    updated = {"0": "rejected", **dict.fromkeys("1234", "arrived")}
    rows = read_journal(tmp_path)
    assert statuses(rows[0]) == dict.fromkeys("01234", "arrived")
    assert [statuses(row) for row in rows[1:]] == [updated, updated]
