"""Rounds that close at the m-th valid answer, and what becomes of the others."""

import json

import numpy as np
import pytest
from fakes import FakeClient, federation, learner, record, returned
from flwr.app import RecordDict
from flwr.serverapp.strategy import FedAvg
from helpers import STOCK, RecordingSelector, cohort_strategy, initial, journal

from fedcohort.flower import CohortStrategy
from fedcohort.selection.over_selection import OverSelection


def delayed(clock, *delays, fails=lambda client, round: False):
    """Clients 0, 1, … that answer after so many seconds."""
    grid = federation(clock, len(delays), fails)
    for client, delay in zip(grid.clients.values(), delays, strict=True):
        client.delay = delay
    return grid


def fates(row):
    return {asked["client"]: asked["status"] for asked in row["asked"]}


def played(clock, grid, folder, rounds=1, **options):
    size = len(grid.nodes)
    options = {"cohort_size": size, "deadline": 60.0, "folder": folder, **options}
    strategy = cohort_strategy(**options)
    strategy.start(grid, initial(), num_rounds=rounds)
    return strategy, journal(folder, keep_seconds=True)


def test_a_round_closes_at_the_answer_that_makes_enough(clock, tmp_path):
    grid = delayed(clock, 1.0, 30.0, 2.0, 40.0)
    start = clock.now
    strategy, (row,) = played(clock, grid, tmp_path, enough=2)
    assert fates(row) == {"0": "arrived", "1": "unneeded", "2": "arrived", "3": "unneeded"}
    assert 2.0 <= row["seconds"] < 3.0
    assert clock.now - start < 10.0, "the end of the run waits a little for late answers, no longer"
    assert row["success_ratio"] == 1.0, "whoever was not waited for did not fail"
    assert strategy.training.totals.sent == 2


def test_only_answers_that_count_make_enough(clock, tmp_path):
    grid = delayed(clock, 1.0, 2.0, 3.0, 50.0, fails=lambda client, round: client == 0)
    nan = {"w": np.full((2, 2), np.nan), "b": np.array([0.0])}
    grid.clients[101].train = lambda message: returned(record(**nan), {"num-examples": 1})
    grid.join(104, learner(4))
    grid.clients[104].delay = 4.0
    _, (row,) = played(clock, grid, tmp_path, enough=2)
    assert fates(row) == {
        "0": "failed",
        "1": "rejected",
        "2": "arrived",
        "3": "unneeded",
        "4": "arrived",
    }
    assert 4.0 <= row["seconds"] < 5.0


def test_a_reply_far_from_the_others_does_not_make_enough(clock, tmp_path):
    grid = delayed(clock, 1.0, 1.0, 1.0, 1.5, 3.0, 50.0)
    far = {"w": np.full((2, 2), 1e9), "b": np.array([0.0])}
    grid.clients[103].train = lambda message: returned(
        record(**far), {"num-examples": 1, "train_loss": 1.0}
    )
    _, (row,) = played(clock, grid, tmp_path, enough=4)
    assert fates(row)["3"] == "rejected"
    assert fates(row)["4"] == "arrived"
    assert fates(row)["5"] == "unneeded"


def test_with_too_few_answers_the_deadline_decides(clock, tmp_path):
    grid = delayed(clock, 1.0, 90.0, 90.0)
    _, (row,) = played(clock, grid, tmp_path, enough=2)
    assert fates(row) == {"0": "arrived", "1": "lost", "2": "lost"}
    assert 60.0 <= row["seconds"] < 62.0


class Recording(RecordingSelector):
    def update(self, outcome):
        self.told = outcome
        super().update(outcome)


def test_selectors_are_told_who_was_not_waited_for(clock):
    selector = Recording(4, 4)
    strategy = cohort_strategy(selector=selector, cohort_size=4, deadline=60.0, enough=2)
    grid = delayed(clock, 1.0, 30.0, 2.0, 0.5, fails=lambda client, round: client == 3)
    strategy.start(grid, initial(), num_rounds=1)
    outcome = selector.told
    assert outcome.success.tolist() == [1, 0, 1, 0]
    assert outcome.censored.tolist() == [False, True, False, False], "client 3 failed, 1 did not"
    assert outcome.seconds[1] == pytest.approx(2.0, abs=0.5)


def test_a_client_at_work_on_a_closed_round_is_not_asked_and_its_late_answer_is_discarded(
    clock, tmp_path
):
    grid = delayed(clock, 1.0, 1.0, 9.0)
    strategy, rows = played(clock, grid, tmp_path, rounds=12, enough=2)
    assert fates(rows[0]) == {"0": "arrived", "1": "arrived", "2": "unneeded"}
    assert [list(fates(row)) for row in rows[1:5]] == [["0", "1"]] * 4, "it is busy"
    told = [row for row in rows if "late" in row]
    assert told, "what became of it stands in the journal"
    (late,) = told[0]["late"]
    assert (late["client"], late["round"], late["status"]) == ("2", 1, "late")
    assert late["seconds"] == pytest.approx(9.0, abs=0.01)
    place = rows.index(told[0])
    assert "2" in {**fates(rows[place]), **fates(rows[place + 1])}, "and it is asked again"
    assert strategy.training.totals.asked["2"] < 12
    assert 9.0 in strategy.training.deadlines.recent_times(1).answered


def test_a_client_that_dies_in_a_closed_round_is_lost_when_its_time_is_over(clock, tmp_path):
    grid = delayed(clock, 1.0, 1.0, 1.0)
    for node in (100, 101, 102):
        grid.beat(node, clock.now + 30.0)
    grid.clients[102].train = lambda message: None
    _, rows = played(clock, grid, tmp_path, rounds=12, enough=2, deadline=6.0)
    late = [entry for row in rows for entry in row.get("late", [])]
    assert [(entry["client"], entry["status"]) for entry in late] == [("2", "lost")]
    assert sum("2" in fates(row) for row in rows) == 1, "no sign of life, so nobody asks it again"


def test_nothing_is_left_on_the_superlink(clock, tmp_path):
    grid = delayed(clock, 1.0, 1.0, 4.0, 5.0)
    played(clock, grid, tmp_path, rounds=3, enough=2)
    assert grid.left_behind == []


def test_the_end_of_a_run_says_who_is_still_at_work(clock, tmp_path, logged):
    played(clock, delayed(clock, 1.0, 50.0), tmp_path, enough=1)
    assert any("1 clients are still at work on messages of closed rounds" in x for x in logged)


def test_over_selection_by_name_asks_more_and_closes_at_the_cohort_size(clock, tmp_path):
    grid = delayed(clock, *[1.0] * 10, *[30.0] * 4)
    strategy, rows = played(
        clock, grid, tmp_path, selector="over-selection", cohort_size=10, rounds=1
    )
    assert len(rows[0]["asked"]) == 13
    assert rows[0]["arrived"] >= 9
    assert strategy.options.enough == 10


def test_over_selection_resumes_after_clients_joined(clock, tmp_path):
    grid = federation(clock, 5)
    options = {"selector": "over-selection", "cohort_size": 5, "folder": tmp_path}
    cohort_strategy(**options).start(grid, initial(), num_rounds=1)
    grid.join(200, learner(6))
    cohort_strategy(resume=True, **options).start(grid, initial(), num_rounds=2)
    strategy = cohort_strategy(resume=True, **options)
    strategy.start(grid, initial(), num_rounds=3)
    assert (strategy.selector.num_clients, strategy.selector.cohort_size) == (6, 5)


def test_rules_count_only_what_arrived(clock, tmp_path):
    """FedVARP takes what others sent before in place of those who were not waited for."""
    grid = delayed(clock, 1.0, 1.0, 3.0)
    options = {"aggregation": "fedvarp", "enough": 2}
    strategy, rows = played(clock, grid, tmp_path, rounds=3, **options)
    assert fates(rows[0])["2"] == "unneeded"
    assert set(strategy.training.aggregator.memory.state_dict()) >= {"0", "1"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enough": 4}, "enough must be a whole number between 1 and 3, got 4"),
        ({"enough": 0}, "enough must be a whole number between 1 and 3, got 0"),
        ({"enough": 2, "close_early": False}, "close_early must be true where enough is given"),
    ],
)
def test_enough_is_checked(options, message):
    with pytest.raises(ValueError, match=message):
        cohort_strategy(**options)


def test_enough_must_be_that_of_the_selector():
    selector = OverSelection(20, 10, rng=0)
    with pytest.raises(ValueError, match="enough must be the selector's, 10, got 8"):
        CohortStrategy(FedAvg(), selector, enough=8)


def test_a_private_strategy_needs_all_answers():
    with pytest.raises(ValueError, match="enough must be at least num_sampled_clients of the"):
        cohort_strategy(STOCK["DifferentialPrivacy"](3), cohort_size=3, enough=2)


def test_whoever_sends_nonsense_does_not_close_a_round_or_end_it(clock, tmp_path):
    grid = delayed(clock, 1.0, 2.0, 3.0)
    grid.clients[100] = FakeClient("0", train=lambda message: RecordDict(), delay=1.0)
    _, (row,) = played(clock, grid, tmp_path, enough=2)
    assert json.dumps(fates(row)) == json.dumps({"0": "rejected", "1": "arrived", "2": "arrived"})
