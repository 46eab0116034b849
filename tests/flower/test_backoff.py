"""Clients that are rejected again and again are not asked for a while."""

import json

import numpy as np
import pytest
from fakes import federation, learner, record, returned
from flwr.serverapp.strategy import FedAvg
from helpers import RecordingSelector, cohort_strategy, initial

from fedcohort.flower.backoff import LONGEST_REST, BackOff
from fedcohort.flower.clients import Client


def broken(message):
    return returned(record(w=np.zeros(3)), {"num-examples": 3})


def test_rests_double_up_to_the_longest_and_an_accepted_reply_ends_them():
    back_off = BackOff()
    rests = []
    for _ in range(9):
        back_off.record("a", "rejected", 100)
        rests.append(max(0, back_off.resting.get("a", 100) - 100))
    assert rests == [0, 0, 2, 4, 8, 16, 32, 64, LONGEST_REST]
    back_off.record("a", "arrived", 101)
    back_off.record("a", "rejected", 102)
    assert not back_off.rests("a", 103)


@pytest.mark.parametrize("status", ["failed", "lost", "stopped"])
def test_a_client_that_fails_honestly_never_rests(status):
    back_off = BackOff()
    for round in range(20):
        back_off.record("a", status, round)
    assert back_off.resting == {}


def test_a_rest_lasts_through_its_last_round():
    back_off = BackOff()
    for round in (1, 2, 3):
        back_off.record("a", "rejected", round)
    assert [back_off.rests("a", round) for round in (4, 5, 6)] == [True, True, False]


@pytest.mark.parametrize("cuts", [[], [3], [4], [5], [2, 6]])
def test_a_client_that_is_always_rejected_is_asked_less_and_less(clock, tmp_path, cuts):
    """Rejected in rounds 1, 2 and 3 it rests for 2 rounds, after round 6 for 4."""
    for last in [*cuts, 11]:
        grid = federation(clock, 4)
        grid.clients[103].train = broken
        selector = RecordingSelector(4, 4)
        cohort_strategy(
            FedAvg(fraction_evaluate=0.0), selector, None, folder=tmp_path, resume=True
        ).start(grid, initial(), last)
    rows = [json.loads(line) for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]
    asked = [row["round"] for row in rows if any(a["client"] == "3" for a in row["asked"])]
    assert asked == [1, 2, 3, 6, 11]
    assert [row["round"] for row in rows if row.get("resting") == ["3"]] == [4, 5, 7, 8, 9, 10]
    for row in rows:
        assert row["absent"] == row.get("resting", [])
    assert [row["arrived"] for row in rows] == [3] * 11


def test_the_selector_is_told_who_can_be_asked(clock, logged):
    grid = federation(clock, 4)
    grid.clients[103].train = broken
    selector = RecordingSelector(4, 4)
    cohort_strategy(FedAvg(fraction_evaluate=0.0), selector, None).start(grid, initial(), 6)
    assert selector.available == [None, None, None, [0, 1, 2], [0, 1, 2], None]
    assert selector.joined == []
    assert "WARNING: round 4: not asked, because they were rejected again and again: 3" in logged


def test_if_most_are_rejected_all_are_asked_all_the_same(clock):
    grid = federation(clock, 3)
    for client in grid.clients.values():
        client.train = broken
    selector = RecordingSelector(3, 3)
    cohort_strategy(FedAvg(fraction_evaluate=0.0), selector, None).start(grid, initial(), 6)
    assert selector.available == [None] * 6


def test_a_client_is_remembered_by_its_name_not_by_its_node(clock):
    grid = federation(clock, 4)
    attacker = learner(3)
    attacker.train = broken
    grid.clients[103] = attacker
    selector = RecordingSelector(4, 4)

    def restart(round, arrays):
        if round == 3:
            grid.leave(103)
            grid.join(900, attacker)

    cohort_strategy(FedAvg(fraction_evaluate=0.0), selector, None).start(
        grid, initial(), 5, evaluate_fn=restart
    )
    assert selector.available[3] == [0, 1, 2]


def test_the_state_comes_back():
    back_off, again = BackOff(), BackOff()
    for round in (1, 2, 3):
        back_off.record(Client("in").name, "rejected", round)
    again.load_state_dict(back_off.state_dict())
    assert (again.rejections, again.resting) == ({"in": 3}, {"in": 5})
    again.load_state_dict({})
    assert (again.rejections, again.resting) == ({}, {})
