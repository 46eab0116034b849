"""What is said of the present deadline if it keeps fewer answers than it must."""

from dataclasses import replace

import numpy as np
import pytest

from fedcohort.advice.advisor import Options, advise
from fedcohort.advice.deadline import advise_deadline
from fedcohort.advice.estimates import Interval
from fedcohort.advice.headline import caveats, headline
from fedcohort.advice.log import Question, make_log
from fedcohort.advice.page import advice_findings
from fedcohort.advice.played import Description, play_description
from fedcohort.advice.text import sentences


@pytest.fixture(scope="module")
def short():
    """Median and deadline are 20 s, and late clients say so: half of the answers come in time."""
    rng = np.random.default_rng(0)
    questions = []
    for round in range(200):
        for client in range(5):
            seconds = 20.0 * np.exp(0.8 * rng.standard_normal())
            if seconds <= 20:
                questions.append(Question(round, str(client), True, seconds, status="arrived"))
            else:
                questions.append(Question(round, str(client), False, late=1.0, status="stopped"))
    log = make_log("made", questions, deadline=20.0)
    return advise(log, Options(selectors=("random",), rounds=20))


def printed(advice):
    (sentence,) = [one for one in sentences(advice) if one.topic == "deadline"]
    return sentence.text


def test_a_present_deadline_that_keeps_too_few_answers_is_not_kept(short):
    """Half of the answers come in time; three standard errors of 1,000 answers are 5 points."""
    found = short.deadline
    assert found.present_kept.value == pytest.approx(0.5, abs=0.07)
    assert found.kept[found.nearest(found.best)] > 0.85
    assert found.keeps_too_few
    assert not found.is_better  # a longer deadline gets fewer answers per second
    said = replace(short, deadline=replace(found, is_said=True))
    assert printed(said).startswith(f"Set the deadline to {found.best:.3g} s instead of 20 s")
    assert "The present deadline keeps 5" in printed(said)
    assert "--keep asks for 90 %" in printed(said)
    assert headline(said).startswith(f"Change the deadline to {found.best:.3g} s (the present one")
    unsure = replace(short, deadline=replace(found, is_said=False))
    assert "cannot be said" in printed(unsure)
    assert headline(unsure).startswith(f"Try a deadline of {found.best:.3g} s (the present one")
    for advice in (said, unsure):
        assert "eep the deadline" not in printed(advice) + headline(advice)


def test_a_longer_deadline_that_keeps_enough_stands_in_the_snippet(short):
    found = short.deadline
    wanted = f"deadline=20,  # seconds; try {found.best:.3g}\n"
    if found.is_said:
        wanted = f"deadline={found.best:.4g},  # seconds\n"
    assert wanted in short.snippet


def test_a_longer_deadline_that_nobody_saw_is_recommended_nowhere():
    """Half of the answers are late, and the log does not say which failures are late answers."""
    description = Description(20, 10, (0.9,), deadline=20.0, seconds=20.0, spread=0.4, rounds=150)
    advice = advise(play_description(description), Options(selectors=("random",), rounds=20))
    found = advice.deadline
    assert found.is_beyond
    assert found.keeps_too_few
    assert not found.is_worth_a_try
    assert headline(advice).startswith("Play a few rounds with a longer deadline (the present one ")
    assert "A few rounds with a longer deadline would tell" in caveats(advice)[0]
    assert "A few rounds with a longer deadline would tell" in printed(advice)
    assert "deadline=20,  # seconds; play a few rounds with a longer one\n" in advice.snippet


def test_a_guess_stands_in_the_snippet_if_nobody_knows_the_present_deadline():
    """Eight rounds without a failure: answers have times, but the server had no deadline."""
    rng = np.random.default_rng(0)
    questions = []
    for round in range(8):
        for client in range(4):
            seconds = 20.0 * np.exp(1.2 * rng.standard_normal())
            questions.append(Question(round, str(client), True, seconds, status="arrived"))
    advice = advise(make_log("made", questions), Options(selectors=("random",), rounds=20))
    found = advice.deadline
    assert found.present is None
    assert not found.is_said
    assert headline(advice).startswith(f"Try a deadline of {found.best:.3g} s;")
    guess = f"deadline={found.best:.4g},  # seconds; a guess: the log does not tell for certain\n"
    assert guess in advice.snippet
    assert f"to try: {found.best:.3g} s" in advice_findings(advice).answer.picture.highlighted
    assert "deadline" not in advice.settings


def test_a_present_deadline_that_keeps_enough_is_kept(short):
    found = replace(
        short.deadline,
        present_kept=Interval(0.93, 0.9, 0.96),
        gain=Interval(1.0, 0.9, 1.1),
        is_said=True,
    )
    assert headline(replace(short, deadline=found)).startswith("Keep the deadline of 20 s")


@pytest.mark.parametrize("seed", range(4))
def test_the_recommended_deadline_keeps_the_share_of_the_answers_that_it_must(seed):
    description = Description(
        20, 5, (0.6,), seconds=20.0, spread=0.8, deadline=100.0, rounds=40, seed=seed
    )
    found = advise_deadline(
        play_description(description), block=1, rng=np.random.default_rng(seed), keep=0.95
    )
    assert found.kept[found.nearest(found.best)] >= 0.95
    assert found.best >= found.shortest_allowed


@pytest.mark.parametrize("seed", range(4))
def test_a_deadline_is_kept_only_if_it_keeps_enough(seed):
    """One in five answers is late; a log may look as if the present deadline were the best."""
    description = Description(
        20, 5, (0.6,), seconds=20.0, spread=0.5, deadline=34.0, rounds=60, seed=seed
    )
    found = advise_deadline(play_description(description), block=1, rng=np.random.default_rng(seed))
    on_curve = found.kept[found.nearest(34.0)]
    assert found.present_kept.value == pytest.approx(on_curve)
    assert found.keeps_too_few == (on_curve < 0.9)
    assert found.keeps_too_few <= (found.best > 34.0)


def test_a_share_below_the_bound_does_not_read_like_it(short):
    found = replace(short.deadline, present_kept=Interval(0.896, 0.8, 0.95), is_said=True)
    advice = replace(short, deadline=found)
    assert "keeps 89.6 % (80 to 95) of all answers, and --keep asks for 90 %" in printed(advice)
    assert "(the present one keeps 89.6 % of all answers)" in headline(advice)


def test_a_risk_above_the_bound_does_not_read_like_it(short):
    found = replace(short.deadline, risk=0.033, is_said=False, is_beyond=False)
    assert "against the best is 3.3 %" in printed(replace(short, deadline=found))


def test_the_part_of_the_curve_that_nobody_saw_is_called_an_estimate(short):
    chart = advice_findings(short).answer.picture
    lines = {line.name: line for line in chart.panels["all"].series}
    assert lines["answers per minute"].x.max() == 20.0
    assert lines["estimated"].x.min() == 20.0
    assert "Beyond 20 s, the longest deadline of the log, no answer was recorded" in chart.caption


def test_nothing_is_sure_if_clients_changed_too_late_to_rest_on_the_rounds_since():
    """In the last 14 of 200 rounds other clients answer; times stay the same."""
    rng = np.random.default_rng(0)
    questions = []
    for round in range(200):
        for client in range(10):
            rate = 0.95 if (client < 5) == (round < 186) else 0.05
            came = bool(rng.random() < rate)
            seconds = 10 * np.exp(0.2 * rng.standard_normal()) if came else np.nan
            late = np.nan if came else 0.0
            status = "arrived" if came else "failed"
            questions.append(Question(round, str(client), came, seconds, late, status=status))
    log = make_log("made", questions, deadline=30.0)
    advice = advise(log, Options(selectors=("random", "e3cs-0.5"), rounds=20))
    assert advice.used is advice.log
    assert not advice.selector.is_said
    assert not advice.deadline.is_said
    texts = {}
    for sentence in sentences(advice):
        texts.setdefault(sentence.topic, "")
        texts[sentence.topic] += sentence.text
    assert "Clients changed at round 180 or later" in texts["seen"]
    assert "the rounds since are too few to rest on" in texts["seen"]
    assert "clients changed during these rounds" in texts["deadline"]


def log_of_two_groups(late):
    """A third of the answers takes twelve times as long as the others: all miss the deadline."""
    rng = np.random.default_rng(5)
    questions = []
    for round in range(150):
        for client in range(8):
            is_slow = rng.random() < 1 / 3
            seconds = 10.0 * np.exp(0.2 * rng.standard_normal())
            if is_slow:
                questions.append(Question(round, str(client), False, late=late, status="lost"))
            else:
                questions.append(Question(round, str(client), True, seconds, status="arrived"))
    return make_log("made", questions, deadline=40.0)


def test_a_sure_deadline_says_what_it_supposes_of_answers_that_nobody_could_see():
    """The estimate keeps over 90 % of all answers. Two thirds is the truth."""
    advice = advise(log_of_two_groups(late=np.nan), Options(selectors=("random",), rounds=20))
    found = advice.deadline
    assert found.is_said
    assert found.kept[found.nearest(found.best)] > 0.9
    condition = "if answers after 40 s are as rare as earlier ones suggest"
    assert f"% of all that would ever come {condition}" in printed(advice)
    assert any(
        "does not say who was only late" in text and condition in text for text in caveats(advice)
    )


def test_a_log_that_says_who_was_late_supposes_nothing():
    advice = advise(log_of_two_groups(late=1.0), Options(selectors=("random",), rounds=20))
    assert advice.deadline.present_kept.value < 0.8
    assert "suggest" not in printed(advice) + " ".join(caveats(advice))


def test_what_a_kept_deadline_supposes_names_no_other_deadline():
    rng = np.random.default_rng(1)
    questions = []
    for round in range(40):
        for client in range(6):
            seconds = 10.0 * np.exp(0.1 * rng.standard_normal())
            if rng.random() < 0.99:
                questions.append(Question(round, str(client), True, seconds, status="arrived"))
            else:
                questions.append(Question(round, str(client), False, status="lost"))
    log = make_log("made", questions, deadline=20.0)
    advice = advise(log, Options(selectors=("random",), rounds=5))
    assert headline(advice).startswith("Keep the deadline of 20 s;")
    (unseen,) = [text for text in caveats(advice) if "only late" in text]
    assert "kept by 20 s is right only if answers after 20 s are as rare" in unseen
