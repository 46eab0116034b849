"""The advice itself: what it recommends, what it says, and what it hands out."""

import ast
import json
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from fedcohort.advice import Description, Options, advise, play_description, sentences, to_dict
from fedcohort.advice.cohort import advise_cohort
from fedcohort.advice.deadline import advise_deadline
from fedcohort.advice.durations import fit_durations
from fedcohort.advice.estimates import Interval, bootstrap_rounds
from fedcohort.advice.fitted import (
    fitted_world,
    rates_at,
    resampled_availability,
    resampled_world,
    world_at,
)
from fedcohort.advice.gains import (
    difference,
    gain_between,
    mean_and_doubt,
    p_value_between,
    played_difference,
)
from fedcohort.advice.log import Question, make_log
from fedcohort.advice.persistence import NONE, Persistence
from fedcohort.advice.rules import advise_rule
from fedcohort.advice.selector_play import Played, least_asked_shares, play_selectors
from fedcohort.advice.selectors import advise_selector
from fedcohort.advice.settings import comparison_settings, flower_snippet, settings_text
from fedcohort.advice.together import Together
from fedcohort.advice.unseen import draw_durations
from fedcohort.lab.config import ComparisonConfig


def known_rates(values, runs=20):
    return np.tile(np.asarray(values, dtype=float), (runs, 1))


NOT_TOGETHER = Together(Interval(0.0, -0.1, 0.1), is_certain=False)


@pytest.fixture(scope="module")
def described():
    log = play_description(Description(30, 6, (0.2, 0.9), deadline=60.0, seconds=20.0, rounds=200))
    return advise(log, Options(rounds=100, model_bytes=1_000_000))


def test_the_same_seed_gives_the_same_advice(described):
    again = advise(described.log, Options(rounds=100, model_bytes=1_000_000))
    assert to_dict(again) == to_dict(described)


def test_every_number_of_the_advice_is_json(described):
    values = to_dict(described)
    assert json.loads(json.dumps(values)) == values
    assert values["rounds"] == 200
    assert len(values["rates"]) == 30


def test_every_topic_is_spoken_about_and_what_cannot_be_said_is_marked(described):
    said = sentences(described)
    assert {one.topic for one in said} == {"seen", "deadline", "cohort", "selector", "rule"}
    unsaid = [one.text for one in said if not one.is_said]
    assert any("accuracy cannot be said from a log" in text for text in unsaid)
    assert all(one.text.endswith(".") for one in said)
    assert any("30 MB for 30 clients" in one.text for one in said)


def test_the_settings_are_taken_by_compare(described):
    settings = tomllib.loads(described.settings_toml)
    config = ComparisonConfig.from_dict(settings)
    assert config.clients == 30
    assert config.selectors[0] == "random"
    assert config.aggregations == ("normalised",)


def test_the_snippet_is_python_with_the_recommended_values(described):
    call = ast.parse(described.snippet).body[-1].value
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert call.func.id == "CohortStrategy"
    assert ast.literal_eval(call.args[1]) == described.selector.best
    assert given["cohort_size"] == 6
    assert given["num_clients"] == 30
    assert given["aggregation"] == "normalised"


def test_the_snippet_is_a_strategy_of_flower(described, tmp_path, monkeypatch):
    pytest.importorskip("flwr")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(described.snippet, names)
    assert names["strategy"].options.deadline == pytest.approx(described.deadline.best, rel=1e-3)


def test_a_short_log_is_refused():
    log = play_description(Description(10, 2, (0.5,), rounds=4))
    with pytest.raises(ValueError, match="at least 5 rounds to say anything, got 4"):
        advise(log)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"keep": 1.5}, "keep"), ({"fair": -1}, "fair"), ({"needed": 0}, "needed"),
     ({"rounds": 0}, "rounds"), ({"rounds": 2**63}, "rounds")],
)  # fmt: skip
def test_options_out_of_bounds_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=f"^{message} must be"):
        Options(**options)


def test_a_log_without_times_gets_no_deadline():
    log = play_description(Description(20, 5, (0.5,), rounds=40))
    advice = advise(log, Options(rounds=50, selectors=("random",)))
    assert advice.deadline is None
    (text,) = [one.text for one in sentences(advice) if one.topic == "deadline"]
    assert "cannot be recommended: 0 answers have a time, and at least 20 must" in text
    assert "--seconds" in text
    assert "deadline" not in advice.settings


def test_the_settings_carry_every_recommendation():
    """The cohort, the deadline, enough, the selector with its quota, and the rule."""
    log = play_description(Description(40, 8, (0.5, 0.9), deadline=90.0, seconds=20.0, rounds=300))
    advice = advise(log, Options(needed=8, rounds=60))
    cohort = advice.cohort
    assert cohort.ask > 8
    assert cohort.enough == 8  # everyone is as fast, so closing early leaves nobody out
    assert advice.deadline.is_said

    call = ast.parse(advice.snippet).body[-1].value
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert given["cohort_size"] == cohort.ask
    assert given["enough"] == 8
    assert given["deadline"] == pytest.approx(advice.deadline.best, rel=1e-3)
    assert given["aggregation"] == advice.rule.best
    assert ast.literal_eval(call.args[1]) == advice.selector.best
    assert advice.settings["cohort"] == cohort.ask
    assert advice.settings["deadline"] == pytest.approx(advice.deadline.best, rel=1e-3)
    assert advice.settings["selectors"][-1] == advice.selector.best
    assert advice.settings["aggregations"] == (advice.rule.best,)
    text = " ".join(one.text for one in sentences(advice))
    assert f"Ask {cohort.ask} clients instead of 8" in text
    assert "`enough=8`" in text


def test_a_deadline_that_is_to_be_kept_is_kept_in_the_settings():
    """The best deadline is 22 s, but 23.4 s gets all but as many answers per second."""
    log = play_description(
        Description(20, 10, (0.95,), deadline=23.4, seconds=15.0, spread=0.3, rounds=200)
    )
    advice = advise(log, Options(selectors=("random",), rounds=20))
    assert advice.deadline.is_said
    assert advice.deadline.best != 23.4
    (text,) = [one.text for one in sentences(advice) if one.topic == "deadline"]
    assert text.startswith("Keep the deadline of 23.4 s: no other gets more")
    assert "deadline=23.4,  # seconds\n" in advice.snippet
    assert advice.settings["deadline"] == 23.4


def test_as_many_clients_as_now_are_not_asked_instead():
    log = play_description(Description(10, 5, (0.99,), rounds=30))
    advice = advise(log, Options(needed=4, selectors=("random",), rounds=20))
    assert advice.cohort.ask == 5
    (text,) = [one.text for one in sentences(advice) if one.topic == "cohort"]
    assert text.startswith("Go on asking 5 clients: nine rounds of ten have at least 4 answers")


def test_what_every_round_had_is_not_called_impossible():
    """In five rounds all four clients answered; their rates may still be below 0.9^(1/4)."""
    questions = [Question(round, name, True) for round in range(5) for name in "abcd"]
    advice = advise(make_log("made", questions), Options(rounds=20, selectors=("random",)))
    assert advice.cohort.ask is None
    (sentence,) = [one for one in sentences(advice) if one.topic == "cohort"]
    assert "cannot have as many" not in sentence.text
    assert "go on having as many cannot be said from 5 rounds" in sentence.text
    assert not sentence.is_said


def test_uniform_selection_is_never_called_unfair():
    """Everyone always answers, so uniform selection gets the most answers; chance is unfair."""
    world = np.ones((20, 4, 20), dtype=bool)
    found = advise_selector(world, world, 5, 30, ("e3cs-0.5",), fair=1.0)
    assert found.fitted["random"].least_asked < 1
    log = play_description(Description(20, 5, (1.0,), rounds=30))
    advice = replace(advise(log, Options(rounds=20, selectors=("random",))), selector=found)
    texts = [one.text for one in sentences(advice) if one.topic == "selector"]
    assert not any(text.startswith("`random` gets the most answers") for text in texts)


def test_without_a_wish_the_recommendation_is_to_go_on_asking_as_many(described):
    assert not described.cohort.is_wanted
    assert described.cohort.recommended == 6
    assert described.cohort.enough is None
    (text, *_) = [one.text for one in sentences(described) if one.topic == "cohort"]
    assert text.startswith("Go on asking 6 clients")
    assert described.settings["cohort"] == 6


def test_after_a_change_all_numbers_rest_on_the_rounds_since():
    """Clients answer always, then only the first half does."""
    questions = []
    for round in range(120):
        for client in range(10):
            came = round < 60 or client < 5
            questions.append(Question(round, str(client), came, status="arrived" if came else "no"))
    advice = advise(make_log("made", questions), Options(rounds=30, selectors=("random",)))
    seen = [one.text for one in sentences(advice) if one.topic == "seen"]
    used = advice.used.num_rounds
    assert used <= 60
    assert f"everything below rests on the {used} rounds since" in seen[0]
    assert seen[1].startswith(f"In {used} rounds {10 * used} requests went to 10 clients")
    assert "50 % (50 to 50) were answered" in seen[1]
    assert any(f"{5 * used} no" in text for text in seen)


def test_a_selector_that_is_a_guess_is_marked_in_the_snippet():
    values = {"selector": "random", "rule": "paper", "cohort": 2, "clients": 3, "deadline": None}
    assert "# a guess" not in flower_snippet(**values)
    guess = flower_snippet(**values, is_guess=True)
    assert '"random",  # a guess: the log does not tell for certain' in guess
    ast.parse(guess)


def test_a_deadline_to_try_stands_beside_the_present_one_in_the_snippet():
    values = {"selector": "random", "rule": "paper", "cohort": 2, "clients": 3, "deadline": 30.0}
    text = flower_snippet(**values, to_try=21.88)
    assert "deadline=30,  # seconds; try 21.9\n" in text
    ast.parse(text)
    unknown = flower_snippet(**values | {"deadline": None})
    assert "deadline=60.0,  # seconds; a placeholder: the log does not say which" in unknown
    ast.parse(unknown)


def test_without_two_outcomes_nobody_fails_together():
    """A log in which everybody fails says nothing about who shares whose luck."""
    questions = []
    for round in range(8):
        questions += [Question(round, name, False, late=1.0, status="stopped") for name in "abc"]
    log = make_log("made", questions, deadline=25.0)
    advice = advise(log, Options(rounds=20, selectors=("random",)))
    assert not advice.together.is_certain
    (text,) = [one.text for one in sentences(advice) if one.topic == "deadline"]
    assert "24 of 24 missing updates were not done at the deadline of 25 s" in text


def test_clients_that_never_answer_are_named_with_the_reasons():
    questions = []
    for round in range(8):
        questions.append(Question(round, "good", True, 1.0, status="arrived"))
        questions.append(Question(round, "bad", False, status="lost"))
    advice = advise(make_log("made", questions), Options(rounds=20, selectors=("random",)))
    texts = [one.text for one in sentences(advice)]
    assert "Clients without one counted answer: bad (asked 8 times: 8 never answered)." in texts


def test_a_narrow_interval_around_no_correlation_is_no_question():
    """What is known is said with a dash; "cannot be said" stands beside a question mark."""
    log = play_description(Description(20, 10, (0.5,), rounds=200))
    advice = advise(log, Options(rounds=20, selectors=("random",)))
    assert advice.together.correlation.high < 0.1
    (said,) = [one for one in sentences(advice) if "fail together" in one.text]
    assert said.is_said
    assert said.text.startswith("No sign that clients fail together (correlation within a round")
    wide = replace(advice.together, correlation=Interval(0.0, -0.2, 0.2), is_certain=False)
    (said,) = [
        one
        for one in sentences(replace(advice, together=wide))
        if "clients fail together" in one.text
    ]
    assert not said.is_said
    assert said.text.startswith("It cannot be said whether clients fail together (")


def test_a_share_that_stays_the_same_is_not_said_to_change():
    log = play_description(Description(12, 4, (0.9,), seconds=10.0, deadline=60.0, rounds=60))
    advice = advise(log, Options(rounds=20, selectors=("random",), needed=2))
    assert advice.cohort.saves_time
    same = replace(advice.cohort, slow_early=0.481, slow_now=0.479)
    text = " ".join(one.text for one in sentences(replace(advice, cohort=same)))
    assert "the slower half of the clients still gives 48 % of the answers." in text
    other = replace(advice.cohort, slow_early=0.4, slow_now=0.5)
    text = " ".join(one.text for one in sentences(replace(advice, cohort=other)))
    assert "the slower half of the clients then gives 40 % of the answers instead of 50 %." in text


def test_of_many_clients_that_never_answer_a_few_are_named():
    questions = []
    for round in range(5):
        questions += [Question(round, f"c{client}", False, status="lost") for client in range(7)]
    advice = advise(make_log("made", questions), Options(rounds=20, selectors=("random",)))
    (found,) = [one for one in sentences(advice) if "without one" in one.text]
    assert "c4 (asked 5 times: 5 never answered) and 2 more." in found.text
    assert "c5" not in found.text
    assert found.numbers == {"clients": 7}


# --- Deadline ------------------------------------------------------------------------------


def timed_log(times, deadline):
    questions = []
    for round, row in enumerate(times):
        for client, time in enumerate(row):
            came = bool(time <= deadline)
            seconds = float(time) if came else np.nan
            late = np.nan if came else 0.0
            questions.append(Question(round, str(client), came, seconds, late))
    return make_log("made", questions, deadline=deadline)


def test_a_deadline_far_beyond_the_answers_is_shortened():
    """Answers take 1 to 2 s and one client never answers, so every round lasts the deadline."""
    rng = np.random.default_rng(0)
    times = rng.uniform(1.0, 2.0, size=(60, 10))
    times[:, 0] = np.inf
    found = advise_deadline(timed_log(times, 20.0), block=4, rng=rng)
    assert found.is_said
    assert 1.8 < found.best < 2.3
    assert found.gain.low > 5
    place = int(np.abs(found.seconds - 20.0).argmin())
    assert found.arrivals[place] == pytest.approx(9.0)
    assert found.length[place] == pytest.approx(20.0)


def test_a_deadline_must_keep_the_share_of_answers():
    """A tenth of the answers takes ten times as long; keep=1 waits for them, keep=0.8 does not."""
    rng = np.random.default_rng(1)
    times = np.full((60, 10), 1.0) * rng.uniform(0.9, 1.1, size=(60, 10))
    times[:, 0] *= 10
    log = timed_log(times, 20.0)
    patient = advise_deadline(log, block=4, rng=np.random.default_rng(2), keep=0.99)
    hasty = advise_deadline(log, block=4, rng=np.random.default_rng(2), keep=0.8)
    assert patient.best > 9.0
    assert hasty.best < 2.0
    assert hasty.least_kept < 0.01


def test_answers_that_were_never_seen_make_a_longer_deadline_a_guess():
    log = play_description(
        Description(20, 10, (0.9,), deadline=20.0, seconds=20.0, spread=0.4, rounds=150)
    )
    found = advise_deadline(log, block=5, rng=np.random.default_rng(0))
    assert found.best > 20.0
    assert found.is_beyond
    assert not found.is_said


def test_an_answer_is_censored_at_the_deadline_of_its_own_round():
    """Median 20 s, spread 0.4. In odd rounds the server waits 15 s, in even rounds 200 s.

    Taken for one deadline of 200 s, failures of odd rounds would look as if nobody answered, and
    the answers of odd rounds as if clients were fast.
    """
    rng = np.random.default_rng(0)
    questions = []
    deadlines = {}
    for round in range(300):
        deadlines[round] = 15.0 if round % 2 else 200.0
        for client in range(10):
            time = 20.0 * np.exp(0.4 * rng.standard_normal())
            came = bool(time <= deadlines[round])
            questions.append(Question(round, str(client), came, time if came else np.nan))
    log = make_log("made", questions, deadlines=deadlines)
    assert log.deadline == pytest.approx(107.5)
    assert log.longest_deadline == 200.0
    found = fit_durations(log)
    assert np.exp(found.log_median).mean() == pytest.approx(20.0, rel=0.04)
    assert found.spread == pytest.approx(0.4, abs=0.03)
    assert found.answers.mean() > 0.97
    part = log.since(299)
    assert (part.deadline, part.deadlines.tolist()) == (15.0, [15.0])


def test_what_the_deadline_hid_is_drawn_with_its_doubt():
    """A sixth of the answers is late. Draws hold the truth, and longer logs know it better."""
    widths = []
    for rounds in (60, 960):
        log = play_description(
            Description(30, 10, (0.6,), deadline=30.0, seconds=20.0, spread=0.42, rounds=rounds)
        )
        draws = draw_durations(log, fit_durations(log), np.random.default_rng(0), 200)
        late = np.array([one.tail(30.0).mean() for one in draws])
        low, high = np.quantile(late, [0.005, 0.995])
        assert low <= 0.167 <= high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


# --- Worlds and selectors ------------------------------------------------------------------


def test_a_fitted_world_has_the_rates_the_memory_and_the_shared_luck():
    rng = np.random.default_rng(3)
    rates = np.linspace(0.2, 0.8, 20)
    lasting = Persistence(Interval(0.8, 0.7, 0.9), 1.0, 0.8, 0.5, 0.25, is_certain=True)
    world = fitted_world(known_rates(rates), lasting, NOT_TOGETHER, 2000, rng)
    assert np.allclose(world.mean(axis=(0, 1)), rates, atol=0.05)
    centred = world - rates
    products = (centred[1:] * centred[:-1]).mean(axis=(0, 1))
    assert np.allclose(products / (rates * (1 - rates)), 0.8, atol=0.06)

    together = Together(Interval(0.3, 0.2, 0.4), is_certain=True)
    world = fitted_world(known_rates(np.full(10, 0.5)), NONE, together, 400, rng)
    pair = np.corrcoef(world[..., 0].ravel(), world[..., 1].ravel())[0, 1]
    assert pair == pytest.approx(0.3, abs=0.05)


def test_a_resampled_world_does_what_the_log_did():
    """Client 0 always answered, client 1 never, client 2 was never asked."""
    questions = []
    for round in range(30):
        questions += [Question(round, "0", True), Question(round, "1", False)]
    log = make_log("made", questions, names=("2",))
    rng = np.random.default_rng(4)
    source = bootstrap_rounds(30, 20, 3, rng, length=200)
    world = resampled_world(log, known_rates([0.5, 0.5, 0.25]), NONE, source, rng)
    assert world[..., 0].all()
    assert not world[..., 1].any()
    assert world[..., 2].mean() == pytest.approx(0.25, abs=0.04)


def test_nobody_who_was_absent_is_asked_in_a_round_that_comes_again():
    """In even rounds only the first five of 20 clients were there, in odd rounds the last five.

    All that were there were asked, so that no selector has a choice, and none can gain.
    """
    rng = np.random.default_rng(7)
    questions = []
    available = {}
    for round in range(60):
        there = range(15, 20) if round % 2 else range(5)
        available[round] = {str(client) for client in there}
        for client in there:
            questions.append(Question(round, str(client), bool(rng.random() < (client % 5) / 4)))
    names = tuple(str(client) for client in range(20))
    log = make_log("made", questions, names=names, available=available, selector="random")
    source = np.array([[0, 3, 2]])
    is_there = resampled_availability(log, source)
    assert is_there.shape == (3, 1, 20)
    assert is_there[:, 0, 0].tolist() == [True, False, True]
    assert is_there[:, 0, 19].tolist() == [False, True, False]

    found = advise(log, Options(selectors=("e3cs-0",), rounds=40)).selector
    for played in (found.fitted, found.resampled):
        assert (played["e3cs-0"].arrivals == played["random"].arrivals).all()
        assert played["e3cs-0"].least_asked == 1  # as often as uniform selection asks them
    full = replace(log, available=np.ones_like(log.available))
    assert resampled_availability(full, source) is None
    free = advise(full, Options(selectors=("e3cs-0",), rounds=40)).selector
    assert (free.fitted["e3cs-0"].arrivals > free.fitted["random"].arrivals).any()


def test_runs_may_have_fewer_clients_than_are_to_be_asked():
    """Everyone answers. One run has one client in each round, the other three: 1 and 2 answers."""
    world = np.ones((10, 2, 4), dtype=bool)
    available = np.zeros_like(world)
    available[:, 0, 0] = True
    available[:, 1, :3] = True
    played = play_selectors(world, 2, ("random", "e3cs-0.5"), available=available)
    for name in played:
        assert played[name].arrivals.tolist() == [1, 2]
        assert played[name].neglected[0] == 1  # all that can be asked are


def test_selectors_meet_the_same_rounds_and_uniform_selection_neglects_nobody():
    rng = np.random.default_rng(5)
    world = rng.random((200, 10, 20)) < np.repeat([0.1, 0.9], 10)
    played = play_selectors(world, 5, ("random", "e3cs-0", "e3cs-0.5"))
    assert played["random"].arrivals.mean() == pytest.approx(2.5, abs=0.1)
    assert played["random"].least_asked > 0.9
    assert played["e3cs-0"].arrivals.mean() > played["e3cs-0.5"].arrivals.mean() > 2.8
    assert played["e3cs-0"].least_asked < 0.4 < 0.5 < played["e3cs-0.5"].least_asked


def test_neglect_is_that_of_the_fifth_asked_least():
    """Two of ten clients are a fifth. Each is due 4 times in either half of the rounds.

    In the first half clients 8 and 9 are asked least, and 1 and 5 times in the second. There, 8
    and 7 are asked least, and 0 and 6 times in the first: 12 times of 16.
    """
    first = [5, 5, 5, 5, 5, 5, 4, 6, 0, 1]
    second = [5, 5, 5, 5, 5, 5, 4, 2, 1, 5]
    counts = np.array([[first], [second]])
    fair = np.full((2, 1, 10), 4.0)
    assert least_asked_shares(counts, fair, np.zeros((1, 10))).tolist() == [12 / 16]


def test_clients_that_never_can_be_asked_are_not_neglected():
    """Of five clients the last is never there; the fourth is asked 1 of the 2 times it is due."""
    counts = np.array([[[2, 2, 2, 1, 0]], [[2, 2, 2, 1, 0]]])
    fair = np.array([[[2.0, 2.0, 2.0, 2.0, 0.0]]] * 2)
    assert least_asked_shares(counts, fair, np.zeros((1, 5))).tolist() == [0.5]


def test_of_clients_that_were_never_asked_those_that_answer_least_are_the_neglected():
    """Nobody is asked in the first half; in the second, client 2 answers least and is asked."""
    counts = np.array([[[0, 0, 0, 0, 0]], [[0, 0, 3, 0, 0]]])
    fair = np.array([[[0.0] * 5], [[0.6] * 5]])
    rates = np.array([[0.5, 0.6, 0.1, 0.9, 0.8]])
    assert least_asked_shares(counts, fair, rates).tolist() == [5.0]


def test_a_selector_that_always_asks_the_same_clients_neglects_the_others():
    """All answer alike: who is never asked differs in his rate from nobody else."""
    world = np.random.default_rng(6).random((60, 8, 20)) < 0.6
    played = play_selectors(world, 4, ("random", "fedcs"), np.linspace(0.59, 0.61, 20))
    assert played["fedcs"].least_asked == 0


def test_uniform_selection_neglects_nobody_even_if_chance_does():
    """Of 200 clients 4 are asked in each of 20 rounds, so that most are never asked.

    In 400 runs the least asked fifth is due 400 * 20 * 4 / 5 = 6400 times, so that the mean share
    has the standard error 1 / 80, or sqrt(2) / 80 if both halves tell the same.
    """
    world = np.ones((20, 400, 200), dtype=bool)
    played = play_selectors(world, 4, ("random",))
    assert played["random"].least_asked == pytest.approx(1.0, abs=5 / 80)


def test_doubt_is_what_runs_with_the_same_rates_share():
    """Rates move a run by a deviation of 2, its own rounds by 1: doubt is 2, and the mean's error.

    With n pairs the estimated variance 4 has the deviation (4 + 1) sqrt(2 / n), so 4000 pairs are
    within 5 % of it by nine deviations.
    """
    rng = np.random.default_rng(7)
    shared = 2 * rng.standard_normal(4000)
    values = np.concatenate([shared, shared]) + rng.standard_normal(8000)
    mean, doubt = mean_and_doubt(values)
    assert mean == pytest.approx(0.0, abs=0.2)
    assert doubt == pytest.approx(2.0, rel=0.1)
    alone = mean_and_doubt(rng.standard_normal(8000))[1]
    assert alone < 0.3


def test_nothing_is_said_of_selectors_if_clients_may_have_changed():
    log = play_description(Description(20, 5, (0.1, 0.9), rounds=200))
    world = np.random.default_rng(8).random((60, 16, 20)) < np.repeat([0.1, 0.9], 10)
    sure = advise_selector(world, world, 5, log.num_rounds, ("random",))
    unsure = advise_selector(world, world, 5, log.num_rounds, ("random",), may_have_changed=True)
    assert sure.is_said
    assert not unsure.is_said
    assert unsure.more_rounds == 200


@pytest.mark.parametrize("present", [None, "random", "e3cs-0.8"])
def test_a_selector_whose_gain_may_be_0_is_not_recommended(present):
    """Clients may all be alike; in eight of 24 draws of their rates half of them are better."""
    rng = np.random.default_rng(9)
    rates = np.full((24, 20), 0.5)
    rates[:8] = np.repeat([0.1, 0.9], 10)
    world = rng.random((160, 48, 20)) < np.concatenate([rates, rates])
    names = ("random", "e3cs-0.5")
    found = advise_selector(world, world, 5, 100, names, present=present)
    assert played_difference(found.fitted, "e3cs-0.5", present or "random").is_above(0.0)
    assert found.best == (present or "random")


def test_a_selector_is_sure_only_if_it_gets_more_in_both_worlds():
    """In the fitted world half of the clients always fail; in the other all answer alike."""
    rng = np.random.default_rng(10)
    fitted = rng.random((80, 16, 20)) < np.repeat([0.1, 0.9], 10)
    alike = rng.random((80, 16, 20)) < 0.9
    names = ("random", "e3cs-0.5")
    sure = advise_selector(fitted, fitted, 5, 100, names)
    assert sure.best == "e3cs-0.5"
    assert sure.is_said
    unsure = advise_selector(fitted, alike, 5, 100, names)
    assert unsure.best == "e3cs-0.5"
    assert not unsure.is_said


def test_a_difference_has_students_interval():
    """Differences 1, 2, 3: mean 2, standard error 1/sqrt(3), t = 4.302653."""
    found = difference(np.array([1.0, 2.0, 3.0]), np.zeros(3))
    assert found.value == 2
    assert found.high == pytest.approx(2 + 4.302653 / np.sqrt(3))


def test_a_gain_is_in_doubt_as_far_as_the_rates_are():
    """Four pairs of runs with the gains 1, 2, 3, 4 that both runs of a pair share exactly.

    The rates' variance is 5/3 and that of all eight runs 10/7, which bounds it from above; with the
    error of the mean, 10/56, the doubt is sqrt(45/28). Student's t for 3 degrees is 3.182446.
    """
    gains = np.tile([1.0, 2.0, 3.0, 4.0], 2)
    empty = np.zeros((8, 1))
    played = {
        "one": Played(gains + 5, empty, empty),
        "other": Played(np.full(8, 5.0), empty, empty),
    }
    found = gain_between(played, "one", "other")
    doubt = np.sqrt(45 / 28)
    assert found.value == pytest.approx(2.5)
    assert found.high == pytest.approx(2.5 + 3.182446 * doubt)
    played["other"] = Played(played["one"].arrivals - 3.182446 * doubt, empty, empty)
    assert p_value_between(played, "one", "other") == 0.0  # the same difference in all runs
    assert gain_between(played, "one", "one").as_dict() == {"value": 0, "low": 0, "high": 0}
    assert p_value_between(played, "one", "one") == 1.0


def test_runs_with_the_same_rates_count_as_one():
    """Pairs with gains 1, 2, 3: mean 2, error 1/sqrt(3), t = 4.302653 as for three runs."""
    empty = np.zeros((6, 1))
    played = {
        "one": Played(np.tile([1.0, 2.0, 3.0], 2), empty, empty),
        "other": Played(np.zeros(6), empty, empty),
    }
    found = played_difference(played, "one", "other")
    assert found.low == pytest.approx(2 - 4.302653 / np.sqrt(3))


# --- Cohort, rule, settings ----------------------------------------------------------------


def test_enough_clients_are_asked_for_nine_rounds_of_ten():
    """Everyone answers half of the time: 10 of n with probability 0.9 needs n = 26."""
    rng = np.random.default_rng(6)
    log = play_description(Description(60, 20, (0.5,), rounds=50))
    world = rng.random((2000, 1, 60)) < 0.5
    found = advise_cohort(log, world, None, rng, needed=10)
    assert 25 <= found.ask <= 27


def test_nobody_can_ask_more_clients_than_there_are():
    log = play_description(Description(10, 5, (0.1,), rounds=30))
    world = np.zeros((100, 2, 10), dtype=bool)
    found = advise_cohort(log, world, None, np.random.default_rng(0), needed=5)
    assert found.ask is None


def test_a_rule_that_remembers_needs_a_model_per_client():
    found = advise_rule(100, 4_000)
    assert found.best == "normalised"
    assert found.memory_bytes == 400_000
    assert set(found.remembering) == {"mifa", "fedvarp"}


@pytest.mark.parametrize("clients", [1, 2, 37, 3000])
@pytest.mark.parametrize("is_certain", [True, False])
def test_settings_of_any_log_are_accepted(clients, is_certain):
    log = play_description(Description(clients, 1, (0.5,), rounds=30))
    lasting = Persistence(Interval(0.8, 0.7, 0.9), 1.0, 0.8, 0.5, 0.25, is_certain=is_certain)
    rates = np.linspace(0, 1, clients)
    settings = comparison_settings(
        log, rates, lasting, None, selectors=("random",), cohort=1, deadline=None
    )
    assert settings["clients"] == min(clients, 200)
    assert ("world" in settings) == is_certain


@pytest.mark.parametrize(
    ("rates", "option", "wanted"),
    [((0.5, 0.99), "off=2", (0.5, 0.99)),
     ((0.15, 0.85), "cycle=8", (0.15, 0.85)),
     ((0.15, 0.99), "cycle=8", (0.15, 0.874)),
     ((0.03, 0.8), "on=6", (0.03, 0.8))],
)  # fmt: skip
def test_failures_last_as_long_in_the_settings_as_in_the_log(rates, option, wanted):
    """Three rounds of four are answered, and a state lasts with 1/3: off for 2 rounds, on for 6.

    On and off times of a round or more allow rates from 1/8 to 7/8 in cycles of 8 rounds, from
    1/3 with off times of 2 rounds, and up to 6/7 with on times of 6.
    """
    log = play_description(Description(10, 2, (0.5,), rounds=30))
    lasting = Persistence(Interval(0.3, 0.2, 0.4), 1.0, 1 / 3, 0.75, 0.1875, is_certain=True)
    settings = comparison_settings(
        log,
        np.repeat(rates, 5),
        lasting,
        None,
        selectors=("random",),
        cohort=2,
        deadline=None,
    )
    assert settings["world_options"] == (option,)
    assert (settings["rates"][0], settings["rates"][-1]) == pytest.approx(wanted)
    text = settings_text(settings, log, NOT_TOGETHER)
    assert f"# Failures last as long as in the log ({option} rounds)" in text


def test_the_settings_have_few_classes_with_the_mean_rate_of_the_log():
    """Rates are shrunk: 60 clients that all answer 0.8 of the time are nearly alike."""
    log = play_description(Description(60, 12, (0.8,), deadline=60.0, seconds=20.0, rounds=60))
    advice = advise(log, Options(rounds=20, selectors=("random",)))
    rates = advice.settings["rates"]
    assert len(rates) <= 5
    assert list(rates) == sorted(rates)
    assert rates[-1] - rates[0] < 0.1
    assert np.mean(rates) == pytest.approx(0.8, abs=0.03)
    alike = comparison_settings(
        log, np.full(60, 0.7), NONE, None, selectors=("random",), cohort=5, deadline=None
    )
    assert alike["rates"] == (0.7,)


def test_the_deadline_takes_its_part_of_the_rates_in_the_settings_once():
    """Half of the answers come before the median, so that 0.4 in time are 0.8 at all."""
    log = play_description(Description(20, 5, (0.8,), deadline=20.0, seconds=20.0, rounds=30))
    durations = replace(
        fit_durations(log), log_median=np.full(20, np.log(20.0)), spread=0.5, answers=np.ones(20)
    )
    settings = comparison_settings(
        log, np.full(20, 0.4), NONE, durations, selectors=("random",), cohort=5, deadline=20.0
    )
    assert settings["rates"] == pytest.approx((0.8,), abs=1e-3)


def test_the_settings_say_that_they_leave_shared_failures_out():
    questions = []
    for round in range(60):
        questions += [Question(round, name, round % 3 > 0) for name in "abcdef"]
    advice = advise(make_log("made", questions), Options(rounds=20, selectors=("random",)))
    assert advice.together.is_certain
    assert "# Left out: clients of the log fail together" in advice.settings_toml


def test_a_rate_at_another_deadline_follows_from_the_times():
    """Median 20 s: half of the answers come before 20 s, and all before an endless deadline."""
    log = play_description(Description(10, 5, (0.6,), deadline=1e6, seconds=20.0, rounds=40))
    durations = replace(
        fit_durations(log), log_median=np.full(10, np.log(20.0)), answers=np.full(10, 0.6)
    )
    rates = np.full(10, 0.6)
    assert rates_at(rates, log, durations, 20.0) == pytest.approx(np.full(10, 0.3))
    rng = np.random.default_rng(0)
    world = rng.random((2000, 2, 10)) < 0.6
    other = world_at(world, log, durations, 20.0, rng)
    assert other.mean() == pytest.approx(0.3, abs=0.02)
    assert not (other & ~world).any()

    short = replace(log, deadline=20.0)
    assert rates_at(rates / 2, short, durations, 1e6) == pytest.approx(rates)
    longer = world_at(other, short, durations, 1e6, rng)
    assert longer.mean() == pytest.approx(0.6, abs=0.02)
    assert not (other & ~longer).any()


def test_the_cohort_is_for_the_deadline_that_is_handed_out():
    """A new deadline loses answers, so that more clients must be asked for as many of them."""
    log = play_description(
        Description(60, 24, (0.9,), deadline=200.0, seconds=20.0, spread=0.6, rounds=150)
    )
    advice = advise(log, Options(needed=20, rounds=40, selectors=("random",)))
    best = advice.deadline.best
    assert advice.deadline.is_to_set
    assert best < 60
    assert advice.cohort.deadline == best
    rng = np.random.default_rng(0)
    times = 20.0 * np.exp(0.6 * rng.standard_normal((4000, advice.cohort.ask)))
    came = (rng.random(times.shape) < 0.9) & (times <= best)
    assert (came.sum(axis=1) >= 20).mean() == pytest.approx(0.92, abs=0.06)
    text = " ".join(one.text for one in sentences(advice) if one.topic == "cohort")
    assert f"with the deadline of {best:.3g} s" in text
    assert advice.cohort.seconds_now <= best


def test_rounds_that_had_enough_are_not_told_to_ask_more():
    questions = []
    for round in range(20):
        for place in range(3):
            questions.append(Question(round, str((3 * round + place) % 9), place == round % 3))
    log = make_log("made", questions)
    advice = advise(log, Options(rounds=20, selectors=("random",)))
    assert advice.cohort.enough_now == 1
    (text,) = [one.text for one in sentences(advice) if one.topic == "cohort"]
    assert text.startswith("Go on asking 3 clients: 100 % of the rounds had at least 1 answer.")
    assert "ask 4" not in text


def test_a_selector_is_compared_only_with_those_that_ask_as_many():
    log = play_description(Description(12, 4, (0.5, 0.9), rounds=60))
    advice = advise(log, Options(needed=4, rounds=30, selectors=("over-selection",)))
    assert advice.selector.left_out == ("over-selection",)
    assert tuple(advice.selector.fitted) == ("random",)
    assert '"over-selection"' not in advice.snippet
    texts = [one.text for one in sentences(advice) if one.topic == "selector"]
    assert any(text.startswith("`over-selection` cannot be compared") for text in texts)
    kept = advise(replace(log, selector="over-selection"), Options(rounds=30))
    assert kept.selector.present is None


def test_a_selector_to_compare_with_uniform_selection_is_in_the_settings():
    log = play_description(Description(20, 5, (0.8,), rounds=60))
    advice = advise(log, Options(rounds=30, selectors=("random", "e3cs-0.5", "e3cs-0.8")))
    found = advice.selector
    assert found.best == "random"
    assert advice.settings["selectors"] == ("random", found.runner_up)
    assert found.runner_up in ("e3cs-0.5", "e3cs-0.8")


def test_one_seed_has_no_spread_of_the_accuracy(described):
    row = {"partition": "iid", "selector": "random", "aggregation": "normalised"}
    trained = replace(described, training=[row | {"final": 0.9, "sd": float("nan")}])
    (text,) = [one.text for one in sentences(trained) if one.topic == "training"]
    assert text.endswith("ends at 0.900 accuracy.")


# --- Truth in simulation -------------------------------------------------------------------


@pytest.mark.slow
def test_advice_is_right_in_worlds_that_are_known(truth):
    """Twelve logs of each kind of world; `benchmarks/advice_truth.py` counts 200."""
    from collections import Counter

    count = Counter()
    for seed in range(12):
        truth.measure(seed, count)

    def share(name):
        return count[name] / count[f"{name}, of"]

    assert share("client rates") >= 0.9
    assert share("success") >= 0.9
    assert share("waste") >= 0.9
    assert share("deadline within 5 %") >= 0.8
    assert share("selector within 5 %") >= 0.8
    assert count["deadline wrong but sure"] <= 1
    assert count["selector wrong but sure"] <= 1
    assert count["deadline right and sure"] >= 4
    assert count["selector right and sure"] >= 4
