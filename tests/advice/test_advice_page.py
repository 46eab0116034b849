"""The page of an advice and the printed sentences: what to keep, to change or to try."""

from dataclasses import replace

import numpy as np
import pytest

from fedcohort.advice import Description, Options, advise, play_description, sentences
from fedcohort.advice.broken import broken_clients, common_reasons, describe_broken
from fedcohort.advice.change import Change
from fedcohort.advice.estimates import Interval
from fedcohort.advice.headline import caveats, headline
from fedcohort.advice.log import Question, make_log
from fedcohort.advice.page import advice_findings
from fedcohort.advice.selector_play import can_play
from fedcohort.advice.selectors import advise_selector
from fedcohort.reports.pages.deployment_answer import REASONS
from fedcohort.selection.registry import SELECTORS

DESCRIPTION = Description(20, 5, (0.2, 0.9), deadline=60.0, seconds=20.0, rounds=200)


@pytest.fixture(scope="module")
def log():
    return play_description(DESCRIPTION)


@pytest.fixture(scope="module")
def described(log):
    return advise(log, Options(selectors=("random", "e3cs-0.5", "e3cs-0"), rounds=60))


def printed(advice, topic):
    return " ".join(one.text for one in sentences(advice) if one.topic == topic)


# --- The selector that runs already --------------------------------------------------------


def test_the_selector_that_runs_already_is_kept(log, described):
    assert described.selector.best == "e3cs-0.5"
    options = Options(selectors=("random", "e3cs-0.5", "e3cs-0"), rounds=60)
    advice = advise(replace(log, selector="e3cs-0.5"), options)
    found = advice.selector
    assert (found.best, found.present) == ("e3cs-0.5", "e3cs-0.5")
    assert found.present_gain.as_dict() == {"value": 0.0, "low": 0.0, "high": 0.0}
    own = f"{found.fitted['e3cs-0.5'].arrivals.mean():.2f}"
    uniform = f"{found.fitted['random'].arrivals.mean():.2f}"
    kept = f"keep e3cs-0.5 ({own} answers per round, uniform selection would get {uniform})"
    assert kept in headline(advice)
    assert "Keep `e3cs-0.5`" in printed(advice, "selector")


def test_a_gain_is_one_over_the_selector_that_runs(log):
    """The selector of the log is played too, though nobody asked for it."""
    options = Options(selectors=("e3cs-0.5",), rounds=60)
    found = advise(replace(log, selector="e3cs-0.8"), options)
    played = found.selector.fitted
    gain = (played["e3cs-0.5"].arrivals - played["e3cs-0.8"].arrivals).mean()
    assert found.selector.present_gain.value == pytest.approx(gain)
    assert 0 < gain < found.selector.gain.value
    assert f"e3cs-0.5 (+{gain:.2f} answers per round over e3cs-0.8)" in headline(found)
    assert "more answers per round than `e3cs-0.8`" in printed(found, "selector")


def test_a_fair_selector_that_gets_fewer_answers_than_an_unfair_one_says_so(described):
    """A gain below 0 is a loss: `e3cs-0` gets 0.8 answers more, but neglects clients."""
    loss = replace(
        described.selector,
        present="e3cs-0",
        best="e3cs-0.5",
        present_gain=Interval(-0.8, -1.1, -0.5),
    )
    assert not loss.is_fair("e3cs-0")
    share = f"{loss.fitted['e3cs-0'].least_asked:.2f}"
    unfair = f"`e3cs-0`, which runs now and asks a fifth of the clients only {share} of"
    for is_said in (True, False):
        advice = replace(described, selector=replace(loss, is_said=is_said))
        fewer = f"0.80 (0.50 to 1.10) fewer answers per round than {unfair}"
        assert fewer in printed(advice, "selector")
        short = "e3cs-0.5 (0.80 fewer answers per round than e3cs-0, which neglects clients)"
        assert short in headline(advice)


def test_without_a_known_selector_the_gain_is_one_over_uniform_selection(log):
    options = Options(selectors=("e3cs-0.5",), rounds=60)
    for name in (None, "oort", "nobody's"):  # unknown, needs training, not ours
        found = advise(replace(log, selector=name), options)
        assert found.selector.present is None
        assert found.selector.present_gain == found.selector.gain
        assert "answers per round over uniform selection)" in headline(found)
        assert "change to" not in headline(found)  # from what, nobody knows


def test_a_log_cannot_name_code_to_run(tmp_path):
    path = tmp_path / "evil.py"
    path.write_text("raise SystemExit('this ran')\n")
    assert not can_play(f"{path}:Selector", 10, 2)


@pytest.mark.parametrize("name", SELECTORS)
def test_the_selector_of_a_log_is_played_or_left_out(name):
    """A log may come from any selector; the comparison must not fail because of it."""
    world = np.random.default_rng(0).random((20, 4, 12)) < 0.5
    rates = np.full(12, 0.5)
    found = advise_selector(world, world, 4, 20, ("random",), rates=rates, present=name)
    assert found.present in (None, name)
    assert (found.present in found.fitted) == (found.present is not None)


def test_a_fair_selector_is_kept_unless_another_gets_more():
    """Everyone answers alike, so no selector gets more than another."""
    world = np.random.default_rng(0).random((60, 16, 20)) < 0.5
    found = advise_selector(world, world, 5, 100, ("random", "e3cs-0.5"), present="e3cs-0.8")
    assert found.best == "e3cs-0.8"
    assert found.present_gain.value == 0


def test_the_table_marks_the_selector_that_runs_and_those_that_are_too_unfair(described):
    rows = advice_findings(described).answer.table.rows
    remarks = {row["selector"]: row["remark"] for row in rows}
    assert remarks == {"random": "now", "e3cs-0.5": "", "e3cs-0": "too unfair"}
    assert "least asked fifth (≥\u00a00.4)" in rows[0]


def test_the_page_says_why_a_selector_is_not_certain(described):
    unsure = replace(described.selector, is_said=False, may_have_changed=False, risk=0.12)
    text = " ".join(caveats(replace(described, selector=unsure)))
    assert "not certain: the chance that it loses more than 5 % against the best is 12 %" in text
    changed = replace(unsure, may_have_changed=True)
    change = replace(described.change, p_value=0.03)
    text = " ".join(caveats(replace(described, selector=changed, change=change)))
    assert "not certain: clients may have changed during the log (p = 0.03)" in text
    # The log begins with round 1; after a change at its tenth round the rest is in doubt.
    rest = replace(change, p_value=0.0025, rest_p_value=0.04)
    since = replace(described, selector=changed, change=rest, used=described.log.since(9))
    text = " ".join(caveats(since))
    assert "not certain: clients may have changed since round 10, too (p = 0.04)" in text


# --- The deadline --------------------------------------------------------------------------


def with_deadline(advice, **changes):
    return replace(advice, deadline=replace(advice.deadline, **changes))


def test_a_deadline_that_is_better_but_perhaps_not_the_best_is_to_be_tried(described):
    advice = with_deadline(
        described,
        present=60.0,
        best=40.0,
        gain=Interval(1.29, 1.28, 1.32),
        is_said=False,
        least_kept=0.27,
    )
    assert headline(advice).startswith("Try a deadline of 40 s (1.29 times as many answers a min")
    price = "but may not be the best; the slowest client keeps only 27 % of its answers."
    gain = "40 s gets 1.29 times (1.28 to 1.32) as many answers a minute as 60 s"
    assert f"{gain}, {price}" in caveats(advice)
    text = printed(advice, "deadline")
    assert text.startswith(f"{gain}: try it. Whether it is the best cannot be said from 200 rounds")
    assert "the slowest client keeps 27 % of its answers" in text
    (sentence,) = [one for one in sentences(advice) if one.topic == "deadline"]
    assert not sentence.is_said


def test_a_deadline_that_may_be_worse_is_not_to_be_tried(described):
    changes = {"present": 60.0, "best": 40.0, "is_said": False}
    worse = with_deadline(described, gain=Interval(1.1, 0.9, 1.3), **changes)
    assert headline(worse).startswith("Keep the deadline of 60 s;")
    unseen = with_deadline(described, gain=Interval(1.3, 1.2, 1.4), is_beyond=True, **changes)
    assert headline(unseen).startswith("Keep the deadline of 60 s;")


def test_a_deadline_that_was_never_seen_needs_longer_rounds_not_more_rounds(described):
    changes = {"present": 60.0, "best": 90.0, "is_said": False, "gain": Interval(1.3, 1.2, 1.4)}
    text = " ".join(caveats(with_deadline(described, is_beyond=True, **changes)))
    assert "A few rounds with a longer deadline would tell whether 90 s is better" in text
    assert "More rounds would tell" not in text


def test_deadlines_that_differ_are_not_called_one_deadline(described):
    used = replace(described.used, deadlines=np.full(200, 60.0))
    advice = replace(described, used=used)
    kept = with_deadline(advice, is_said=False, gain=Interval(1.0, 0.9, 1.1))
    assert headline(kept).startswith("Keep the deadlines of the log (median 60 s);")


def test_the_curve_has_the_recommendation_and_the_limit_of_what_must_be_kept(described):
    found = described.deadline
    chart = advice_findings(with_deadline(described, is_said=True)).answer.picture
    lines = {line.name: line for line in chart.panels["all"].series}
    limit = lines["90 % kept"].x
    assert limit[0] == limit[1] == found.shortest_allowed
    left = found.kept[found.seconds < found.shortest_allowed]
    assert left.size
    assert (left < 0.9).all()
    assert (found.kept[found.seconds > found.shortest_allowed] >= 0.9).all()
    assert f"recommended: {found.best:.3g} s" in lines
    assert "Left of the line fewer than 90 % of the answers are kept." in chart.caption
    unsure = with_deadline(described, is_said=False, gain=Interval(1.2, 1.1, 1.3))
    assert f"to try: {found.best:.3g} s" in advice_findings(unsure).answer.picture.highlighted
    unsure = with_deadline(described, is_said=False, gain=Interval(1.0, 0.9, 1.1))
    guess = advice_findings(unsure).answer.picture
    assert f"best guess: {found.best:.3g} s" in guess.highlighted


# --- Clients that are broken, and clients that may have changed ----------------------------


@pytest.fixture(scope="module")
def broken():
    """Client "bad" always answers with nan, "weak" answers in one round of four."""
    questions = []
    for round in range(40):
        questions.append(Question(round, "good", True, status="arrived"))
        came = round % 4 == 0
        questions.append(Question(round, "weak", came, status="arrived" if came else "lost"))
        questions.append(Question(round, "bad", False, status="rejected"))
    log = replace(make_log("made", questions), rejections={"bad": "nan in the update"})
    return advise(log, Options(rounds=20, selectors=("random",)))


def test_a_client_whose_updates_are_all_rejected_is_to_be_repaired(broken):
    repair = "bad: all 40 updates were rejected as invalid (nan in the update): repair it."
    assert broken_clients(broken.used) == [broken.used.clients.index("bad")]
    said = printed(broken, "seen")
    assert repair in said
    assert "although asked" not in said
    assert f"The other clients answer between {100 * min(broken.rates.mean[1:]):.0f} %" in said

    left_out = advice_findings(broken).answer.left_out
    assert left_out.sentences[0] == repair
    assert left_out.sentences[1].startswith("Client weak answers least of the others")
    assert [row["client"] for row in left_out.table.rows] == ["weak", "good"]
    assert "# Among the lowest rates: bad, whose updates were all rejected." in broken.settings_toml


def test_a_client_that_broke_during_the_log_is_named_in_the_settings_too():
    questions = []
    for round in range(120):
        questions += [Question(round, name, round % 2 == 0, status="lost") for name in "abc"]
        status = "arrived" if round < 60 else "rejected"
        questions.append(Question(round, "bad", round < 60, status=status))
    advice = advise(make_log("made", questions), Options(rounds=20, selectors=("random",)))
    assert advice.used.num_rounds <= 60
    assert "bad: all" in printed(advice, "seen")
    assert "# Among the lowest rates: bad, whose updates were all rejected." in advice.settings_toml


def test_the_headline_begins_with_broken_clients(broken):
    start = "Repair client bad (all its updates were rejected); "
    assert headline(broken).startswith(start)


def test_of_many_broken_clients_the_headline_says_the_number():
    questions = [Question(round, "good", True) for round in range(6)]
    for name in "abcd":
        questions += [Question(round, name, False, status="rejected") for round in range(6)]
    advice = advise(make_log("made", questions), Options(rounds=20, selectors=("random",)))
    assert headline(advice).startswith("Repair 4 clients (all their updates were rejected); ")


def test_the_headline_says_that_most_were_stopped_where_times_are_few():
    questions = []
    for round in range(8):
        questions.append(Question(round, "fast", round % 4 == 0, 5.0, status="arrived"))
        questions.append(Question(round, "slow", False, late=1.0, status="stopped"))
    log = replace(make_log("made", questions, deadline=25.0), selector="e3cs-0.5")
    advice = advise(log, Options(rounds=20))
    assert advice.deadline is None
    start = (
        "Try a deadline longer than 25 s (8 of 14 missing updates were not done at the deadline); "
    )
    assert headline(advice).startswith(start)
    assert "keep e3cs-0.5" in headline(advice)


def test_a_client_with_one_valid_update_is_not_broken():
    questions = [Question(round, "a", round == 3, status="rejected") for round in range(9)]
    questions[3].status = "arrived"
    questions += [Question(round, "b", False, status="rejected") for round in range(2)]
    assert broken_clients(make_log("made", questions)) == []  # b was asked only twice


def test_of_many_broken_clients_a_few_are_named():
    questions = []
    for client in range(8):
        questions += [Question(round, f"c{client}", False, status="rejected") for round in range(3)]
    said = describe_broken(make_log("made", questions))
    assert said[0] == "c0: all 3 updates were rejected as invalid: repair it."
    assert said[-1] == "So were all updates of 3 more clients."


def test_the_most_frequent_reason_of_a_rejection_counts_in_one_short_line():
    reasons = ["nan\nin it", "nan\nin it", "x" * 500, None, ""]
    rows = [{"client": "a", "status": "rejected", "reason": reason} for reason in reasons]
    rows += [{"client": "b", "status": "rejected", "reason": "x" * 500}]
    rows += [{"client": "c", "status": "failed", "reason": "no"}, {"client": "d", "status": "lost"}]
    rows += [{"client": "e", "status": "rejected", "reason": "\x1b[31mred\u200b \t\n"}]
    # Control characters are written as in a client's name: a reader sees that something was there.
    assert common_reasons(rows) == {"a": "nan in it", "b": "x" * 100, "e": "?[31mred?"}


def test_missing_updates_have_the_words_of_their_reasons(broken):
    reasons = f"40 {REASONS['rejected']}"
    assert f"({reasons}; 30 {REASONS['lost']})" in printed(broken, "seen")
    said = advice_findings(broken).answer.left_out.sentences
    assert said[-1] == f"Why updates are missing: {reasons}; 30 {REASONS['lost']}."


@pytest.mark.parametrize(
    ("p_value", "text"),
    [(0.03, "Clients may have changed (p = 0.03; certain at 0.005 or less)."),
     (0.2, "No change over time is certain (p = 0.20).")],
)  # fmt: skip
def test_a_change_that_is_possible_is_not_denied(described, p_value, text):
    said = sentences(replace(described, change=Change(False, p_value, None, None, None)))
    assert text in [one.text for one in said]
    assert sum("(p = " in one.text for one in said if one.topic == "seen") == 1


# --- The first lines -----------------------------------------------------------------------


def test_the_headline_has_a_deadline_a_selector_and_a_rule_each_with_a_number(described):
    parts = headline(described).split("; ")
    assert len(parts) == 3
    assert parts[0].split()[0] in ("Keep", "Change", "Try")
    assert parts[1].split()[0] in ("keep", "change", "try")
    assert parts[2].startswith("aggregate with the normalised rule")
    for part in parts:
        assert any(letter.isdigit() for letter in part)


def test_the_page_says_that_more_answers_are_not_more_accuracy(described):
    basis = advice_findings(described).answer.basis
    assert basis[-1].startswith("More answers are not more accuracy: in 24 cases of our study no")
