import numpy as np
import pytest
from exact import chance_of_counts

from fedcohort.selection import tree
from fedcohort.selection.age import Age
from fedcohort.selection.protocol import Outcome


def tell(selector, round, clients, success):
    """Play a round in which exactly these clients can be asked."""
    cohort = selector.select(round, clients)
    selector.update(Outcome(cohort, success))


def test_probabilities_of_a_case_worked_by_hand():
    # K = 4, k = 2. Round 0: 0 and 1 are asked, 0 answers. Round 1: 0 and 2, 2 answers.
    # In round 2 client 0 was heard in round 0 (age 2), 2 in round 1 (age 1), and 1 and 3 never
    # (age 2 + 1 = 3); that 1 was asked in vain changes nothing. The ages sum to 9:
    # p = 2 * (2, 3, 1, 3) / 9.
    selector = Age(4, 2, rng=0)
    tell(selector, 0, [0, 1], [1, 0])
    tell(selector, 1, [0, 2], [0, 1])
    assert selector.ages(2).tolist() == [2, 3, 1, 3]
    np.testing.assert_allclose(selector.inclusion(2), np.array([4, 6, 2, 6]) / 9, rtol=1e-14)


def test_a_client_whose_age_outweighs_the_cohort_is_asked_for_certain():
    # K = 3, k = 2. Clients 0 and 1 answer in rounds 0 to 8, client 2 never does. In round 9 the
    # ages are 1, 1 and 10: client 2 would get 20/12 > 1, so it gets 1, and the others 1/2 each.
    selector = Age(3, 2, rng=0)
    for round in range(9):
        tell(selector, round, [0, 1], [1, 1])
    np.testing.assert_allclose(selector.inclusion(9), [0.5, 0.5, 1.0], rtol=1e-14)
    assert selector.allocation(9).capped.tolist() == [False, False, True]


def test_in_the_first_round_everyone_has_the_same_chance():
    np.testing.assert_allclose(Age(10, 4, rng=0).inclusion(0), 0.4, rtol=1e-14)


def test_only_those_available_share_the_probability():
    # Ages in round 2 as above, but client 1 is away: p = 2 * (2, 0, 1, 3) / 6.
    selector = Age(4, 2, rng=0)
    tell(selector, 0, [0, 1], [1, 0])
    tell(selector, 1, [0, 2], [0, 1])
    np.testing.assert_allclose(selector.inclusion(2, [0, 2, 3]), [2 / 3, 0, 1 / 3, 1], rtol=1e-14)


def test_newcomers_were_never_heard_of():
    selector = Age(3, 2, rng=0)
    tell(selector, 0, [0, 1], [1, 1])
    selector.join(1)
    assert selector.ages(1).tolist() == [1, 1, 2, 2]


def test_rounds_that_were_skipped_count():
    selector = Age(3, 2, rng=0)
    tell(selector, 4, [0, 1], [1, 1])
    assert selector.ages(10).tolist() == [6, 6, 11]


def test_ages_stay_within_one_and_the_rounds_played():
    # The server was restarted and counts its rounds anew: 50 lies ahead of round 7.
    selector = Age(3, 2, rng=0)
    tell(selector, 50, [0, 1], [1, 0])
    assert selector.ages(7).tolist() == [1, 8, 8]


@pytest.mark.parametrize("in_flight", [False, True])
def test_from_trees_the_probabilities_are_those_of_the_ages_and_a_resumed_run_goes_on(
    monkeypatch, in_flight
):
    monkeypatch.setattr(tree, "MOST_BLOCKS", 4)
    selector = Age(90, 12, rng=[0, 1], algorithm="tree")
    resumed = Age(90, 12, rng=[5, 6], algorithm="tree")
    for round in range(400):
        expected = selector.inclusion(round)
        cohort = selector.select(round)
        found = np.take_along_axis(expected, cohort.clients, axis=-1)
        np.testing.assert_allclose(cohort.inclusion, found, rtol=1e-10)
        if round == 200 and in_flight:
            resumed.load_state_dict(selector.state_dict())
        outcome = Outcome(cohort, (cohort.clients + round) % 5 > 1)
        selector.update(outcome)
        if round > 200 or (round == 200 and in_flight):
            if round > 200:
                np.testing.assert_array_equal(resumed.select(round).clients, cohort.clients)
            resumed.update(outcome)
        if round == 200 and not in_flight:
            resumed.load_state_dict(selector.state_dict())


@pytest.mark.parametrize("rng", [0, [0, 1]])
def test_a_round_in_which_nobody_is_available_leaves_the_trees_as_they_are(rng):
    selector = Age(6, 2, rng=rng, algorithm="tree")
    cohort = selector.select(0)
    selector.update(Outcome(cohort, np.ones(cohort.clients.shape)))
    nobody = selector.select(1, np.zeros(6, dtype=bool))
    selector.update(Outcome(nobody, np.ones(nobody.clients.shape)))

    # Two clients answered in round 0 and are 2 rounds old in round 2, the four others 3: the
    # ages sum to 16.
    cohort = selector.select(2)
    ages = np.take_along_axis(selector.ages(2), cohort.clients, axis=-1)
    assert set(selector.ages(2).ravel()) == {2.0, 3.0}
    np.testing.assert_allclose(cohort.inclusion, 2 * ages / 16, rtol=1e-12)


def test_trees_hit_the_probabilities_of_the_ages():
    selector = Age(40, 8, rng=0, algorithm="tree")
    selector.last_heard = np.arange(40) % 9 - 1.0
    p = selector.inclusion(9)
    cohorts = np.stack([selector.select(9).clients for _ in range(6_000)])
    assert chance_of_counts(cohorts, p) > 1e-4


def test_where_somebody_was_heard_of_in_this_round_already_the_ages_are_scanned():
    tree_age = Age(40, 8, rng=0, algorithm="tree")
    scan_age = Age(40, 8, rng=0, algorithm="scan")
    for selector in (tree_age, scan_age):
        selector.last_heard = np.full(40, 3.0)
    np.testing.assert_array_equal(tree_age.select(3).clients, scan_age.select(3).clients)
