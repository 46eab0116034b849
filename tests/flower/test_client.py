"""The client's app: it stops at the deadline and says who it is."""

import pickle
import signal
import threading
from math import inf
from time import perf_counter, sleep, time

import cloudpickle
import pytest
from fakes import context, done, message
from flwr.app import Message, RecordDict

from fedcohort.flower import (
    Stopped,
    check_deadline,
    client,
    client_app,
    force_stop,
    time_left,
    volatility,
)
from fedcohort.flower.client import IDENTITY, answer_identity

STOPPED, FAILED = 1001, 1002
ANSWER = 1.0  # seconds within which a client that is stopped must have answered


def busy(to, context):
    """Work that ends only when it is stopped, or after three seconds."""
    end = perf_counter() + 3.0
    while perf_counter() < end:
        sum(range(200))
    return done(to, context)


@pytest.fixture(autouse=True)
def _alarms_are_as_they_were():
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


@pytest.mark.parametrize(
    ("ttl", "grace", "stops_at"), [(0.5, 2.0, 0.4), (0.5, 0.05, 0.45), (0.4, 0.0, 0.4)]
)
def test_work_is_stopped_just_before_the_deadline_and_says_so(ttl, grace, stops_at):
    start = perf_counter()
    reply = force_stop(message(ttl), context(), busy, grace=grace)
    assert stops_at - 0.02 <= perf_counter() - start <= stops_at + ANSWER
    assert reply.error.code == STOPPED
    assert reply.error.reason == f"stopped at the deadline of {ttl} s"
    assert reply.metadata.reply_to_message_id == "m"


def test_sleeping_work_is_stopped_too():
    start = perf_counter()
    assert force_stop(message(0.3), context(), lambda to, context: sleep(3.0)).has_error()
    assert perf_counter() - start < 0.3 + ANSWER


def test_work_that_catches_every_exception_is_stopped_all_the_same():
    def stubborn(to, context):
        end = perf_counter() + 3.0
        while perf_counter() < end:
            try:
                sum(range(200))
            except Exception:
                continue
        return done(to, context)

    assert force_stop(message(0.3), context(), stubborn).error.code == STOPPED


def test_work_that_is_finished_in_time_is_passed_on_untouched():
    to, given = message(), context()
    answers = []

    def work(received, its_context):
        assert received is to
        assert its_context is given
        assert 57.0 < time_left() <= 58.0  # 60 less the two seconds for the answer
        answers.append(done(received, its_context))
        return answers[0]

    assert force_stop(to, given, work) is answers[0]
    assert time_left() == inf


def test_what_the_work_raises_is_passed_on_and_the_alarm_is_off():
    def broken(to, context):
        raise KeyError("labels")

    with pytest.raises(KeyError, match="labels"):
        force_stop(message(0.2), context(), broken)
    assert time_left() == inf
    sleep(0.25)  # an alarm left on would end this test


def test_a_message_that_is_late_on_arrival_is_answered_at_once():
    called = []
    reply = force_stop(
        message(10.0, created_at=time() - 9.0), context(), lambda *given: called.append(given)
    )
    assert reply.error.code == STOPPED
    assert called == []


def test_the_alarm_that_was_set_before_is_set_again():
    def mine(number, frame): ...

    before = signal.signal(signal.SIGALRM, mine)
    try:
        force_stop(message(0.2), context(), busy)
        assert signal.getsignal(signal.SIGALRM) is mine
        force_stop(message(), context(), done)
        assert signal.getsignal(signal.SIGALRM) is mine
    finally:
        signal.signal(signal.SIGALRM, before)


def test_of_two_deadlines_one_in_the_other_the_inner_stops_only_its_own_work():
    answers = []

    def outer(to, given):
        answers.append(force_stop(message(0.2), given, busy))
        assert 57.0 < time_left() <= 58.0
        return done(to, given)

    reply = force_stop(message(), context(), outer)
    assert answers[0].error.code == STOPPED
    assert reply.has_content()


def test_after_an_inner_deadline_the_outer_one_is_back_and_stops_the_work():
    left = []

    def outer(to, given):
        assert force_stop(message(), given, done).has_content()
        left.append(time_left())
        return busy(to, given)

    start = perf_counter()
    assert force_stop(message(0.5), context(), outer).error.code == STOPPED
    assert left == [pytest.approx(0.4, abs=0.2)]
    assert perf_counter() - start < 0.5 + ANSWER


@pytest.mark.parametrize("again", [0.0, 0.2])
def test_a_timer_that_was_running_before_rings_when_it_would_have(again):
    rings = []
    before = signal.signal(signal.SIGALRM, lambda *given: rings.append(perf_counter()))
    try:
        start = perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0.3, again)
        force_stop(message(), context(), lambda *given: (sleep(0.1), done(*given))[1])
        sleep(0.1)
        assert rings == []
        while perf_counter() - start < 0.6:
            sleep(0.05)
        assert rings[0] - start == pytest.approx(0.3, abs=0.15)
        assert (len(rings) > 1) == (again > 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_a_timer_that_would_have_rung_in_the_meantime_rings_afterwards():
    rings = []
    before = signal.signal(signal.SIGALRM, lambda *given: rings.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        force_stop(message(), context(), lambda *given: (sleep(0.2), done(*given))[1])
        sleep(0.1)
        assert rings == [1]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_work_that_swallows_the_first_alarm_hears_the_next(monkeypatch):
    monkeypatch.setattr(client, "REPEAT_ALARM", 0.2)
    swallowed = []

    def deaf_once(to, context):
        try:
            sleep(3.0)
        except BaseException as alarm:  # as a bare except of some library
            swallowed.append(type(alarm))
        return busy(to, context)

    start = perf_counter()
    assert force_stop(message(0.3), context(), deaf_once).error.code == STOPPED
    assert swallowed == [Stopped]
    assert perf_counter() - start < 0.5 + ANSWER


@pytest.mark.parametrize("rings_while", ["it is set", "it is switched off"])
def test_an_alarm_that_rings_while_the_timer_is_set_or_switched_off_leaves_nothing_on(
    monkeypatch, rings_while
):
    before, real = signal.getsignal(signal.SIGALRM), signal.setitimer

    def slow(which, seconds, interval=0.0):
        if seconds == 0.0 and rings_while == "it is switched off":
            sleep(0.3)
        set_before = real(which, seconds, interval)
        if seconds > 0.0 and rings_while == "it is set":
            sleep(0.3)
        return set_before

    try:
        with monkeypatch.context() as patched:
            patched.setattr(signal, "setitimer", slow)
            reply = force_stop(message(0.2), context(), done, grace=0.0)
        assert reply.error.code == STOPPED
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGALRM) is before
    finally:
        real(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def in_thread(work):
    result = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    thread.join(5.0)
    return result[0]


def test_on_another_thread_the_work_stops_where_it_checks():
    def checking(to, context):
        while True:
            sleep(0.01)
            check_deadline()

    start = perf_counter()
    assert in_thread(lambda: force_stop(message(0.3), context(), checking)).error.code == STOPPED
    assert 0.2 <= perf_counter() - start <= 0.3 + ANSWER


def test_on_another_thread_work_that_does_not_check_is_not_interrupted():
    reply = in_thread(
        lambda: force_stop(message(0.1), context(), lambda *given: (sleep(0.2), done(*given))[1])
    )
    assert reply.has_content()


@pytest.mark.parametrize("run", [in_thread, lambda work: work()])
def test_threads_that_the_work_starts_know_the_deadline(run):
    """Flower gives a process one message at a time, so the deadline is the process's."""
    left = []

    def work(to, context):
        left.append(in_thread(time_left))
        return done(to, context)

    assert run(lambda: force_stop(message(30.0), context(), work, grace=0.0)).has_content()
    assert left == [pytest.approx(30.0, abs=1.0)]
    assert time_left() == inf


def test_threads_that_the_work_starts_stop_where_they_check():
    def helper():
        sleep(0.25)
        try:
            check_deadline()
        except Stopped:
            return "stopped"
        return "went on"

    seen = []

    def work(to, context):
        seen.append(in_thread(helper))
        return done(to, context)

    in_thread(lambda: force_stop(message(0.2), context(), work))
    assert seen == ["stopped"]


def test_outside_of_a_message_there_is_no_deadline():
    assert time_left() == inf
    check_deadline()


def test_stopped_is_no_exception():
    assert not issubclass(Stopped, Exception)


def test_an_app_trains_answers_who_it_is_and_stops():
    app = client_app()
    app.train()(busy)
    app.evaluate()(done)
    assert app(message(0.2), context()).error.code == STOPPED
    assert app(message(kind="evaluate"), context()).has_content()
    said = app(message(kind=f"query.{IDENTITY}"), context(**{"client-id": "berlin"}))
    assert said.content.config_records["identity"]["name"] == "berlin"


def test_mods_of_ones_own_run_inside_the_deadline():
    seen = []

    def mine(to, context, call_next):
        seen.append(time_left())
        return call_next(to, context)

    app = client_app(mods=[mine], grace=0.0)
    app.train()(done)
    assert app(message(30.0), context()).has_content()
    assert seen == [pytest.approx(30.0, abs=1.0)]


@pytest.mark.parametrize("grace", [-0.1, 3601, float("nan"), "long"])
def test_a_bad_grace_is_refused(grace):
    with pytest.raises(ValueError, match=f"grace must be between 0.0 and 3600.0, got {grace!r}"):
        client_app(grace=grace)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({}, ""),
        ({"client-id": "a", "partition-id": 3}, "a"),
        ({"partition-id": 0}, "0"),
        ({"client-id": 7}, "7"),
        ({"client-id": ""}, ""),
        ({"client-id": "ü"}, "ü"),
    ],
)
def test_a_client_says_what_its_node_was_told(config, name):
    said = answer_identity(message(kind=f"query.{IDENTITY}"), context(**config))
    assert said.content.config_records["identity"]["name"] == name


def test_the_app_and_its_mods_survive_cloudpickle():
    app = client_app(mods=[volatility(seed=0, rates=(0.0,))])
    app.train()(lambda to, context: Message(RecordDict(), reply_to=to))
    copy = pickle.loads(cloudpickle.dumps(app))
    reply = copy(message(), context(**{"partition-id": 0, "num-partitions": 1}))
    assert reply.error.code == FAILED
    for mod in (volatility(seed=3), force_stop):
        pickle.loads(cloudpickle.dumps(mod))
