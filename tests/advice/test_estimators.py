"""The estimates of what a log shows, against hand-worked cases and known truth."""

from dataclasses import replace

import numpy as np
import pytest

from fedcohort.advice import change
from fedcohort.advice.change import find_change
from fedcohort.advice.deadline import advise_deadline
from fedcohort.advice.durations import Counts, fit_durations
from fedcohort.advice.estimates import Interval, bootstrap_weights
from fedcohort.advice.log import Question, make_log
from fedcohort.advice.persistence import Persistence, estimate_persistence
from fedcohort.advice.played import Description, play_description, play_simulation
from fedcohort.advice.rates import estimate_rates, fit_rates, repetitions
from fedcohort.advice.together import estimate_together
from fedcohort.advice.unseen import ClientGrid
from fedcohort.advice.waste import measure_waste
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import load_or_simulate


def log_of(table, seconds=None, deadline=None, late=np.nan):
    """A log in which everyone is asked in every round; the table says who answers [T, K]."""
    questions = []
    for round, row in enumerate(table):
        for client, came in enumerate(row):
            time = np.nan if seconds is None or not came else float(seconds[round, client])
            status = "arrived" if came else "lost"
            is_late = np.nan if came else late
            questions.append(Question(round, str(client), bool(came), time, is_late, status=status))
    return make_log("made", questions, deadline=deadline)


def chain(rates, decay, rounds, rng):
    """Answers that stay as they are with a probability, and else are drawn again, [T, K]."""
    state = rng.random(len(rates)) < rates
    rows = []
    for _ in range(rounds):
        keeps = rng.random(len(rates)) < decay
        state = np.where(keeps, state, rng.random(len(rates)) < rates)
        rows.append(state)
    return np.stack(rows)


def test_a_client_that_was_never_asked_is_like_the_others():
    asked = np.array([400.0, 400.0, 400.0, 0.0])
    rates = fit_rates(asked, 0.7 * asked, np.random.default_rng(0))
    assert rates.mean[3] == pytest.approx(0.7, abs=0.05)
    assert rates.high[3] - rates.low[3] > 2 * (rates.high[0] - rates.low[0])


def test_a_client_asked_twice_is_shrunk_towards_the_others():
    asked = np.array([200.0, 200.0, 200.0, 200.0, 2.0])
    arrived = np.array([20.0, 60.0, 100.0, 60.0, 2.0])
    rates = fit_rates(asked, arrived, np.random.default_rng(0))
    assert 0.3 < rates.mean[4] < 0.8
    assert rates.mean[0] == pytest.approx(0.1, abs=0.02)


def test_the_clients_that_decide_for_all_come_from_all_parts_of_a_large_federation():
    """The first 700 clients answer 3 times of 10, the others 9 times. Each is asked 4 times.

    Five standard errors of the share of intervals that hold the truth are 4 points.
    """
    rng = np.random.default_rng(0)
    rates = np.repeat([0.3, 0.9], 700)
    asked = np.full(1400, 4.0)
    found = fit_rates(asked, rng.binomial(4, rates).astype(float), rng)
    holds = (found.low <= rates) & (rates <= found.high)
    assert holds[:700].mean() > 0.85
    assert holds[700:].mean() > 0.85


def test_repeated_answers_count_once():
    """Three answers in rounds 0, 1, 2 with correlations 1/2, 1/2, 1/4: 1 + 2/3 (1 + 1/4)."""
    log = log_of(np.ones((3, 1), dtype=bool))
    lasting = Persistence(Interval(0.5, 0.4, 0.6), 1.0, 0.5, 0.5, 0.25, is_certain=True)
    assert repetitions(log, lasting).tolist() == [pytest.approx(1 + 2 / 3 * 1.25)]


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.85])
def test_the_correlation_of_successive_rounds_is_found(decay):
    rng = np.random.default_rng(3)
    rates = rng.uniform(0.3, 0.8, size=60)
    found = estimate_persistence(log_of(chain(rates, decay, 400, rng)))
    assert found.next_round.low <= decay <= found.next_round.high
    assert found.is_certain == (decay > 0)
    if found.is_certain:
        begins = (1 - decay) * (rates * (1 - rates)).mean()
        assert found.off_rounds == pytest.approx((1 - rates.mean()) / begins, rel=0.35)


def test_clients_that_differ_for_good_do_not_look_as_if_failures_last():
    rng = np.random.default_rng(4)
    rates = np.where(np.arange(40) < 20, 0.1, 0.9)
    assert not estimate_persistence(log_of(chain(rates, 0.0, 300, rng))).is_certain


def asked_in_part(table, cohort, rng):
    """A log of a table [T, K] in which uniform selection asks a cohort."""
    questions = []
    for round, row in enumerate(table):
        for client in rng.choice(len(row), size=cohort, replace=False):
            questions.append(Question(round, str(client), bool(row[client])))
    return make_log("made", questions)


@pytest.mark.parametrize(("decay", "rounds"), [(0.76, 200), (0.33, 200), (0.0, 100)])
def test_intervals_of_the_correlation_of_successive_rounds_hold_the_truth(decay, rounds):
    """At least 33 of 40; at 95 % fewer have a probability of 0.3 %. None has no width."""
    held = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        log = asked_in_part(chain(np.full(20, 0.7), decay, rounds, rng), 8, rng)
        found = estimate_persistence(log).next_round
        held += found.low <= decay <= found.high
        assert found.high - found.low > 0.05
    assert held >= 33


def test_intervals_of_how_long_clients_stay_away_or_go_on_hold_the_truth():
    """24 logs: at 95 % fewer than 19 of them have a chance below 1 in 1,000."""
    holds_off = 0
    holds_on = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        found = estimate_persistence(asked_in_part(chain(np.full(40, 0.6), 0.8, 200, rng), 10, rng))
        off = 1 / (0.2 * 0.6)
        on = 1 / (0.2 * 0.4)
        holds_off += found.off_interval.low <= off <= found.off_interval.high
        holds_on += found.on_interval.low <= on <= found.on_interval.high
    assert holds_off >= 19
    assert holds_on >= 19


def test_the_interval_of_a_length_by_hand():
    # Student's t with 9 degrees of freedom is 2.262, so the factor is e^0.4524 = 1.572.
    lasting = Persistence(Interval(0.8, 0.7, 0.9), 1.0, 0.8, 0.5, 0.25, True, length_error=0.2)
    off = lasting.off_interval
    assert (off.value, off.low, off.high) == pytest.approx((10.0, 6.361, 15.72), rel=1e-3)
    brief = Persistence(Interval(0.1, 0.05, 0.2), 1.0, 0.1, 0.9, 0.09, True, length_error=2.0)
    assert brief.off_interval.low == 1.0


def test_the_interval_of_answer_times_holds_the_truth():
    rng = np.random.default_rng(5)
    medians = np.repeat([10.0, 20.0, 40.0], 5)
    seconds = medians * np.exp(0.4 * rng.normal(size=(150, 15)))
    log = log_of(seconds <= 60.0, seconds, deadline=60.0, late=1.0)
    found = advise_deadline(log, 1, np.random.default_rng(6))
    assert found.typical_seconds.low <= 20.0 <= found.typical_seconds.high
    assert found.slowest_seconds.low <= 44.0
    assert found.slowest_seconds.high >= 40.0
    assert found.slowest_seconds.low > found.typical_seconds.high


def test_the_ends_of_a_correlation_are_correlations():
    """Twelve clients are asked five times each in 30 rounds: hardly anything is known."""
    log = play_description(Description(12, 2, (0.3, 0.9), rounds=30, seed=1))
    lasting = estimate_persistence(log).next_round
    assert -1 <= lasting.low <= lasting.high <= 1
    weights = bootstrap_weights(5, 100, 1, np.random.default_rng(0))
    table = np.repeat([[True], [False], [True], [True], [True]], 2, axis=1)
    together = estimate_together(log_of(table), np.full(2, 0.8), weights, block=1).correlation
    assert -1 <= together.low <= together.high <= 1


def test_too_short_or_constant_logs_say_nothing_about_lasting():
    for table in (np.ones((50, 3), dtype=bool), np.eye(5, dtype=bool)):
        found = estimate_persistence(log_of(table))
        assert not found.is_certain
        assert found.next_round.high == np.inf


def test_clients_that_never_change_do_not_say_whether_failures_last():
    """Half of the clients always answer, half never do, and some are asked more often."""
    for seed in range(10):
        log = play_description(Description(10, 5, (0.0, 1.0), rounds=20, seed=seed))
        found = estimate_persistence(log)
        assert not found.is_certain
        assert found.next_round.high == np.inf
        rates = estimate_rates(log, found, np.random.default_rng(0))
        assert rates.mean[:5].max() < 0.2
        assert rates.mean[5:].min() > 0.8


def test_a_log_whose_clients_are_asked_again_only_at_its_beginning_says_nothing_about_lasting():
    questions = []
    for round in range(40):
        for client in range(10):
            name = str(client) if round < 3 else f"{round}-{client}"
            questions.append(Question(round, name, (client + round) % 2 == 0))
    assert not estimate_persistence(make_log("made", questions)).is_certain


def test_clients_that_share_their_luck_fail_together():
    """In every round either all answer or none does: the correlation is 1."""
    rng = np.random.default_rng(5)
    table = np.repeat(rng.random((200, 1)) < 0.5, 6, axis=1)
    weights = bootstrap_weights(200, 300, 1, rng)
    found = estimate_together(log_of(table), np.full(6, 0.5), weights, block=1)
    assert found.correlation.value == pytest.approx(1.0)
    assert found.is_certain
    alone = estimate_together(log_of(rng.random((200, 6)) < 0.5), np.full(6, 0.5), weights, block=1)
    assert abs(alone.correlation.value) < 0.05


@pytest.mark.parametrize("rates", [(0.0, 1.0), (1.0, 1.0, 1.0, 0.5), (0.0, 1.0, 0.4, 0.7)])
def test_clients_that_always_or_never_answer_do_not_fail_together(rates):
    for seed in range(5):
        log = play_description(Description(20, 8, rates, rounds=120, seed=seed))
        weights = bootstrap_weights(120, 300, 3, np.random.default_rng(seed))
        own = estimate_rates(log, estimate_persistence(log), np.random.default_rng(seed))
        found = estimate_together(log, own.mean, weights, block=3)
        assert not found.is_certain


def test_a_change_in_a_long_log_is_found_within_the_rounds_that_are_counted_together():
    """Of 2,500 rounds three are counted together; all rates are reversed after 1,500."""
    rng = np.random.default_rng(12)
    rates = np.linspace(0.1, 0.9, 6)
    rows = np.where(np.arange(2500)[:, None] < 1500, rates, rates[::-1])
    found = find_change(log_of(rng.random((2500, 6)) < rows), rng)
    assert found.is_certain
    assert found.first - 3 <= 1500 <= found.last + 3
    assert abs(found.position - 1500) <= 12


def test_a_change_is_found_where_it_is():
    rng = np.random.default_rng(6)
    before = rng.random((60, 20)) < np.linspace(0.1, 0.9, 20)
    after = rng.random((90, 20)) < np.linspace(0.9, 0.1, 20)
    found = find_change(log_of(np.concatenate([before, after])), rng)
    assert found.is_certain
    assert found.first <= 60 <= found.last
    assert abs(found.position - 60) <= 2


@pytest.mark.parametrize("decay", [0.0, 0.8])
def test_no_change_is_found_where_there_is_none(decay):
    """At the level of 0.5 % twenty logs have a false one with a probability of 10 %."""
    false = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = chain(np.linspace(0.2, 0.8, 15), decay, 100, rng)
        false += find_change(log_of(table), rng).is_certain
    assert false <= 2


def timed_table(medians, clients, rng, spread=0.4):
    """Log-normal times [T, K] with one median per round."""
    return np.asarray(medians)[:, None] * np.exp(
        spread * rng.standard_normal((len(medians), clients))
    )


def test_a_change_of_answer_times_is_found_where_it_is():
    """From round 60 of 100 on, all answers take three times as long; everyone always answers."""
    rng = np.random.default_rng(0)
    seconds = timed_table(np.where(np.arange(100) < 60, 20.0, 60.0), 5, rng)
    found = find_change(log_of(np.ones((100, 5), dtype=bool), seconds), rng)
    assert found.is_certain
    assert found.kind == "times"
    assert found.first <= 60 <= found.last
    assert found.start == found.last


def test_no_change_of_answer_times_is_found_where_there_is_none():
    """At a level of 0.75 % for both tests, twenty logs have a false one in 14 % of the cases."""
    false = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        seconds = timed_table(np.full(60, 20.0), 6, rng)
        table = (rng.random((60, 6)) < 0.9) & (seconds <= 30)
        false += find_change(log_of(table, seconds, deadline=30.0), rng).is_certain
    assert false <= 2


def test_answer_times_are_not_tested_where_deadlines_differ():
    """Deadlines rise from 15 s to 60 s, so that longer times are seen; clients stay the same."""
    rng = np.random.default_rng(0)
    questions = []
    deadlines = {}
    for round in range(80):
        deadlines[round] = 15.0 if round < 40 else 60.0
        for client in range(6):
            seconds = 20 * np.exp(0.4 * rng.standard_normal())
            if seconds <= deadlines[round]:
                questions.append(Question(round, str(client), True, seconds))
            elif round >= 40 or rng.random() < 0.9:
                questions.append(Question(round, str(client), False))
    assert not find_change(make_log("made", questions, deadlines=deadlines), rng).is_certain


def test_a_change_near_the_end_has_no_latest_round():
    """All rates are reversed in round 362 of 400; nobody looks for changes after round 360."""
    rng = np.random.default_rng(0)
    rates = np.linspace(0.02, 0.98, 20)
    rows = np.where(np.arange(400)[:, None] < 362, rates, rates[::-1])
    found = find_change(asked_in_part(rng.random((400, 20)) < rows, 8, rng), rng)
    assert found.is_certain
    assert found.last is None
    assert found.start == 0
    assert found.may_go_on


def test_a_gradual_change_is_found_again_in_the_rest():
    """All rates fall from 0.98 to 0.02 over 200 rounds, in which 8 of 20 clients are asked.

    Each of six logs has a change for certain, and the rest of most has another.
    """
    falling = np.linspace(0.98, 0.02, 200)[:, None]
    again = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        found = find_change(asked_in_part(rng.random((200, 20)) < falling, 8, rng), rng)
        assert found.is_certain
        assert found.start > 100
        again += found.count > 1
    assert again >= 3


def test_the_part_after_a_change_is_a_log_of_its_own():
    table = np.arange(12).reshape(4, 3) % 2 == 0
    log = log_of(table)
    part = log.since(2)
    assert part.num_rounds == 2
    assert part.tables()[1].tolist() == table[2:].tolist()


def test_the_part_after_a_change_has_a_cohort_of_its_own():
    questions = [Question(round, str(client), True) for round in range(9) for client in range(2)]
    questions += [Question(9, str(client), True) for client in range(6)]
    log = make_log("made", questions, round_seconds={10: 5.0})
    assert log.cohort == 2
    assert log.since(9).cohort == 6
    assert log.since(10).cohort == 1  # nobody was asked


def test_waste_counts_what_did_not_arrive():
    table = np.array([[1, 1, 0, 0], [1, 0, 0, 0]] * 20, dtype=bool)
    log = log_of(table)
    weights = bootstrap_weights(40, 200, 1, np.random.default_rng(0))
    found = measure_waste(log, weights, block=1)
    assert found.share.value == 5 / 8
    assert found.share.low < 5 / 8 < found.share.high
    assert found.reasons == {"lost": 100}


def test_a_round_without_an_answer_is_waited_for_in_full():
    """Rounds of 60 s: one has an answer after 45 s, one has none, so 75 s of 120 s are waiting.

    One has an answer at an unknown time and one asked nobody: both say nothing.
    """
    questions = [
        Question(1, "a", True, 45.0),
        Question(1, "b", False),
        Question(2, "a", False),
        Question(3, "a", True),
    ]
    lengths = dict.fromkeys([1, 2, 3, 4], 60.0)
    log = make_log("made", questions, round_seconds=lengths)
    assert measure_waste(log, np.ones((1, 4)), block=1).waiting == 75 / 120
    untimed = make_log("made", questions[2:], round_seconds=lengths)
    assert np.isnan(measure_waste(untimed, np.ones((1, 4)), block=1).waiting)


@pytest.mark.parametrize(("cut", "late"), [(1.0, np.nan), (0.43, 1.0)])
def test_times_beyond_the_deadline_are_estimated(cut, late):
    """Log-normal times of median 10 s and spread 0.5.

    The deadline cuts a sixth of them off, or a third where it is known who was late.
    """
    rng = np.random.default_rng(7)
    seconds = 10 * np.exp(0.5 * rng.standard_normal((400, 20)))
    answers = np.ones((400, 20), dtype=bool)
    if np.isnan(late):
        answers = rng.random((400, 20)) < 0.8
    deadline = 10 * np.exp(0.5 * cut)
    log = log_of(answers & (seconds <= deadline), seconds, deadline, late)
    found = fit_durations(log)
    assert np.exp(found.log_median.mean()) == pytest.approx(10.0, rel=0.05)
    assert found.spread == pytest.approx(0.5, rel=0.06)
    assert found.answers.mean() == pytest.approx(answers.mean(), abs=0.04)
    assert found.by_chance == np.isnan(late)


def test_slow_clients_keep_their_own_times():
    rng = np.random.default_rng(8)
    medians = np.where(np.arange(20) < 10, 5.0, 20.0)
    seconds = medians * np.exp(0.2 * rng.standard_normal((200, 20)))
    log = log_of(np.ones((200, 20), dtype=bool), seconds)
    found = fit_durations(log)
    assert np.allclose(np.exp(found.log_median), medians, rtol=0.1)
    assert found.spread == pytest.approx(0.2, rel=0.1)
    assert fit_durations(log_of(np.ones((3, 5), dtype=bool))) is None


def hanging_log():
    """Answers take 5 s, give or take 10 %; every tenth client is still at work after 60 s."""
    rng = np.random.default_rng(0)
    hangs = rng.random((100, 10)) < 0.1
    seconds = 5 * np.exp(0.1 * rng.standard_normal((100, 10)))
    return log_of(~hangs, seconds, deadline=60.0, late=1.0)


def test_answers_that_come_after_the_deadline_come_after_it():
    """The deadline is 25 deviations away from the other answers."""
    log = hanging_log()
    durations = fit_durations(log)
    assert durations.spread > 0.5  # else none would be late
    clients = np.zeros(1000, dtype=np.int64)
    for spread in (0.1, 0.45, 0.5, durations.spread):
        narrow = replace(durations, log_median=np.full(10, np.log(5.0)), spread=spread)
        times = narrow.late_times(clients, np.full(1000, 60.0), np.random.default_rng(1))
        assert (times > 60).all()
        assert np.median(times) > 60.1


def test_the_present_deadline_gets_as_many_answers_as_were_recorded():
    log = hanging_log()
    found = advise_deadline(log, block=5, rng=np.random.default_rng(0))
    now = found.nearest(60.0)
    assert found.seconds[now] == 60.0
    assert found.arrivals[now] == pytest.approx(log.arrived_in_round.mean())


def test_times_of_a_clock_of_whole_seconds_are_halved_seconds():
    """Median 1.5 s and spread 0.5: a fifth of the answers takes less than a second."""
    rng = np.random.default_rng(0)
    seconds = np.floor(1.5 * np.exp(0.5 * rng.standard_normal((100, 10))))
    log = log_of(np.ones((100, 10), dtype=bool), seconds)
    assert log.seconds.min() == 0.5
    assert "answer times are 0 s" in log.notes[0]
    found = fit_durations(log)
    assert 0.8 < np.exp(found.log_median).mean() < 1.5
    assert found.spread < 0.8


def test_a_clock_that_only_says_0_says_nothing():
    log = log_of(np.ones((30, 3), dtype=bool), np.zeros((30, 3)), deadline=5.0)
    assert log.arrived.all()
    assert not np.isfinite(log.seconds).any()
    assert log.notes == ("All answer times are 0 s: the answers count, their times do not.",)
    assert advise_deadline(log, block=3, rng=np.random.default_rng(0)) is None


def test_rounds_with_answers_without_a_time_do_not_say_what_else_a_round_takes():
    """Every round takes 11 s and its answer 10 s, but in most rounds the answer has no time."""
    questions = []
    for round in range(60):
        questions.append(Question(round, "a", True, 10.0 if round % 3 == 0 else np.nan))
    lengths = dict.fromkeys(range(60), 11.0)
    log = make_log("made", questions, deadline=20.0, round_seconds=lengths)
    found = advise_deadline(log, block=3, rng=np.random.default_rng(0))
    assert found.length[found.nearest(20.0)] == pytest.approx(11.0, abs=0.2)


@pytest.mark.parametrize("decay", [0.0, 0.7])
def test_intervals_of_rates_hold_the_truth(decay):
    """Of 300 intervals of 95 %, at least 93 %: two standard errors are 2.5 points."""
    rng = np.random.default_rng(9)
    held = 0
    for _ in range(10):
        rates = rng.uniform(0.2, 0.9, size=30)
        log = log_of(chain(rates, decay, 150, rng))
        found = estimate_rates(log, estimate_persistence(log), rng)
        held += int(((found.low <= rates) & (rates <= found.high)).sum())
    assert held >= 0.925 * 300


def test_failures_are_summed_by_client_though_there_are_as_many_groups_as_clients():
    # Two deadlines: client 0 failed under both, client 1 under none.
    none = np.zeros(2)
    counts = Counts(
        answers=none + 5,
        sums=none,
        squares=none + 5,
        never=none,
        client=np.array([0, 0]),
        deadline=np.array([10.0, 20.0]),
        late=np.array([3.0, 4.0]),
        unsure=none,
    )
    grid = ClientGrid(counts, means=np.zeros((2, 1)), step=np.ones(2))
    assert grid._sum_groups(counts.late).tolist() == [7.0, 0.0]


def test_a_simulation_whose_server_knows_who_is_offline_asks_nobody_in_vain(tmp_path):
    config = SimulationConfig(
        ("random",),
        clients=20,
        cohort=4,
        rounds=30,
        seeds=1,
        world="markov",
        knows_offline=True,
    )
    load_or_simulate("simulate", config, tmp_path / "run")
    log = play_simulation(tmp_path / "run")
    assert log.arrived.all()
    assert len(log.arrived) > 0


@pytest.mark.parametrize("clients", [3, 50, 120])  # 50 are added up together
def test_the_gain_of_each_change_is_that_of_logarithms_client_by_client(clients, monkeypatch):
    rng = np.random.default_rng(clients)
    asked = rng.random((40, clients)) < 0.5
    asked[:, 0] = True  # a round without a request would be none
    arrived = asked & (rng.random((40, clients)) < 0.6)
    questions = []
    for round, client in np.argwhere(asked):
        questions.append(Question(int(round), str(client), bool(arrived[round, client])))

    def likelihood(rounds):
        total = 0.0
        for number, came in zip(asked[rounds].sum(0), arrived[rounds].sum(0), strict=True):
            for part in (came, number - came):
                total += part * np.log(part / number) if part else 0.0
        return total

    computed = []
    plain = change._gains

    def gains(chunks, order, of_sums):
        found = plain(chunks, order, of_sums)
        computed.append((order, found))
        return found

    monkeypatch.setattr(change, "_gains", gains)
    change._test_rates(make_log("made", questions), 2, rng)
    for order, found in computed[:3]:  # as recorded, and two shuffles
        one = likelihood(order)
        wanted = []
        for at in range(4, 37):  # no change is looked for in a tenth of the rounds at each end
            wanted.append(2 * (likelihood(order[:at]) + likelihood(order[at:]) - one))
        assert found == pytest.approx(wanted, abs=1e-9)
