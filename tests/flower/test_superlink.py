"""A SuperLink in trouble: errors that pass, errors that stay, and whom they are booked to."""

import sqlite3

import httpx
import numpy as np
import pytest
from fakes import FakeGrid, answering, federation, grid_of, messages, record, silent
from flwr.app import Error
from helpers import (
    INITIAL,
    RecordingSelector,
    assert_alike,
    cohort_strategy,
    fails,
    initial,
    journal,
    play,
)
from remote import RemoteGrid

from fedcohort.flower import DeadlineGrid
from fedcohort.flower.errors import TROUBLE
from fedcohort.flower.limits import Limits, ReplyRules
from fedcohort.flower.verdicts import judge_training, verdict_of_error

REQUEST = httpx.Request("POST", "http://127.0.0.1:8000/v1/runtime/pull-messages")


def status(code):
    """What Flower's client raises for an HTTP status."""
    return httpx.HTTPStatusError(
        f"Server error '{code}'", request=REQUEST, response=httpx.Response(code, request=REQUEST)
    )


PASSING = {
    "refused": ConnectionRefusedError(111, "Connection refused"),
    "reset": ConnectionResetError(104, "Connection reset by peer"),
    "connect": httpx.ConnectError("All connection attempts failed"),
    "read": httpx.ReadError("reset"),
    "timeout": httpx.ReadTimeout("timed out"),
    "500": status(500),
    "503": status(503),
    "locked": sqlite3.OperationalError("database is locked"),
}


class Trouble:
    """Raises an error at some calls: by kind, the numbers of the calls that fail."""

    def __init__(self, error, **calls):
        self.error = error
        self.calls = calls
        self.counts = {"list": 0, "push": 0, "pull": 0}

    def __call__(self, call):
        self.counts[call] += 1
        return self.error if self.counts[call] in self.calls.get(call, ()) else None


def between(clock, error, start, end):
    """Trouble in a span of time, in seconds from now."""
    begin = clock.now
    return lambda call: error if start <= clock.now - begin < end else None


@pytest.mark.parametrize(
    ("error", "call", "number"),
    [
        *((error, "pull", 5) for error in PASSING.values()),
        *((PASSING["500"], call, number) for call in ("list", "push") for number in (1, 2, 5)),
        (PASSING["500"], "pull", 1),
    ],
)
def test_one_error_that_passes_changes_nothing(clock, tmp_path, error, call, number):
    whole = play(federation(clock, 6, fails), tmp_path / "whole")
    grid = federation(clock, 6, fails)
    grid.trouble = Trouble(error, **{call: {number, number + 1}})
    troubled = play(grid, tmp_path / "troubled")
    for row in troubled[2]:
        row.pop("trouble", None)
    assert_alike(troubled, whole)
    assert grid.left_behind == []


@pytest.mark.parametrize("error", [status(400), status(413), KeyError("x"), MemoryError()])
def test_an_error_that_will_not_pass_is_raised(clock, error):
    grid = grid_of(clock, answering(0.1))
    grid.trouble = Trouble(error, push={1})
    with pytest.raises(type(error)):
        DeadlineGrid(grid, 5.0).send_and_receive(messages(1))


def test_trouble_until_the_deadline_ends_the_round_on_time_and_is_nobodys_failure(clock):
    grid, start = grid_of(clock, answering(0.3), answering(2.0), silent()), clock.now
    grid.trouble = between(clock, status(500), 1.0, 60.0)
    replies = list(DeadlineGrid(grid, 5.0).send_and_receive(messages(1, 2, 3)))
    assert clock.now - start <= 5.0 + 1.5
    verdicts = {}
    for reply in replies:
        if reply.has_error():
            verdicts[reply.metadata.src_node_id] = verdict_of_error(reply.error)
    assert {verdict.status for verdict in verdicts.values()} == {"unknown"}
    assert len(verdicts) == 2
    assert all("SuperLink" in verdict.reason for verdict in verdicts.values())
    assert sum(reply.has_content() for reply in replies) == 1


def test_a_superlink_that_takes_no_message_until_the_deadline_is_nobodys_failure(clock):
    grid, start = grid_of(clock, answering(0.3)), clock.now
    grid.trouble = Trouble(status(500), push=range(1, 1000))
    (reply,) = DeadlineGrid(grid, 5.0).send_and_receive(messages(1))
    assert verdict_of_error(reply.error).status == "unknown"
    assert clock.now - start <= 5.0 + 1.5


def test_messages_of_a_round_that_trouble_cut_are_removed_in_the_next(clock):
    grid = grid_of(clock, silent(), answering(0.2))
    on_time = DeadlineGrid(grid, 5.0)
    grid.trouble = between(clock, status(500), 1.0, 10.0)
    list(on_time.send_and_receive(messages(1)))
    clock.sleep(10.0)
    assert grid.left_behind != []
    list(on_time.send_and_receive(messages(2)))
    assert grid.left_behind == []


def test_in_a_round_with_trouble_the_selector_learns_nothing_from_silence(clock, tmp_path):
    grid = federation(clock, 4)
    grid.clients[103].deaf = False
    for client in grid.clients.values():
        client.delay = 2.0
    strategy = cohort_strategy(
        selector="e3cs-0.5", cohort_size=4, num_clients=4, folder=tmp_path, deadline=5.0
    )
    begun = []
    grid.refuse = lambda message: begun.append(message) if not begun else None

    def trouble(call):
        rounds = [m for m in grid.pushed if m.metadata.message_type == "train"]
        in_second = 4 < len(rounds) <= 8 and call == "pull"
        return status(500) if in_second else None

    grid.refuse = lambda message: False
    grid.trouble = trouble
    states = []
    strategy.start(
        grid,
        initial(),
        num_rounds=3,
        evaluate_fn=lambda round, arrays: states.append(
            strategy.selector.state_dict()["log_weights"]
        ),
    )
    rows = journal(tmp_path)
    assert {asked["status"] for asked in rows[1]["asked"]} == {"unknown"}
    assert "500" in str(rows[1]["trouble"])
    assert "trouble" not in rows[0]
    assert {asked["status"] for asked in rows[2]["asked"]} == {"arrived"}
    np.testing.assert_array_equal(states[2], states[1])
    assert [row["cep"] for row in rows] == [4, 4, 8]
    assert [row["success_ratio"] for row in rows] == [1.0, 1.0, 1.0]


def test_a_run_whose_last_round_is_saved_ends_well_though_the_superlink_is_gone(clock, tmp_path):
    grid = federation(clock, 4)
    gone = []
    grid.trouble = lambda call: httpx.ConnectError("gone") if gone else None
    grid.join(200, silent())
    grid.clients[200].deaf = True  # a question that is open at the end

    def evaluate(round, arrays):
        if round == 2:
            gone.append(True)

    start = clock.now
    strategy = cohort_strategy(folder=tmp_path, num_clients=4)
    result = strategy.start(grid, initial(), num_rounds=2, evaluate_fn=evaluate)
    assert len(journal(tmp_path)) == 2
    assert set(result.arrays) == set(INITIAL)
    assert clock.now - start < 30.0


def test_no_client_can_pretend_that_the_superlink_had_trouble(clock):
    grid = grid_of(clock, answering(0.1, Error(TROUBLE, "trouble!")), answering(0.1))
    replies = DeadlineGrid(grid, 2.0).send_and_receive(messages(1, 2))
    errors = [reply.error for reply in replies if reply.has_error()]
    assert [verdict_of_error(error).status for error in errors] == ["rejected"]


def test_stock_strategies_get_an_error_reply_for_trouble(clock):
    from flwr.serverapp.strategy import FedAvg

    grid = federation(clock, 2)
    grid.trouble = Trouble(status(502), pull=range(2, 1000))
    result = FedAvg(fraction_evaluate=0.0).start(
        DeadlineGrid(grid, 2.0), record(w=[1.0]), num_rounds=1
    )
    assert result.arrays is not None


def test_a_superlink_that_is_away_at_the_start_is_waited_for(clock):
    grid = federation(clock, 3)
    grid.trouble = between(clock, PASSING["refused"], 0.0, 6.0)
    strategy = cohort_strategy()
    strategy.start(grid, initial(), num_rounds=1)
    assert len(strategy.registry) == 3


def test_a_superlink_that_stays_away_at_the_start_is_an_error_that_says_so(clock):
    grid, start = FakeGrid(clock), clock.now
    grid.trouble = lambda call: PASSING["refused"]
    with pytest.raises(ValueError, match=r"SuperLink .*Connection refused"):
        cohort_strategy().start(grid, initial())
    assert clock.now - start <= 12.0


def verdicts_by_node(sent, replies):
    """The status of each node that was asked, as the server judges it."""
    by_message = {reply.metadata.reply_to_message_id: reply for reply in replies}
    verdicts = judge_training(sent, by_message, {}, ReplyRules(Limits(), "num-examples", None))
    nodes = [message.metadata.dst_node_id for message in sent]
    return dict(zip(nodes, [verdict.status for verdict in verdicts], strict=True))


@pytest.mark.parametrize(
    ("begin", "end", "status_of_silence"),
    [
        (4.5, 60.0, "lost"),  # the last pulls fail, but the one before was answered in time
        (1.0, 3.0, "lost"),  # the SuperLink answered afterwards
        (3.5, 60.0, "unknown"),  # no answer in the second in which clients stop
        (3.5, 5.0, "unknown"),  # it answers the last pull, which finds no reply any more
        (0.0, 2.0, "unknown"),  # the message came late
    ],
)
def test_silence_is_the_clients_failure_if_the_superlink_answered_when_it_could_reply(
    clock, begin, end, status_of_silence
):
    grid = grid_of(clock, silent())
    grid.trouble = between(clock, status(500), begin, end)
    sent = messages(1)
    replies = list(DeadlineGrid(grid, 5.0).send_and_receive(sent))
    assert verdicts_by_node(sent, replies) == {1: status_of_silence}


@pytest.mark.parametrize("close_early", [True, False])
@pytest.mark.parametrize(
    ("away_until", "status_of_gone"),
    [
        (0.5, "lost"),  # the SuperLink answered long before the node was gone
        (30.0, "unknown"),  # Flower saw no sign of life because it was away itself
    ],
)
def test_a_node_that_is_gone_is_lost_unless_the_superlink_was_away_just_before(
    clock, close_early, away_until, status_of_gone
):
    grid = grid_of(clock, answering(0.1), silent())
    grid.trouble = between(clock, PASSING["reset"], 0.2, away_until)
    clock.after(3.0, lambda: grid.leave(2))
    sent = messages(1, 2)
    replies = list(DeadlineGrid(grid, 60.0, close_early=close_early).send_and_receive(sent))
    assert verdicts_by_node(sent, replies)[2] == status_of_gone


def test_a_superlink_that_takes_no_message_does_not_count_as_there_for_earlier_answers(clock):
    grid = grid_of(clock, answering(0.01))
    on_time = DeadlineGrid(grid, 0.05)  # too short to try again
    list(on_time.send_and_receive(messages(1)))
    grid.trouble = lambda call: PASSING["refused"] if call == "push" else None
    (reply,) = on_time.send_and_receive(messages(1))
    assert verdict_of_error(reply.error).status == "unknown"


def test_a_client_that_hangs_at_a_busy_superlink_is_lost_and_the_selector_learns(clock, tmp_path):
    grid = federation(clock, 3)
    grid.clients[102].train = lambda message: None
    begun = []

    def trouble(call):
        if call == "push" and grid.sent():
            begun.append(clock.now)
        is_late = bool(begun) and 4.7 <= clock.now - begun[-1] <= 5.5
        return httpx.ReadTimeout("no answer in time") if is_late and call == "pull" else None

    grid.trouble = trouble
    strategy = cohort_strategy(cohort_size=3, num_clients=3, folder=tmp_path, deadline=5.0)
    strategy.start(grid, initial(), num_rounds=2)
    second = journal(tmp_path)[1]
    statuses = {asked["client"]: asked["status"] for asked in second["asked"]}
    assert "trouble" in second
    assert statuses == {"0": "arrived", "1": "arrived", "2": "lost"}


def test_a_reply_that_the_superlink_cannot_hand_out_is_not_its_clients_failure(clock):
    grid = RemoteGrid(clock)
    grid.join(11, answering(0.1))
    grid.join(12, silent())
    end = clock.now + 1.0
    withheld = set()
    hand_out = grid.PullObject

    def hand_out_some(request):
        if clock.now < end:
            withheld.add(request.object_id)  # of the reply; Flower answers for the silent later
        if request.object_id in withheld:
            raise httpx.ReadTimeout("busy")
        return hand_out(request)

    grid.PullObject = hand_out_some
    sent = messages(11, 12)
    replies = list(DeadlineGrid(grid, 1.0).send_and_receive(sent))
    assert verdicts_by_node(sent, replies) == {11: "unknown", 12: "lost"}


def test_a_selector_learns_nothing_from_a_round_that_is_known_in_part(clock, tmp_path, logged):
    """Two clients answer at once; before the third does, the SuperLink is away for good."""
    grid = federation(clock, 3)
    grid.clients[102].delay = 4.0
    grid.trouble = between(clock, PASSING["refused"], 2.0, 100.0)
    selector = RecordingSelector(3, 3)
    cohort_strategy(None, selector, None, folder=tmp_path).start(grid, initial(), num_rounds=1)
    (row,) = journal(tmp_path)
    statuses = [asked["status"] for asked in row["asked"]]
    assert statuses == ["arrived", "arrived", "unknown"]
    assert selector.outcomes == []
    assert "WARNING: round 1: the selector learns nothing from it" in logged
