"""The client's side: stopped at the deadline, known by name, failing by lot."""

import pickle
import signal
import threading
from itertools import islice
from math import inf
from time import perf_counter, sleep, time

import cloudpickle
import numpy as np
import pytest
from flwr.app import ConfigRecord, Context, Message, MetricRecord, RecordDict
from hypothesis import given, settings
from hypothesis import strategies as st

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
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates

STOPPED, FAILED = 1001, 1002
ANSWER = 1.0  # seconds within which a client that is stopped must have answered


def context(**node_config):
    return Context(1, 2, node_config, RecordDict(), {})


def message(ttl=60.0, created_at=None, kind="train", round=1):
    content = RecordDict(
        {"config": ConfigRecord({"server-round": round})} if round is not None else {}
    )
    written = Message(content, 5, kind, ttl=ttl)
    written.metadata.__dict__["_message_id"] = "m"
    written.metadata.created_at = time() if created_at is None else created_at
    return written


def done(to, context):
    return Message(RecordDict({"metrics": MetricRecord({"done": 1})}), reply_to=to)


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


# volatility


def lot(mod, client, clients, round, kind="train", run_config=None):
    given = Context(
        1, 2, {"partition-id": client, "num-partitions": clients}, RecordDict(), run_config or {}
    )
    return mod(message(kind=kind, round=round), given, done)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**40), clients=st.integers(4, 9), rounds=st.integers(1, 6))
def test_the_lots_are_those_of_the_simulation(seed, clients, rounds):
    table = np.array(list(islice(bernoulli(class_rates(clients), seed), rounds)))
    mod = volatility(seed)
    drawn = [
        [lot(mod, c, clients, r).has_content() for c in range(clients)]
        for r in range(1, rounds + 1)
    ]
    assert np.array_equal(drawn, table)


def test_a_hundred_clients_have_the_lots_of_the_paper_in_any_round():
    table = np.array(list(islice(bernoulli(class_rates(100), 7), 400)))
    for round in (1, 2, 399, 400):
        drawn = [lot(volatility(7), client, 100, round).has_content() for client in range(100)]
        assert np.array_equal(drawn, table[round - 1])


def test_the_seed_may_come_from_the_run_and_other_rates_from_the_app():
    table = next(bernoulli(class_rates(6, (0.5, 0.2)), 11))
    drawn = [
        lot(volatility(rates=(0.5, 0.2)), client, 6, 1, run_config={"seed": 11}).has_content()
        for client in range(6)
    ]
    assert drawn == table.tolist()


def test_who_fails_by_lot_says_so_in_code_and_words():
    reply = lot(volatility(0, rates=(0.0,)), 2, 3, 9)
    assert reply.error.code == FAILED
    assert reply.error.reason == "client 2 fails in round 9, by lot"


@pytest.mark.parametrize("kind", ["evaluate", "evaluate.mine", f"query.{IDENTITY}", "query"])
def test_evaluations_and_questions_never_fail(kind):
    assert lot(volatility(0, rates=(0.0,)), 0, 1, None, kind).has_content()


def test_named_training_functions_fail_too():
    assert lot(volatility(0, rates=(0.0,)), 0, 1, 1, "train.mine").has_error()


@pytest.mark.parametrize("missing", ["partition-id", "num-partitions"])
def test_a_node_that_does_not_know_its_partition_is_an_error(missing):
    config = {"partition-id": 0, "num-partitions": 4}
    config.pop(missing)
    with pytest.raises(ValueError, match=f"node_config must hold '{missing}' for volatility"):
        volatility(0)(message(), context(**config), done)


def test_a_message_without_a_round_is_an_error():
    with pytest.raises(ValueError, match="message must hold 'server-round' in a configuration"):
        lot(volatility(0), 0, 4, None)


@pytest.mark.parametrize("round", [0, -1, 1.5, "1"])
def test_a_round_that_is_none_is_an_error(round):
    with pytest.raises(ValueError, match="server-round must be a whole number at least 1"):
        lot(volatility(0), 0, 4, round)


def test_a_run_without_a_seed_is_an_error():
    with pytest.raises(ValueError, match="seed must be a whole number at least 0, got None"):
        lot(volatility(), 0, 4, 1)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_a_bad_seed_is_refused_at_once(seed):
    with pytest.raises(ValueError, match="seed must be a whole number at least 0"):
        volatility(seed)


@pytest.mark.parametrize("rates", [(2.0,), (0.5, -0.1), (float("nan"),)])
def test_bad_rates_are_refused_at_once(rates):
    with pytest.raises(ValueError, match="rates"):
        volatility(0, rates=rates)


@pytest.mark.parametrize("client", [4, -1])
def test_a_partition_out_of_range_is_an_error(client):
    with pytest.raises(ValueError, match="client must be a whole number between 0 and 3"):
        lot(volatility(0), client, 4, 1)
