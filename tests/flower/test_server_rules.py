"""The small rules of the server at their bounds, and a whole run told line by line."""

import json

import numpy as np
import pytest
from fakes import federation, record, returned
from flwr.app import ConfigRecord, Error, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from helpers import RecordingSelector, cohort_strategy, initial

from fedcohort.flower.errors import FAILED, NOT_TAKEN, STOPPED, TROUBLE, UNREADABLE
from fedcohort.flower.journal import Totals, round_row
from fedcohort.flower.limits import Limits, ReplyRules
from fedcohort.flower.replies import EVALUATION_CHECKS, Reply
from fedcohort.flower.text import natural_key
from fedcohort.flower.verdicts import Verdict, verdict_of_error


def complaint(content, **limits):
    """Return why an evaluation does not count; empty if it does."""
    reply = Reply(content, ReplyRules(Limits(**limits)))
    try:
        for check in EVALUATION_CHECKS:
            check(reply)
    except ValueError as error:
        return str(error)
    return ""


def answer(metrics=None, **records):
    return RecordDict({"m": MetricRecord({"num-examples": 3, **(metrics or {})}), **records})


def test_a_reply_has_at_most_a_hundred_records():
    for more, why in ((99, ""), (100, "expected at most 100 records, got 101")):
        configs = {f"c{number}": ConfigRecord() for number in range(more)}
        assert complaint(answer(**configs)) == why


def test_names_may_be_as_long_as_the_limit_says():
    assert complaint(answer({"x" * 12: 1}), longest_name=12) == ""
    assert complaint(answer({"x" * 13: 1}), longest_name=12) == (
        f"names of metrics must have at most 12 characters, got '{'x' * 13}'"
    )
    assert complaint(answer(**{"y" * 12: ConfigRecord()}), longest_name=12) == ""
    assert complaint(answer(**{"y" * 13: ConfigRecord()}), longest_name=12) == (
        f"names of records must have at most 12 characters, got '{'y' * 13}'"
    )


def test_an_empty_text_of_a_configuration_has_a_size_too():
    for texts, why in ((99, ""), (100, "configurations must have at most 100 bytes, got 101")):
        config = ConfigRecord({"x": [""] * texts})
        assert complaint(answer(c=config), most_config_bytes=100) == why


def test_a_list_of_metrics_counts_with_its_length():
    assert complaint(answer({"a": [1, 2, 3], "b": 0.5}), most_metrics=5) == ""
    assert complaint(answer({"a": [1, 2, 3, 4], "b": 0.5}), most_metrics=5) == (
        "expected at most 5 metric values, got 6"
    )
    names = dict.fromkeys("abcde", 1)
    assert complaint(answer(names), most_metrics=6) == ""
    assert complaint(answer(names), most_metrics=5) == "expected at most 5 metrics, got 6"


def test_the_bytes_of_all_configurations_are_added_up():
    # Names of 1 + 2 + 1 letters, a text of 5, bytes of 2, a list of 3 + 1, and two numbers of 8.
    first = ConfigRecord({"a": "hello", "bc": [1.5, 2.0]})
    second = ConfigRecord({"d": ["abc", "d"]})
    third = ConfigRecord({"": b"xy"})
    size = (1 + 5) + (2 + 8 + 8) + (1 + 3 + 1) + 2
    content = answer(one=first, two=second, three=third)
    assert complaint(content, most_config_bytes=size) == ""
    assert complaint(content, most_config_bytes=size - 1) == (
        f"configurations must have at most {size - 1} bytes, got {size}"
    )


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (STOPPED, "stopped", "why"),
        (FAILED, "failed", "why"),
        (UNREADABLE, "rejected", "why"),
        (NOT_TAKEN, "lost", "why"),
        (TROUBLE, "unknown", "why"),
        (3, "lost", "no answer by the deadline"),
        (5, "lost", "its node is gone"),
        (8, "lost", "its app crashed"),
        (2, "failed", "why"),
    ],
)
def test_the_code_of_an_error_says_what_came_of_the_client(code, status, reason):
    verdict = verdict_of_error(Error(code, "first line\nwhy\n"))
    assert (verdict.status, verdict.reason) == (status, reason)
    assert (verdict.reply, verdict.model, verdict.seconds) == (None, None, None)


def row_of(number, probabilities, **more):
    totals = Totals()
    verdicts = [Verdict("arrived"), Verdict("unknown"), Verdict("rejected"), Verdict("arrived")]
    totals.add(["a", "b", "c", "d"], verdicts)
    return round_row(
        number,
        seconds=1.23456,
        clients=["a", "b", "c", "d"],
        inclusion=[1 / 3] * 4,
        verdicts=verdicts,
        known=["a", "b", "c", "d"],
        totals=totals,
        probabilities=probabilities,
        **more,
    )


def test_a_row_counts_what_is_known_and_has_more_keys_only_where_there_is_more_to_say():
    row = row_of(7, None)
    assert (row["round"], row["seconds"], row["arrived"], row["cep"]) == (7, 1.235, 2, 2)
    assert row["success_ratio"] == 2 / 3  # nobody knows what came of b
    assert row["asked"][0]["inclusion"] == 0.333333
    assert {"trouble", "paused", "resting", "error"}.isdisjoint(row)
    more = row_of(7, None, troubles=["t"], paused=2.34567, resting=["z"], error="e")
    told = {name: more[name] for name in ("trouble", "paused", "resting", "error")}
    assert told == {"trouble": ["t"], "paused": 2.346, "resting": ["z"], "error": "e"}
    assert "absent" not in row
    assert row_of(7, None, absent=["z"])["absent"] == ["z"]
    assert "absent" not in row_of(7, None, absent=[str(number) for number in range(201)])


def test_more_than_two_hundred_probabilities_are_summarised():
    few = {str(number): 0.5 for number in range(200)}
    assert row_of(1, few)["probabilities"] == few
    assert "probability_summary" not in row_of(1, few)
    # 0, 0, 0.002, 0.003, … 0.2: the quarters of 200 steps are values of their own.
    many = {str(number): number / 1000 for number in range(201)}
    many["1"] = 0.0
    row = row_of(1, many)
    assert row["probabilities"] is None
    assert row["probability_summary"] == {
        "clients": 201,
        "available": 199,
        "smallest": 0.0,
        "lower_quartile": 0.05,
        "median": 0.1,
        "upper_quartile": 0.15,
        "largest": 0.2,
    }


def test_names_are_sorted_as_people_count():
    names = ["b1", "a10", "a2", "a02x", "a", "10", "9", "a2b", "a1b10", "a1b9"]
    in_order = ["9", "10", "a", "a1b9", "a1b10", "a2", "a2b", "a02x", "a10", "b1"]
    assert sorted(names, key=natural_key) == in_order


def broken(message):
    return returned(record(w=np.zeros(3)), {"num-examples": 3})


def test_half_of_the_clients_may_rest_but_not_more(clock):
    for number_broken, available in ((2, [2, 3]), (3, None)):
        grid = federation(clock, 4)
        for number in range(number_broken):
            grid.clients[100 + number].train = broken
        selector = RecordingSelector(4, 4)
        cohort_strategy(FedAvg(fraction_evaluate=0.0), selector, None).start(grid, initial(), 4)
        assert selector.available == [None, None, None, available]


def test_the_journal_and_the_log_tell_a_round_of_everything(clock, tmp_path, logged):
    grid = federation(clock, 5)
    grid.clients[101].train = broken
    grid.clients[102].train = lambda message: Error(2, "Traceback\nKeyError: 'x'")
    grid.clients[103].train = lambda message: None
    grid.clients[104].delay = 2.0
    run = cohort_strategy(
        FedAvg(fraction_evaluate=0.0), "e3cs-0.5", 5, folder=tmp_path, deadline=5.0
    )
    run.start(grid, initial(), 2)
    rows = [json.loads(line) for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]
    expected = {
        "0": "arrived",
        "1": "rejected",
        "2": "failed",
        "3": "lost",
        "4": "arrived",
    }
    for number, row in enumerate(rows, start=1):
        assert row["round"] == number
        assert {one["client"]: one["status"] for one in row["asked"]} == expected
        reasons = {one["client"]: one["reason"] for one in row["asked"]}
        assert reasons["2"] == "KeyError: 'x'"
        assert reasons["3"] == "no answer by the deadline"
        assert reasons["0"] == reasons["4"] == ""
        seconds = {one["client"]: one["seconds"] for one in row["asked"]}
        assert seconds["4"] == pytest.approx(2.0, abs=0.5)
        assert seconds["0"] < 1.0
        assert seconds["1"] is seconds["2"] is seconds["3"] is None
        assert {one["inclusion"] for one in row["asked"]} == {1.0}
        assert row["probabilities"] == dict.fromkeys("01234", 1.0)
        assert (row["arrived"], row["cep"]) == (2, 2 * number)
        assert (row["success_ratio"], row["fairness"]) == (0.4, 1.0)
        assert row["seconds"] == pytest.approx(5.0, abs=0.5)
        named = ", ".join(f"{one['client']} {one['status']}" for one in row["asked"])
        assert f"INFO: round {number}: {named}" in logged
    assert not any("nobody returned" in line for line in logged)


@pytest.mark.parametrize(("errs", "warned"), [(False, True), (True, False)])
def test_a_round_in_which_nobody_was_in_time_gets_a_warning(clock, logged, errs, warned):
    grid = federation(clock, 3)
    for client in grid.clients.values():
        client.train = lambda message: None
    if errs:  # a failure came in time, so the deadline is not to blame
        grid.clients[100].train = lambda message: Error(2, "no")
    cohort_strategy(deadline=5.0).start(grid, initial(), 1)
    line = "WARNING: round 1: nobody returned within the deadline of 5 s"
    assert (line in logged) == warned
