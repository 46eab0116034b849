"""Deadlines by a function or by a quantile of recent times."""

import math

import pytest
from fakes import federation
from helpers import cohort_strategy, initial, journal
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.flower import AutoDeadline, RecentTimes
from fedcohort.flower.deadlines import DeadlinePolicy, survival_quantile

SECONDS = st.floats(0.1, 1000.0)


def test_without_anybody_stopped_the_quantile_is_the_usual_one():
    times = [float(number) for number in range(1, 11)]
    assert survival_quantile(times, [], 0.9) == 9.0
    assert survival_quantile(times, [], 0.5) == 5.0
    assert survival_quantile(times[::-1], [], 0.91) == 10.0


def test_the_quantile_counts_the_stopped_as_at_work_for_longer():
    # Of 4 at risk one answers at 1 (3/4 left). One is stopped at 2. Of 2 at risk one answers at
    # 3: 3/4 * 1/2 = 3/8 left. The last answers at 4: nobody is left.
    assert survival_quantile([1.0, 3.0, 4.0], [2.0], 0.6) == 3.0
    assert survival_quantile([1.0, 3.0, 4.0], [2.0], 0.65) == 4.0
    assert survival_quantile([1.0, 2.0], [5.0, 5.0], 0.6) is None
    assert survival_quantile([], [5.0], 0.5) is None


def test_an_answer_in_the_moment_of_a_stop_comes_first():
    assert survival_quantile([5.0], [5.0], 0.5) == 5.0


def test_the_deadline_is_the_quantile_with_its_margin_within_its_bounds():
    times = tuple(float(number) for number in range(1, 21))
    recent = RecentTimes(5, answered=times)
    assert AutoDeadline(least=1.0)(recent) == 1.25 * 18.0
    assert AutoDeadline(least=30.0)(recent) == 30.0
    assert AutoDeadline(least=1.0, most=20.0)(recent) == 20.0


def test_with_few_times_the_deadline_is_the_longest():
    assert AutoDeadline()(RecentTimes(1)) == 600.0
    nine = RecentTimes(2, answered=(1.0,) * 5, unanswered=(2.0,) * 4)
    assert AutoDeadline()(nine) == 600.0
    assert AutoDeadline(fewest=9, quantile=0.5)(nine) < 600.0


def test_if_many_are_stopped_the_deadline_grows_instead_of_shrinking():
    recent = RecentTimes(3, answered=(5.0,) * 8, unanswered=(18.0,) * 8)
    assert AutoDeadline()(recent) == 1.5 * 18.0


@given(
    st.lists(SECONDS, max_size=60),
    st.lists(SECONDS, max_size=60),
    st.floats(0.01, 0.99),
    st.floats(1.0, 100.0),
    st.floats(100.0, 1000.0),
)
def test_whatever_the_times_are_the_deadline_keeps_its_bounds(
    answered, unanswered, quantile, least, most
):
    auto = AutoDeadline(quantile=quantile, least=least, most=most, fewest=1)
    found = auto(RecentTimes(1, tuple(answered), tuple(unanswered)))
    assert math.isfinite(found)
    assert least <= found <= most


def test_the_deadline_comes_to_rest_where_nine_of_ten_are_in_time(clock, tmp_path):
    """Clients take 10 s to 29 s; the deadline finds 1.25 x the ninth decile of them."""
    grid = federation(clock, 20)
    for number, client in enumerate(grid.clients.values()):
        client.delay = 10.0 + number
    strategy = cohort_strategy(
        cohort_size=20, deadline=AutoDeadline(most=100.0), folder=tmp_path, wait=30.0
    )
    strategy.start(grid, initial(), num_rounds=12)
    rows = journal(tmp_path, keep_seconds=True)
    assert rows[0]["deadline"] == 100.0
    assert [row["deadline"] for row in rows[2:]] == pytest.approx([1.25 * 27.0] * 10, abs=0.5)
    assert all(row["arrived"] == 20 for row in rows)


def test_a_function_gets_the_round_and_recent_times(clock):
    told = []

    def double_the_slowest(times):
        told.append(times)
        return 2 * max(times.answered, default=20.0)

    grid = federation(clock, 3)
    grid.clients[101].delay = 7.0
    strategy = cohort_strategy(deadline=double_the_slowest)
    strategy.start(grid, initial(), num_rounds=3)
    assert [times.round for times in told] == [1, 2, 3]
    assert [len(times.answered) for times in told] == [0, 3, 6]
    assert [times.deadline for times in told] == [None, 40.0, pytest.approx(14.0, abs=0.01)]
    assert max(told[1].answered) == pytest.approx(7.0, abs=0.01)
    assert strategy.options.deadline_text == "function"


@pytest.mark.parametrize("wrong", [0, -1.0, math.inf, math.nan, "soon", None])
def test_a_function_that_returns_no_deadline_ends_the_run_with_one_line(clock, wrong):
    strategy = cohort_strategy(deadline=lambda times: wrong if times.round == 2 else 5.0)
    with pytest.raises(ValueError, match="deadline of round 2 must be a finite number above 0"):
        strategy.start(federation(clock, 3), initial(), num_rounds=3)


def test_a_resumed_run_has_the_deadlines_of_one_that_was_never_stopped(clock, tmp_path):
    def play(folder, rounds, resume=False):
        grid = federation(clock, 6)
        for number, client in enumerate(grid.clients.values()):
            client.delay = 3.0 + number
        auto = AutoDeadline(quantile=0.5, least=1.0, most=50.0, fewest=2)
        strategy = cohort_strategy(deadline=auto, folder=folder, resume=resume, seed=4)
        strategy.start(grid, initial(), num_rounds=rounds)
        return [row["deadline"] for row in journal(folder, keep_seconds=True)]

    whole = play(tmp_path / "whole", 9)
    play(tmp_path / "cut", 5)
    assert play(tmp_path / "cut", 9, resume=True) == pytest.approx(whole, abs=0.01)
    assert len(set(whole)) > 2, "it changes"


def test_an_old_checkpoint_knows_no_times():
    policy = DeadlinePolicy(AutoDeadline())
    policy.load_state_dict({})
    assert policy.recent_times(1) == RecentTimes(1)
    assert policy.begin_round(1) == 600.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantile": 1.0}, r"quantile must be between 0\.01 and 0\.99, got 1\.0"),
        ({"least": 20.0, "most": 10.0}, r"most must be at least 20, got 10\.0"),
        ({"margin": 0.5}, r"margin must be between 1\.0 and 100\.0, got 0\.5"),
        ({"fewest": 0}, "fewest must be a whole number between 1 and 200, got 0"),
    ],
)
def test_the_bounds_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        AutoDeadline(**options)
