"""Nothing that a client sends ends a run, harms another client, or fills the disk."""

import json

import numpy as np
import pytest
from fakes import federation, learner, record, same
from flwr.app import ConfigRecord, Error, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg, FedMedian
from helpers import initial
from hostile import (
    HOSTILE,
    attacked_federation,
    failing,
    hostile_evaluations,
    npy,
    reply_with,
)

from fedcohort.flower import CohortStrategy, text

STRATEGIES = {"FedAvg": FedAvg, "FedMedian": FedMedian, "FedAdam": FedAdam}
HONEST = {"0", "1", "2", "3"}


def play(clock, folder, strategy, answer, rounds=4):
    """Play two rounds, resume for the others, and return the last model and the journal."""
    for last in (2, rounds):
        run = CohortStrategy(
            strategy(fraction_evaluate=0.0),
            "random",
            5,
            deadline=5.0,
            wait=10.0,
            folder=folder,
            resume=last > 2,
        )
        arrays = run.start(attacked_federation(clock, answer), initial(), last).arrays
    return arrays, read_journal(folder)


def read_journal(folder):
    return [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]


def statuses(row):
    return {asked["client"]: asked["status"] for asked in row["asked"]}


@pytest.fixture(scope="module")
def models_without_it():
    """The last model of each strategy if the client fails instead; filled when first needed."""
    return {}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_reply_costs_only_its_client_before_and_after_a_resume(
    clock, tmp_path, kind, strategy, models_without_it
):
    arrays, rows = play(clock, tmp_path / "hostile", STRATEGIES[strategy], HOSTILE[kind])
    assert [row["round"] for row in rows] == [1, 2, 3, 4]
    for row in rows:
        told = statuses(row)
        assert told.pop("4", "rejected") == "rejected"
        assert told == dict.fromkeys(sorted(HONEST), "arrived")
        assert len(json.dumps(row)) < 2_000
    assert statuses(rows[0])["4"] == statuses(rows[2])["4"] == "rejected"
    assert (tmp_path / "hostile" / "checkpoint.safetensors").stat().st_size < 20_000

    if strategy not in models_without_it:
        failed, _ = play(clock, tmp_path / "failing", STRATEGIES[strategy], failing)
        models_without_it[strategy] = failed
    assert same(arrays, models_without_it[strategy])


@pytest.mark.parametrize("kind", hostile_evaluations())
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_hostile_evaluation_costs_only_its_client(clock, kind, strategy, logged):
    grid = federation(clock, 4)
    grid.clients[103].evaluate = lambda message: hostile_evaluations()[kind]
    run = CohortStrategy(STRATEGIES[strategy](), "random", 4, deadline=5.0, wait=10.0)
    metrics = run.start(grid, initial(), 2).evaluate_metrics_clientapp
    # clients 0, 1 and 2 with 1, 2 and 3 examples and accuracies of 0, 0.1 and 0.2
    assert [dict(metrics[number]) for number in (1, 2)] == [
        {"accuracy": pytest.approx(0.8 / 6)}
    ] * 2
    complaints = [line for line in logged if "an evaluation does not count: client 3" in line]
    assert len(complaints) == 2
    assert all(len(line) < 1_000 for line in complaints)


def test_the_text_of_an_error_is_cut_before_it_is_made_printable(clock, tmp_path, monkeypatch):
    lengths = []
    isprintable = str.isprintable

    def watched(text):
        lengths.append(len(text))
        return isprintable(text)

    monkeypatch.setattr(text, "is_printable", watched)
    _, rows = play(clock, tmp_path, FedAvg, lambda: Error(2, "\x1b" * 5_000_000))
    reason = rows[0]["asked"][-1]["reason"]
    assert 0 < len(reason) <= 500
    assert set(reason) == {"?"}
    assert sum(lengths) <= 5 * 500


class Picky(FedAvg):
    """Cannot aggregate replies with a certain loss, and breaks its own memory when it tries."""

    def __init__(self, unwanted, **options):
        super().__init__(**options)
        self.unwanted = set(unwanted)
        self.history = {"rounds": []}
        self.tries = 0

    def refuse(self, server_round, replies):
        self.tries += 1
        self.history["rounds"].append(server_round)
        for reply in replies:
            if next(iter(reply.content.metric_records.values()))["num-examples"] in self.unwanted:
                self.broken = True
                raise KeyError("a strategy may raise anything")

    def aggregate_train(self, server_round, replies):
        self.refuse(server_round, replies)
        return super().aggregate_train(server_round, replies)


class PickyInEvaluation(Picky):
    def aggregate_train(self, server_round, replies):
        return FedAvg.aggregate_train(self, server_round, replies)

    def aggregate_evaluate(self, server_round, replies):
        self.refuse(server_round, replies)
        return super().aggregate_evaluate(server_round, replies)


@pytest.mark.parametrize("unwanted", [{1}, {5}, {2, 4}, {1, 2, 5}, {1, 2, 3, 4}])
def test_replies_that_the_strategy_cannot_aggregate_are_left_out(clock, tmp_path, unwanted):
    """Learner i has i + 1 examples."""
    picky = Picky(unwanted, fraction_evaluate=0.0)
    run = CohortStrategy(picky, "random", 5, deadline=5.0, wait=10.0, folder=tmp_path)
    arrays = run.start(federation(clock, 5), initial(), 1).arrays

    kept = FedAvg(fraction_evaluate=0.0)
    others = federation(clock, 5, lambda client, round: client + 1 in unwanted)
    expected = CohortStrategy(kept, "random", 5, deadline=5.0, wait=10.0).start(
        others, initial(), 1
    )
    assert same(arrays, expected.arrays)
    (row,) = read_journal(tmp_path)
    for asked in row["asked"]:
        if int(asked["client"]) + 1 in unwanted:
            assert asked["status"] == "rejected"
            assert "the strategy cannot aggregate it: KeyError" in asked["reason"]
        else:
            assert asked["status"] == "arrived"
    assert row["arrived"] == run.training.totals.arrived == 5 - len(unwanted)
    assert picky.history == {"rounds": [1]}
    assert picky.tries == 1
    assert not hasattr(picky, "broken")


def test_if_the_strategy_can_aggregate_nothing_the_round_fails_and_the_run_goes_on(clock, tmp_path):
    picky = Picky({1, 2, 3}, fraction_evaluate=0.0)
    run = CohortStrategy(picky, "random", 3, deadline=5.0, wait=10.0, folder=tmp_path)
    assert same(run.start(federation(clock, 3), initial(), 2).arrays, initial())
    rows = read_journal(tmp_path)
    assert [statuses(row) for row in rows] == [dict.fromkeys("012", "arrived")] * 2
    assert [row["error"] for row in rows] == ["KeyError: 'a strategy may raise anything'"] * 2
    assert (picky.history, picky.tries) == ({"rounds": []}, 0)


def test_evaluations_that_the_strategy_cannot_average_are_left_out(clock, logged):
    picky = PickyInEvaluation({2})
    run = CohortStrategy(picky, "random", 3, deadline=5.0, wait=10.0)
    metrics = run.start(federation(clock, 3), initial(), 1).evaluate_metrics_clientapp
    # clients 0 and 2 with 1 and 3 examples and accuracies of 0 and 0.2
    assert metrics[1]["accuracy"] == pytest.approx(0.15)
    assert any("an evaluation does not count: client 1: the strategy" in line for line in logged)
    assert (picky.history, picky.tries) == ({"rounds": [1]}, 1)


def test_if_no_evaluation_can_be_averaged_there_is_none_and_the_run_goes_on(clock, logged):
    run = CohortStrategy(PickyInEvaluation({1, 2, 3}), "random", 3, deadline=5.0, wait=10.0)
    result = run.start(federation(clock, 3), initial(), 2)
    assert result.evaluate_metrics_clientapp == {}
    assert sum("cannot average the evaluations" in line for line in logged) == 2


def test_the_strategy_gets_arrays_that_the_server_has_written(clock):
    """A client writes an array in an unusual but valid way; the strategy sees NumPy's own."""
    seen = []

    class Watching(FedAvg):
        def aggregate_train(self, server_round, replies):
            for reply in replies:
                array = reply.content.array_records["arrays"]["b"]
                seen.append((array.data, array.dtype, array.shape))
            return super().aggregate_train(server_round, replies)

    grid = federation(clock, 3)
    body = np.array([2.5]).tobytes()
    grid.clients[102].train = lambda message: reply_with(npy("(1,   )", body=body))
    run = CohortStrategy(Watching(fraction_evaluate=0.0), "random", 3, deadline=5.0, wait=10.0)
    run.start(grid, initial(), 1)
    own = record(b=np.array([2.5]))["b"]
    assert seen[2] == (own.data, "float64", (1,))


def test_records_of_configs_reach_the_strategy(clock):
    seen = []

    class Reading(FedAvg):
        def aggregate_train(self, server_round, replies):
            seen.extend(reply.content["notes"]["device"] for reply in replies)
            return super().aggregate_train(server_round, replies)

    grid = federation(clock, 2)
    for number in range(2):
        sound = learner(number).train

        def train(message, sound=sound, number=number):
            content: RecordDict = sound(message)
            content["notes"] = ConfigRecord({"device": f"phone {number}"})
            return content

        grid.clients[100 + number].train = train
    run = CohortStrategy(Reading(fraction_evaluate=0.0), "random", 2, deadline=5.0, wait=10.0)
    run.start(grid, initial(), 1)
    assert seen == ["phone 0", "phone 1"]
