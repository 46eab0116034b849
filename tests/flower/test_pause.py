"""Too few clients: the run pauses, does not burn rounds, and refuses to begin incomplete."""

import httpx
import pytest
from fakes import FakeClient, federation, learner
from helpers import asked_by_round, cohort_strategy, initial, journal

DEADLINE = 5.0


def leaves_after(round_of_leaving, grid):
    """Let all clients leave after a round."""

    def evaluate(round, arrays):
        if round == round_of_leaving:
            for node in list(grid.nodes):
                grid.leave(node)

    return evaluate


def test_if_all_clients_are_gone_the_run_pauses_and_goes_on(clock, logged, tmp_path):
    grid = federation(clock, 3)
    leave = leaves_after(1, grid)

    def evaluate(round, arrays):
        leave(round, arrays)
        if round == 1:
            for number in range(3):
                clock.after(100.0, lambda number=number: grid.join(500 + number, learner(number)))

    strategy = cohort_strategy(folder=tmp_path, deadline=DEADLINE, num_clients=3, pause=300.0)
    strategy.start(grid, initial(), num_rounds=3, evaluate_fn=evaluate)
    rows = journal(tmp_path, keep_seconds=True)
    assert rows[0]["arrived"] == 3
    assert all(row["asked"] for row in rows), "no round with nobody"
    assert all(row["seconds"] <= DEADLINE + 0.1 for row in rows)
    assert 99.0 <= rows[1]["paused"] <= 102.0
    assert "paused" not in rows[0]
    pauses = [line for line in logged if "the run pauses for at most 300 s" in line]
    assert pauses == ["WARNING: the run pauses for at most 300 s: 0 clients can be asked, 1 must"]
    assert any("the run goes on after a pause of 10" in line for line in logged)


def test_a_pause_that_is_too_long_ends_the_run_and_says_why(clock, tmp_path):
    grid = federation(clock, 3)
    start = clock.now
    strategy = cohort_strategy(folder=tmp_path, num_clients=3, pause=30.0)
    expected = r"pause must be long enough for 1 clients .*, got 30 s after which 0 clients"
    with pytest.raises(ValueError, match=expected):
        strategy.start(grid, initial(), num_rounds=3, evaluate_fn=leaves_after(1, grid))
    assert clock.now - start < 30.0 + 2 * DEADLINE
    assert len(journal(tmp_path)) == 1
    back = federation(clock, 3)
    again = cohort_strategy(folder=tmp_path, num_clients=3, pause=30.0, resume=True)
    again.start(back, initial(), num_rounds=3)
    assert [row["round"] for row in journal(tmp_path)] == [1, 2, 3]


@pytest.mark.parametrize("enough", [2, 3])
def test_fewer_than_enough_are_not_asked(clock, tmp_path, enough):
    grid = federation(clock, 3)

    def evaluate(round, arrays):
        if round == 1:
            grid.leave(101)
            grid.leave(102)
            clock.after(20.0, lambda: grid.join(501, learner(1)))
            clock.after(40.0, lambda: grid.join(502, learner(2)))

    strategy = cohort_strategy(folder=tmp_path, num_clients=3, least_clients=enough)
    strategy.start(grid, initial(), num_rounds=2, evaluate_fn=evaluate)
    second = journal(tmp_path)[1]
    assert len(second["asked"]) == enough
    assert second["paused"] == pytest.approx(20.0 * (enough - 1), abs=2.0)


def test_while_the_superlink_is_away_between_rounds_no_round_is_burnt(clock, tmp_path):
    grid, begin = federation(clock, 3), clock.now
    away = []
    grid.trouble = lambda call: (
        httpx.ConnectError("refused") if away and clock.now < away[0] + 60.0 else None
    )

    def evaluate(round, arrays):
        if round == 1:
            away.append(clock.now)

    strategy = cohort_strategy(folder=tmp_path, num_clients=3)
    strategy.start(grid, initial(), num_rounds=3, evaluate_fn=evaluate)
    rows = journal(tmp_path)
    assert [row["arrived"] for row in rows] == [3, 3, 3]
    assert rows[1]["paused"] == pytest.approx(60.0, abs=8.0)
    assert clock.now - begin < 100.0


@pytest.mark.parametrize("seconds", [0.5, 3.0])
@pytest.mark.parametrize("call", ["list", "push", "pull"])
def test_a_round_with_its_look_at_the_nodes_takes_at_most_two_seconds_more_than_the_deadline(
    clock, tmp_path, call, seconds
):
    """Trouble that begins between rounds and late in a round; a pause is said and counted apart."""
    grid = federation(clock, 3)
    grid.clients[102].train = lambda message: None  # so each round lasts until its deadline
    ends = []
    begins = []

    def evaluate(round, arrays):
        ends.append(clock.now)
        begins.append(clock.now)
        clock.after(DEADLINE - 0.5, lambda: begins.append(clock.now))

    def trouble(called):
        is_away = any(begin <= clock.now < begin + seconds for begin in begins)
        return httpx.ConnectError("refused") if is_away and called == call else None

    grid.trouble = trouble
    strategy = cohort_strategy(folder=tmp_path, num_clients=3, deadline=DEADLINE)
    strategy.start(grid, initial(), num_rounds=5, evaluate_fn=evaluate)
    rows = journal(tmp_path, keep_seconds=True)
    for row in rows:
        elapsed = ends[row["round"]] - ends[row["round"] - 1]
        assert elapsed - row.get("paused", 0.0) <= DEADLINE + 2.0
        assert row["seconds"] == pytest.approx(elapsed - row.get("paused", 0.0), abs=0.01)


def test_enough_and_pause_are_checked(clock):
    with pytest.raises(
        ValueError, match="least_clients must be a whole number between 1 and 4, got 5"
    ):
        cohort_strategy(num_clients=4, least_clients=5)
    with pytest.raises(ValueError, match="least_clients must be a whole number at least 1, got 0"):
        cohort_strategy(least_clients=0)
    with pytest.raises(ValueError, match="pause must be a finite number above 0, got 0"):
        cohort_strategy(pause=0)


def test_a_run_without_all_announced_clients_is_refused(clock):
    grid, start = federation(clock, 4), clock.now
    expected = "num_clients must be at most 4, as many clients connected in 10 s, got 5"
    with pytest.raises(ValueError, match=expected):
        cohort_strategy(num_clients=5).start(grid, initial(), num_rounds=1)
    assert clock.now - start == pytest.approx(10.0, abs=0.5)
    assert grid.sent() == []


def test_a_run_may_begin_without_all_announced_clients_if_it_is_told_so(clock, logged):
    strategy = cohort_strategy(num_clients=5, partial_start=True)
    strategy.start(federation(clock, 4), initial(), num_rounds=1)
    assert any("WARNING: 4 of 5 clients connected within 10 s" in line for line in logged)


def test_nodes_without_a_name_at_the_start_are_pointed_out(clock, logged):
    grid = federation(clock, 4)
    grid.join(200, FakeClient("9", deaf=True))
    cohort_strategy().start(grid, initial(), num_rounds=1)
    assert any("1 nodes have not said which clients they are" in line for line in logged)


@pytest.mark.parametrize("seed", [1, 2])
def test_slow_nodes_do_not_change_the_cohorts_of_a_seed(clock, seed):
    """All announced nodes come, the last ones late: the cohorts are those of the same seed."""

    def cohorts(delays):
        grid = federation(clock, 12)
        for client, delay in zip(grid.clients.values(), delays, strict=True):
            client.query_delay = delay
        strategy = cohort_strategy(num_clients=12, seed=seed, wait=60.0)
        strategy.start(grid, initial(), num_rounds=4)
        return asked_by_round(grid)

    assert cohorts([0.05] * 12) == cohorts([4.0 * number for number in range(12)])
