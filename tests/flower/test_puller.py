"""Replies over the network: slow uploads, broken answers, and nothing left behind."""

import threading

import pytest
from fakes import FakeClient, answering, learner, messages, silent
from flwr.app import Error
from helpers import cohort_strategy, initial, journal
from remote import RemoteGrid

from fedcohort.flower import DeadlineGrid
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.forwarding import RestrictedGrid
from fedcohort.flower.verdicts import verdict_of_error

MOST_THREADS = 14  # 1 call and 8 downloads of a round, 2 listings, 1 identity and 2 downloads


def remote(clock, *clients):
    grid = RemoteGrid(clock)
    for node, client in enumerate(clients, 11):
        grid.join(node, client)
    return grid


def by_message(written, replies):
    """The reply to each message, None if there is none."""
    found = {reply.metadata.reply_to_message_id: reply for reply in replies}
    return [found.get(message.metadata.message_id) for message in written]


def test_what_silent_nodes_never_fetched_is_removed_from_the_server(clock):
    broke = answering(0.2, Error(2, "it broke"))
    grid = remote(clock, answering(0.1), silent(), broke, silent())
    clock.after(0.3, lambda: grid.leave(14))
    written = messages(11, 12, 13, 14)
    assert len(list(DeadlineGrid(grid, 1.0).send_and_receive(written))) == 4
    removed = {written[place].metadata.message_id for place in (1, 3)}
    assert removed <= set(grid.confirmed)


def test_an_upload_that_hangs_holds_up_neither_the_round_nor_the_answers_of_others(clock):
    grid, start = remote(clock, answering(0.05), answering(0.3), silent()), clock.now
    grid.missing = {11}
    written = messages(11, 12, 13)
    first, second, third = by_message(written, DeadlineGrid(grid, 1.0).send_and_receive(written))
    assert clock.now - start == pytest.approx(1.0, abs=0.25)
    assert first is None
    assert not second.has_error()
    assert third.has_error()


def test_an_upload_that_takes_its_time_is_read_when_it_is_complete(clock):
    grid = remote(clock, answering(0.05))
    grid.missing = {11}
    kept = {}

    def complete():
        for object_id in grid.objects:
            grid.objects[object_id] = kept[object_id]

    pull = grid.PullMessages

    def remember(request):
        grid.missing = set()
        response = pull(request)
        kept.update(grid.objects)
        for object_id in grid.objects:
            grid.objects[object_id] = None
        return response

    grid.PullMessages = remember
    clock.after(2.0, complete)
    (reply,) = DeadlineGrid(grid, 5.0).send_and_receive(messages(11))
    assert reply.has_content()


def test_what_was_never_fetched_is_removed_through_grids_of_ours_too(clock):
    grid, written = remote(clock, silent()), messages(11)
    list(DeadlineGrid(RestrictedGrid(grid, [11]), 1.0).send_and_receive(written))
    assert written[0].metadata.message_id in grid.confirmed


@pytest.mark.parametrize("lie", [{"bytes": b"torn"}, {"bytes": b"\x00" * 50}, {"to": "ff"}])
def test_an_answer_that_is_none_is_that_clients_failure_alone(clock, lie):
    grid = remote(clock, answering(0.1), answering(0.2), silent())
    grid.lies = {11: lie}
    written = messages(11, 12, 13)
    first, second, third = by_message(written, DeadlineGrid(grid, 1.0).send_and_receive(written))
    assert verdict_of_error(first.error).status == "rejected"
    assert second.has_content()
    assert verdict_of_error(third.error).status == "lost"


def test_nobody_answers_in_the_name_of_another(clock):
    grid, written = remote(clock, answering(0.1), answering(0.5)), messages(11, 12)
    on_time = DeadlineGrid(grid, 2.0)
    push = grid.push_messages

    def push_and_lie(sent):
        ids = push(sent)
        grid.lies = {11: {"to": written[1].metadata.message_id}}
        return ids

    grid.push_messages = push_and_lie
    first, second = by_message(written, on_time.send_and_receive(written))
    verdict = verdict_of_error(first.error)
    assert verdict.status == "rejected"
    assert "it says that it is to another message" in verdict.reason
    assert second.metadata.src_node_id == 12


def test_many_silent_clients_cost_one_request_a_pull_and_few_threads(clock):
    grid = remote(clock, *(silent() for _ in range(100)), answering(1.0))
    list(DeadlineGrid(grid, 5.0).send_and_receive(messages(*range(11, 112))))
    assert grid.requests["PushMessages"] == 1
    assert grid.requests["PullMessages"] <= 5.0 / 0.02
    assert grid.requests["PullMessages"] == grid.pulls
    assert grid.most_threads <= 9


def test_nodes_that_never_say_who_they_are_do_not_disturb_the_rounds(clock, tmp_path):
    """300 silent nodes beside 6 healthy ones: bounded threads, few requests, rounds on time."""
    grid = RemoteGrid(clock)
    for number in range(6):
        grid.join(100 + number, learner(number))
    for number in range(300):
        grid.join(1000 + number, FakeClient("", deaf=True))
    strategy = cohort_strategy(
        cohort_size=6, num_clients=6, deadline=12.0, close_early=False, folder=tmp_path
    )
    start = clock.now
    strategy.start(grid, initial(), num_rounds=10)
    rows = journal(tmp_path, keep_seconds=True)
    assert [row["arrived"] for row in rows] == [6] * 10
    assert all(row["seconds"] <= 12.0 + 2.0 for row in rows)
    assert grid.most_threads <= MOST_THREADS
    assert grid.requests["PullMessages"] <= 10 * 100 + 100  # not one for every silent node
    # 120 s: asked at the start, at 60 s and at 120 s
    assert len(grid.sent("query")) <= 6 + 3 * 300
    assert grid.requests["PushMessages"] <= 10 + 1 + 3
    assert grid.listings <= 10 + (clock.now - start) / 3.0 + 10  # 306 nodes: every third second


def test_silent_nodes_are_asked_less_and_less_often(clock):
    grid, registry = remote(clock, *(FakeClient("", deaf=True) for _ in range(5))), ClientRegistry()
    start = clock.now
    while clock.now < start + 3600.0:
        registry.refresh(grid)
        clock.sleep(5.0)
    asked = len(grid.sent("query")) / 5
    assert 5 <= asked <= 8  # 0, 1, 2, 4, 8, 16, 32 minutes, one minute later each


def test_a_hanging_superlink_does_not_hold_up_the_round(clock):
    """The calls hang, as Flower's client does while it tries to connect again."""
    release = threading.Event()
    grid, start = remote(clock, answering(0.1)), clock.now
    grid.PullMessages = lambda request: release.wait(30)
    (reply,) = DeadlineGrid(grid, 2.0).send_and_receive(messages(11))
    release.set()
    assert verdict_of_error(reply.error).status == "unknown"
    assert clock.now - start <= 2.0 + 1.5


def test_a_slow_answer_at_the_deadline_is_no_trouble(clock):
    grid = remote(clock, silent())
    pull = grid.PullMessages

    def slow(request):
        threading.Event().wait(0.1)  # longer than the rest of the round
        return pull(request)

    grid.PullMessages = slow
    (reply,) = DeadlineGrid(grid, 0.05).send_and_receive(messages(11))
    assert verdict_of_error(reply.error).status == "lost"


@pytest.mark.parametrize(
    ("pulled_at", "statuses"),
    [
        (10.2, ["arrived", "lost"]),  # the reply was announced in time, and only once
        (60.0, ["unknown", "unknown"]),  # nobody knows what was announced
    ],
)
def test_the_answer_to_a_pull_that_was_given_up_counts_if_it_comes(clock, pulled_at, statuses):
    """From 8.3 s of 10 s on, the pull that finds the reply hangs, and others wait for it."""
    grid = remote(clock, answering(8.3), silent())
    release = threading.Event()
    pull = grid.PullMessages

    def hang(request):
        response = pull(request)
        if len(response.messages_list) == 1:
            release.wait(30)
        return response

    grid.PullMessages = hang
    clock.after(pulled_at, release.set)
    start = clock.now
    written = messages(11, 12)
    replies = by_message(written, DeadlineGrid(grid, 10.0).send_and_receive(written))
    release.set()
    assert clock.now - start <= 10.0 + 1.5
    found = []
    for reply in replies:
        found.append(verdict_of_error(reply.error).status if reply.has_error() else "arrived")
    assert found == statuses


def test_a_client_is_lost_though_the_pull_that_says_so_was_given_up(clock):
    """From 9 s of 10 s on a pull hangs; then it finds that the message has expired."""
    grid, written, start = remote(clock, silent()), messages(11), clock.now
    release = threading.Event()
    pull = grid.PullMessages

    def hang(request):
        if clock.now - start >= 9.0:
            release.wait(30)
        return pull(request)

    grid.PullMessages = hang
    clock.after(10.2, release.set)
    (reply,) = DeadlineGrid(grid, 10.0).send_and_receive(written)
    release.set()
    assert verdict_of_error(reply.error).status == "lost"


def test_a_newcomer_that_has_answered_is_asked_in_the_next_round(clock):
    """A look between two rounds waits a moment for the names that are there."""
    grid, registry = remote(clock, FakeClient("a")), ClientRegistry()
    registry.refresh(grid)
    clock.sleep(1.0)
    registry.refresh(grid)
    assert registry.available == [0]


def test_names_that_take_long_do_not_hold_up_a_look(clock):
    release = threading.Event()
    grid, registry, start = remote(clock, FakeClient("a")), ClientRegistry(), clock.now
    grid.push_messages = lambda sent: release.wait(30)
    for _ in range(3):
        registry.refresh(grid)
    release.set()
    assert clock.now - start <= 3 * 0.6


def test_a_name_on_its_way_is_not_lost_when_the_next_look_is_through_a_wrapped_grid(clock):
    """Flower announces the answer only once, to the first look; its upload then takes a second."""
    grid, registry = remote(clock, FakeClient("a")), ClientRegistry()
    hand_out = grid.PullObject
    uploaded_at = clock.now + 2.0

    def hand_out_later(request):
        response = hand_out(request)
        response.object_available = clock.now >= uploaded_at
        return response

    grid.PullObject = hand_out_later
    wrapped = DeadlineGrid(grid, 5.0)
    for look in (grid, grid, wrapped, grid, wrapped):
        registry.refresh(look)
        clock.sleep(1.0)
    assert [client.name for client in registry.known] == ["a"]
    assert len(grid.sent("query")) == 1


def test_a_listing_that_hangs_is_not_begun_again_through_a_wrapped_grid(clock):
    grid, registry = remote(clock), ClientRegistry()
    release = threading.Event()
    listings = []

    def hang():
        listings.append(clock.now)
        release.wait(30)
        return []

    grid.get_nodes = hang
    for look in (grid, DeadlineGrid(grid, 5.0), grid, DeadlineGrid(grid, 5.0)):
        assert not registry.refresh(look, patience=0.1)
    begun = len(listings)
    release.set()
    assert begun == 1


@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_node_whose_name_is_never_uploaded_is_asked_again(clock, is_dropped):
    """The first answer lacks its parts: the SuperLink drops them, or waits for them for ever."""
    grid, registry, start = remote(clock, FakeClient("a")), ClientRegistry(), clock.now
    grid.missing = {11}
    registry.refresh(grid)
    clock.sleep(1.0)
    registry.refresh(grid)
    grid.missing = set()
    if is_dropped:
        grid.objects.clear()
    while clock.now < start + 70.0:
        registry.refresh(grid)
        clock.sleep(5.0)
    assert [client.name for client in registry.known] == ["a"]
    assert len(grid.sent("query")) == 2
    assert registry.node_names.queries == {}
