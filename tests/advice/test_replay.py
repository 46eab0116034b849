import numpy as np
import pytest

from fedcohort.advice import replays
from fedcohort.advice.advisor import Options, advise
from fedcohort.advice.estimates import Interval
from fedcohort.advice.log import Question, make_log
from fedcohort.advice.played import Description, play_description
from fedcohort.advice.replays import Replayed, asking_probabilities, replay
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.registry import Federation, make_selector


def uniform_log(rates, cohort, rounds, seed=0):
    """Uniform selection with exact probabilities."""
    rng = np.random.default_rng(seed)
    questions = []
    for round in range(rounds):
        for client in rng.choice(len(rates), size=cohort, replace=False):
            came = bool(rng.random() < rates[client])
            questions.append(Question(round, str(client), came, inclusion=cohort / len(rates)))
    return make_log("made", questions, names=tuple(map(str, range(len(rates)))))


def test_uniform_selection_replayed_on_itself_is_what_was_recorded():
    log = uniform_log(np.linspace(0.1, 0.9, 20), 5, 100)
    (found,) = replay(log, ["random"])
    recorded = log.arrived_in_round.mean()
    assert found.inverse.value == pytest.approx(recorded)
    assert found.normalised.value == pytest.approx(recorded)
    assert found.effective == pytest.approx(500)
    assert found.support == pytest.approx(1)
    assert not found.refusal


def test_the_three_estimates_by_hand(monkeypatch):
    """Two clients, one asked with probability 1/2 in each of 20 rounds; client a always answers.

    The other selector asks a with probability 1. The weights are 2 for a and 0 for b, and a is
    asked in 10 rounds: inverse propensity 2 * 10 / 20 = 1, self-normalised 1 * 1 = 1.
    With m = 0.7 the doubly robust terms are 0.7 + 2 * 0.3 = 1.3 for a and 0.7 for b: 1 again.
    """
    questions = []
    for round in range(20):
        name = "ab"[round % 2]
        questions.append(Question(round, name, name == "a", inclusion=0.5))
    log = make_log("made", questions)
    monkeypatch.setattr(replays, "asking_probabilities", lambda *_: np.tile([1.0, 0.0], (20, 1)))
    monkeypatch.setattr(replays, "_other_half_rates", lambda *_: np.full((2, 2), 0.7))
    (found,) = replay(log, ["anything"])
    assert found.inverse.value == pytest.approx(1.0)
    assert found.normalised.value == pytest.approx(1.0)
    assert found.robust.value == pytest.approx(1.0, abs=1e-9)
    assert found.effective == pytest.approx(10)  # (10 * 2)^2 / (10 * 4)
    assert "at least 100 answers, got 10" in found.refusal


def test_a_selector_learns_from_what_was_recorded():
    log = uniform_log(np.array([0.05] * 10 + [0.95] * 10), 5, 300)
    table = asking_probabilities(log, "e3cs-0.5")
    assert np.allclose(table.sum(axis=1), 5)
    assert table[0] == pytest.approx(np.full(20, 0.25))
    assert table[-1, 10:].mean() > 1.5 * table[-1, :10].mean()


def test_clients_that_could_not_be_asked_are_not_asked():
    log = uniform_log(np.full(6, 0.5), 2, 40)
    available = np.ones((40, 6), dtype=bool)
    available[:, 5] = False
    object.__setattr__(log, "available", available)
    for name in ("random", "e3cs-0.5"):
        table = asking_probabilities(log, name)
        assert (table[:, 5] == 0).all()
        assert np.allclose(table.sum(axis=1), 2)


def test_estimates_below_the_stated_size_are_refused():
    interval = Interval(1.0, 0.5, 1.5)
    few = Replayed("x", interval, interval, interval, effective=99.0, support=1.0)
    assert few.as_dict()["robust"] is None
    foreign = Replayed("x", interval, interval, interval, effective=500.0, support=0.5)
    assert "hardly asks clients" in foreign.refusal
    good = Replayed("x", interval, interval, interval, effective=101.0, support=1.0)
    assert good.as_dict()["robust"]["value"] == 1.0


def test_an_answer_that_outweighs_all_others_is_worth_one():
    questions = []
    for round in range(40):
        for client in range(4):
            share = 1e-300 if client == 0 and round == 0 else 0.5
            questions.append(Question(round, str(client), round % 2 == 0, inclusion=share))
    (found,) = replay(make_log("made", questions), ["random"])
    assert found.effective == pytest.approx(1.0)
    assert "at least 100 answers, got 1" in found.refusal


def test_logs_that_cannot_be_replayed_are_refused():
    short = uniform_log(np.full(5, 0.5), 2, 19)
    with pytest.raises(ValueError, match="at least 20 rounds to be replayed, got 19"):
        replay(short, ["random"])

    unknown = [Question(round, "a", True) for round in range(30)]
    with pytest.raises(ValueError, match=r"got 30 of 30 requests.*compare only for random"):
        replay(make_log("made", unknown), ["random"])

    silent = [Question(round, "a", False, inclusion=0.5) for round in range(30)]
    with pytest.raises(ValueError, match="must hold an answer to be replayed, got none to 30 req"):
        replay(make_log("made", silent, names=("b",)), ["random"])

    candidates = [Question(round, "a", True, inclusion=0.5) for round in range(30)]
    with pytest.raises(ValueError, match="got 'rpow-d', which records the chance of being a cand"):
        replay(make_log("made", candidates, names=("b",), selector="rpow-d"), ["random"])

    certain = [Question(round, "a", True, inclusion=1.0) for round in range(30)]
    with pytest.raises(ValueError, match="leaves something to chance"):
        replay(make_log("made", certain, names=("b",)), ["random"])


LACKING = {
    "pow-d": "losses",
    "rpow-d": "losses",
    "oort": "data sizes",
    "f3ast": "data sizes",
    "cs-ucb": "the times of all clients",
    "fedcs": "known rates",
}


@pytest.mark.parametrize("name", LACKING)
def test_selectors_that_need_more_than_a_log_are_refused(name):
    log = play_description(Description(10, 3, (0.5,), rounds=30))
    wanted = f"nothing that a log lacks, got '{name}', which needs {LACKING[name]}"
    with pytest.raises(ValueError, match=wanted):
        replay(log, [name])
    if name != "fedcs":  # advice knows how often clients answer
        with pytest.raises(ValueError, match=wanted):
            advise(log, Options(selectors=(name,)))


def test_an_unknown_selector_is_refused():
    log = play_description(Description(10, 3, (0.5,), rounds=30))
    with pytest.raises(ValueError, match="no-such"):
        replay(log, ["no-such"])


def test_selectors_that_ask_more_clients_than_the_log_are_not_replayed():
    log = play_description(Description(10, 4, (0.5,), rounds=30))
    wanted = "must ask 4 clients per round as the log does, got 'over-selection', which asks 6"
    with pytest.raises(ValueError, match=wanted):
        replay(log, ["over-selection"])


@pytest.mark.parametrize("name", ["age", "refl"])
def test_selectors_that_learn_from_who_was_asked_are_refused(name):
    """What `age` asks follows from its own cohorts; those of the log would bias it by a third."""
    log = play_description(Description(10, 3, (0.5,), rounds=30))
    with pytest.raises(ValueError, match=f"must learn nothing, or weight answers.*'{name}'"):
        replay(log, [name])


@pytest.mark.parametrize("name", ["e3cs-0.5", "e3cs-0.5-robust"])
def test_replay_finds_what_a_selector_gets_with_cohorts_of_its_own(name):
    """Ten logs of uniform selection; their mean estimate has an error of about 0.03."""
    rates = np.linspace(0.1, 0.95, 20)
    estimates = []
    own = []
    for seed in range(10):
        (found,) = replay(uniform_log(rates, 5, 200, seed), [name], seed)
        estimates.append(found.robust.value)
        selector = make_selector(name, Federation(20, 5, rng=seed, horizon=200))
        rng = np.random.default_rng(seed)
        for round in range(200):
            cohort = selector.select(round)
            selector.update(Outcome(cohort, rng.random(5) < rates[cohort.clients]))
            own.append(rates[cohort.clients].sum())
    assert np.mean(estimates) == pytest.approx(np.mean(own), abs=0.15)


@pytest.mark.slow
def test_intervals_of_replay_hold_the_truth(truth):
    """At least 90 of 100 where the effective sample size suffices."""
    from collections import Counter

    count = Counter()
    for seed in range(100):
        truth.measure_replay(seed, count)
    total = count["replay, robust, of"]
    assert total >= 90
    assert count["replay, robust"] >= 0.9 * total
