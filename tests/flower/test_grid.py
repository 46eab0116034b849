"""Grids that end at the deadline, or show only some nodes."""

import pytest
from fakes import FakeGrid, answering, federation, grid_of, messages, record, silent
from flwr.app import ConfigRecord, Error, RecordDict
from flwr.serverapp.strategy import FedAvg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcohort.flower import DeadlineGrid
from fedcohort.flower import grid as grid_module
from fedcohort.flower.errors import NOT_TAKEN
from fedcohort.flower.forwarding import RestrictedGrid
from fedcohort.flower.verdicts import verdict_of_error

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TOLERANCE = 0.05  # seconds a round may end beside its deadline


def sound(replies):
    return sorted(reply.metadata.src_node_id for reply in replies if reply.has_content())


def test_nobody_to_ask_returns_at_once(clock):
    grid, start = grid_of(clock, silent()), clock.now
    assert list(DeadlineGrid(grid, 10.0, close_early=False).send_and_receive([])) == []
    assert (clock.now, grid.calls) == (start, 0)


def test_a_round_ends_at_the_deadline_when_one_is_silent(clock):
    grid, start = grid_of(clock, answering(0.1), silent()), clock.now
    replies = list(DeadlineGrid(grid, 1.0).send_and_receive(messages(1, 2)))
    assert sound(replies) == [1]
    assert 1.0 <= clock.now - start <= 1.0 + TOLERANCE
    assert grid.left_behind == []


def test_an_answer_after_the_deadline_is_never_returned_and_nothing_is_left(clock):
    grid = grid_of(clock, answering(1.2), answering(0.3))
    on_time = DeadlineGrid(grid, 1.0)
    assert sound(on_time.send_and_receive(messages(1, 2))) == [2]
    clock.sleep(5.0)
    assert grid.too_late == 1
    assert sound(on_time.send_and_receive(messages(2))) == [2]
    assert grid.left_behind == []


def test_the_silent_are_answered_for_by_flower_as_expired(clock):
    grid = grid_of(clock, silent(), silent())
    replies = list(DeadlineGrid(grid, 0.5).send_and_receive(messages(1, 2)))
    assert [reply.error.code for reply in replies] == [3, 3]


def test_it_closes_early_once_all_have_answered_errors_among_them(clock):
    grid, start = grid_of(clock, answering(0.2), answering(0.4, Error(2, "it broke"))), clock.now
    replies = list(DeadlineGrid(grid, 20.0).send_and_receive(messages(1, 2)))
    assert len(replies) == 2
    assert 0.4 <= clock.now - start <= 0.4 + 0.25 + TOLERANCE
    assert grid.left_behind == []


def test_without_closing_early_it_lasts_until_the_deadline_though_all_have_answered(clock):
    grid, start = grid_of(clock, answering(0.1), answering(0.2)), clock.now
    on_time = DeadlineGrid(grid, 1.0, close_early=False)
    assert sound(on_time.send_and_receive(messages(1, 2))) == [1, 2]
    assert 1.0 <= clock.now - start <= 1.0 + TOLERANCE
    assert grid.left_behind == []


def test_without_closing_early_a_round_of_refused_messages_lasts_as_long_as_any_other(clock):
    grid, start = grid_of(clock, silent()), clock.now
    grid.refuse = lambda message: True
    (reply,) = DeadlineGrid(grid, 1.0, close_early=False).send_and_receive(messages(1))
    verdict = verdict_of_error(reply.error)
    assert (verdict.status, verdict.reason) == ("lost", "Flower did not take the message to it")
    assert 1.0 <= clock.now - start <= 1.0 + TOLERANCE


@pytest.mark.parametrize("refused_as", [None, "", "leave out"])
def test_a_message_that_flower_refuses_is_not_waited_for(clock, refused_as):
    grid, start = grid_of(clock, answering(0.2), answering(0.2), answering(0.2)), clock.now
    grid.refuse, grid.refused_as = (lambda message: message.metadata.dst_node_id == 2), refused_as
    replies = list(DeadlineGrid(grid, 20.0).send_and_receive(messages(1, 2, 3)))
    assert sound(replies) == [1, 3]
    assert clock.now - start < 1.0
    assert grid.left_behind == []


@pytest.mark.parametrize("refused_as", [None, "", "leave out"])
def test_if_all_are_refused_it_returns_at_once(clock, refused_as):
    grid, start = grid_of(clock, answering(0.2)), clock.now
    grid.refuse, grid.refused_as = (lambda message: True), refused_as
    replies = DeadlineGrid(grid, 20.0).send_and_receive(messages(1))
    assert [reply.error.code for reply in replies] == [NOT_TAKEN]
    assert clock.now == start


def test_messages_live_exactly_as_long_as_the_deadline(clock):
    grid, start = grid_of(clock, answering(0.2), silent()), clock.now
    written = messages(1, 2)
    clock.sleep(0.3)  # a strategy that takes its time to write them
    list(DeadlineGrid(grid, 0.7).send_and_receive(written))
    assert {message.metadata.ttl for message in grid.pushed} == {0.7}
    assert {message.metadata.created_at for message in grid.pushed} == {start + 0.3}


def test_without_a_deadline_of_its_own_the_timeout_is_one(clock):
    grid, start = grid_of(clock, silent()), clock.now
    list(DeadlineGrid(grid).send_and_receive(messages(1), timeout=0.6))
    assert grid.pushed[0].metadata.ttl == 0.6
    assert clock.now - start == pytest.approx(0.61, abs=TOLERANCE)


def test_the_deadline_counts_more_than_the_timeout(clock):
    grid, start = grid_of(clock, silent()), clock.now
    list(DeadlineGrid(grid, 0.5).send_and_receive(messages(1), timeout=3600.0))
    assert clock.now - start < 0.6


def test_without_deadline_and_timeout_it_waits_for_everybody(clock):
    grid = grid_of(clock, answering(0.1), answering(500.0))
    on_time = DeadlineGrid(grid, close_early=False)
    assert sound(on_time.send_and_receive(messages(1, 2))) == [1, 2]


def test_a_node_that_leaves_ends_the_wait_for_it(clock):
    grid, start = grid_of(clock, answering(0.2), silent()), clock.now
    clock.after(0.5, lambda: grid.leave(2))
    replies = list(DeadlineGrid(grid, 20.0).send_and_receive(messages(1, 2)))
    assert sound(replies) == [1]
    assert clock.now - start < 1.0
    assert grid.left_behind == []


@pytest.mark.parametrize(
    ("deadline", "called"), [(1.0, False), (2.0, False), (2.5, True), (6.0, True), (None, True)]
)
def test_meanwhile_is_called_between_pulls_but_not_in_the_last_two_seconds(clock, deadline, called):
    grid, start, calls = grid_of(clock, answering(50.0)), clock.now, []
    on_time = DeadlineGrid(grid, deadline, meanwhile=lambda: calls.append(clock.now - start))
    list(on_time.send_and_receive(messages(1)))
    assert bool(calls) == called
    if deadline is not None:
        assert all(at < deadline - 2.0 for at in calls)
        assert not called or max(calls) > deadline - 2.0 - 0.25 - TOLERANCE


def test_a_long_meanwhile_does_not_let_a_late_answer_in(clock):
    grid = grid_of(clock, answering(4.5), silent())
    replies = list(
        DeadlineGrid(grid, 4.0, meanwhile=lambda: clock.sleep(4.0)).send_and_receive(messages(1, 2))
    )
    assert sound(replies) == []
    assert grid.left_behind == []


def test_a_slow_meanwhile_does_not_cost_an_answer_that_is_in_time(clock):
    grid, start = grid_of(clock, answering(19.0), silent()), clock.now
    replies = list(
        DeadlineGrid(grid, 20.0, meanwhile=lambda: clock.sleep(1.5)).send_and_receive(
            messages(1, 2)
        )
    )
    assert sound(replies) == [1]
    assert clock.now - start <= 20.0 + TOLERANCE


@pytest.mark.parametrize("deadline", [0.001, 0.02, 0.1, 0.15, 0.2])
@pytest.mark.parametrize("close_early", [True, False])
def test_even_a_tiny_deadline_leaves_most_of_its_time_for_answers(clock, deadline, close_early):
    grid, start = grid_of(clock, answering(0.8 * deadline), silent()), clock.now
    assert sound(
        DeadlineGrid(grid, deadline, close_early=close_early).send_and_receive(messages(1, 2))
    ) == [1]
    assert deadline <= clock.now - start <= deadline + TOLERANCE
    assert grid.left_behind == []


@QUICK
@given(
    delays=st.lists(st.one_of(st.none(), st.floats(0.0, 2.0)), min_size=1, max_size=5),
    deadline=st.floats(0.001, 3.0),
    close_early=st.booleans(),
    poll=st.floats(0.01, 5.0),
)
def test_whoever_is_late_or_silent_the_round_ends_on_time_with_those_in_time(
    clock, delays, deadline, close_early, poll
):
    grid, start = (
        grid_of(clock, *(silent() if delay is None else answering(delay) for delay in delays)),
        clock.now,
    )
    on_time = DeadlineGrid(grid, deadline, close_early=close_early, poll=poll)
    replies = list(on_time.send_and_receive(messages(*range(1, len(delays) + 1))))
    took, back = clock.now - start, sound(replies)
    assert took <= deadline + TOLERANCE
    assert close_early or took >= deadline
    assert all(delays[node - 1] is not None and delays[node - 1] <= deadline for node in back)
    last_pull = deadline - min(0.15, 0.1 * deadline) - 1e-5
    surely = [
        node for node, delay in enumerate(delays, 1) if delay is not None and delay < last_pull
    ]
    assert set(surely) <= set(back)
    assert (
        len({reply.metadata.reply_to_message_id for reply in replies})
        == len(replies)
        == len(delays)
    )
    clock.sleep(5.0)
    assert grid.left_behind == []


def test_stock_fedavg_keeps_the_deadline_on_it(clock):
    grid = federation(clock, 3)
    grid.clients[102] = silent()
    start, sent = clock.now, record(w=[0.0, 4.0])
    result = FedAvg(fraction_evaluate=0.0).start(DeadlineGrid(grid, 1.0), sent, num_rounds=2)
    assert clock.now - start == pytest.approx(2 * 1.01, abs=2 * TOLERANCE)
    # clients 0 and 1 move half way to 1 and 2, weights 1/3 and 2/3: x -> x/2 + (1 + 2*2) / 6
    # twice: x/4 + 3/2 * 5/6
    assert result.arrays["w"].numpy() == pytest.approx([1.25, 2.25])
    assert grid.left_behind == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("deadline", 0), ("deadline", -1.0), ("deadline", float("nan")), ("poll", 0.0)],
)
def test_bad_arguments_are_refused_by_name_and_value(clock, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be a finite number above 0, got {value!r}"):
        DeadlineGrid(FakeGrid(clock), **{"deadline": 1.0, name: value})


def test_everything_else_is_passed_on(clock):
    grid = grid_of(clock, answering(0.1))
    on_time = DeadlineGrid(grid, 1.0)
    assert list(on_time.get_node_ids()) == [1]
    assert [node.node_id for node in on_time.get_nodes()] == [1]
    message = on_time.create_message(RecordDict(), "train", 1, "group", 5.0)
    assert (message.metadata.ttl, message.metadata.group_id) == (5.0, "group")


def test_a_clock_that_is_set_back_during_a_round_does_not_prolong_it(clock, monkeypatch):
    grid = grid_of(clock, silent())
    wall = {"back": 0.0}
    monkeypatch.setattr(grid_module, "time", lambda: clock.now - wall["back"])
    clock.after(0.5, lambda: wall.update(back=3600.0))
    start = clock.now
    list(DeadlineGrid(grid, 1.0).send_and_receive(messages(1)))
    assert clock.now - start == pytest.approx(1.0, abs=0.05)


def test_a_strategy_that_waits_for_more_nodes_gets_an_error_instead(clock):
    shown = RestrictedGrid(federation(clock, 5), [100, 101])
    with pytest.raises(ValueError, match="must not wait for more nodes than the 2 it is given"):
        FedAvg(min_available_nodes=3).configure_train(1, record(w=[0.0]), ConfigRecord(), shown)


def test_a_strategy_sees_only_the_nodes_it_is_shown(clock):
    shown = RestrictedGrid(federation(clock, 5), [101, 104, 999])
    assert list(shown.get_node_ids()) == [101, 104, 999]
    assert sorted(node.node_id for node in shown.get_nodes()) == [101, 104]
