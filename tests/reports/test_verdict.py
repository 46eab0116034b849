from dataclasses import replace

import numpy as np

from fedcohort.reports.findings import Findings, SchemeResults
from fedcohort.reports.html.verdict import describe_schemes, left_out, verdict


def scheme(accuracy, successes=None, counts=None, first_seed=0):
    """Return a scheme with these accuracies [S, T]. Two of four updates count unless given."""
    accuracy = np.array(accuracy, dtype=float)
    used = np.full(accuracy.shape, 2.0) if successes is None else np.array(successes, dtype=float)
    seeds = range(first_seed, first_seed + len(accuracy))
    return SchemeResults(
        seeds,
        np.full(accuracy.shape, 4.0),
        used,
        None if counts is None else np.array(counts),
        accuracy,
    )


def test_who_reaches_the_highest_target_first_is_named_with_its_rounds():
    said = describe_schemes(
        {
            "slow": scheme([[0.1, 0.4, 0.7], [0.1, 0.4, 0.7]]),
            "fast": scheme([[0.1, 0.6, 0.7], [0.1, 0.6, 0.8]]),
        },
        (0.3, 0.5),
    )
    assert said[0].startswith(
        "fast reached 50\u00a0% accuracy first, after 2.0 ± 0.0 rounds. "
        "slow was next, after 3.0 ± 0.0 rounds"
    )


def test_the_highest_target_that_a_scheme_always_reached_counts_and_others_are_named():
    said = describe_schemes(
        {"a": scheme([[0.4, 0.9], [0.4, 0.5]]), "b": scheme([[0.2, 0.2], [0.4, 0.4]])}, (0.3, 0.8)
    )
    assert said[0].startswith("a reached 30\u00a0% accuracy first")
    assert said[0].endswith("Not every run of b reached it.")
    assert (
        describe_schemes({"b": scheme([[0.2], [0.4]])}, (0.3,))[0]
        == "No scheme reached 30\u00a0% accuracy in every run."
    )


def test_the_same_value_in_one_seed_is_no_difference():
    said = describe_schemes({"a": scheme([[0.5]]), "b": scheme([[0.5]]), "c": scheme([[0.4]])})
    assert said[0] == (
        "a has the highest final accuracy, 0.500. b follows with 0.500 (the same in the only seed)."
    )


def test_a_difference_within_the_spread_over_seeds_is_called_that():
    one, other = scheme([[0.80], [0.90], [0.70]]), scheme([[0.82], [0.80], [0.75]])
    said = describe_schemes({"a": one, "b": other})
    assert "within the spread over seeds" in said[0]


def test_a_difference_that_every_seed_shows_alike_is_beyond_the_spread():
    worlds = np.array([[0.5], [0.7], [0.9]])  # the seeds differ far more than the schemes
    said = describe_schemes(
        {"better": scheme(worlds + np.array([[0.02], [0.021], [0.019]])), "worse": scheme(worlds)}
    )
    assert said[0].startswith("better has the highest final accuracy, 0.720 ± 0.20")
    assert "(a difference beyond the spread over seeds)" in said[0]


def test_with_one_seed_nothing_is_said_to_be_clear():
    said = describe_schemes({"a": scheme([[0.9]]), "b": scheme([[0.1]])})
    assert "(one seed, so the difference may be chance)" in said[0]
    assert "±" not in said[0]


def test_schemes_that_are_alike_in_every_run_share_the_first_place():
    same = [[0.1, 0.6], [0.6, 0.7]]
    said = describe_schemes(
        {"a": scheme(same), "b": scheme(same), "c": scheme([[0.1, 0.1, 0.6], [0.1, 0.6, 0.7]])},
        (0.5,),
    )
    assert said[0].startswith(
        "a and b, equal in every run, reached 50\u00a0% accuracy first, after 1.5 ± 0.7 "
        "rounds. c was"
    )


def test_success_and_fairness_are_told_with_who_pays():
    eager = scheme([[0.5, 0.5]], [[4, 4]], [[8, 0]])
    fair = scheme([[0.5, 0.5]], [[2, 2]], [[4, 4]])
    said = describe_schemes({"eager": eager, "random": fair})
    assert said[1] == "eager has the highest success ratio, 1.000. Random selection has 0.500."
    assert said[2].endswith("is highest under random, 1.000, and lowest under eager, 0.500.")


def classed(by_class, first_seed=0):
    """Return a scheme with these final accuracies by class of clients, [S, G]."""
    by_class = np.array(by_class, dtype=float)
    plain = scheme(np.full((len(by_class), 1), 0.5), first_seed=first_seed)
    return replace(plain, class_accuracy=by_class)


RATES = (0.1, 0.9)


def test_who_is_left_out_is_told_with_the_gap_and_beside_random():
    schemes = {
        "greedy": classed([[0.40, 0.60], [0.42, 0.64]]),
        "random": classed([[0.56, 0.58], [0.56, 0.60]]),
        "best": classed([[0.70, 0.70], [0.70, 0.70]]),
    }
    said = describe_schemes(schemes, class_rates=RATES)
    # The seeds of greedy are 0.01 from its mean, the others at theirs: residuals of 2/3 and 1/3 of
    # 0.01, squares 4/3 of 0.0001 with two degrees, an error of 0.0082. The differences are 0.15,
    # 0.29 and 0.14, so 18, 36 and 17 of them: p is 0.0029, 0.0008 and 0.0034, by Holm's at most
    # 0.006.
    assert said[1] == (
        "greedy leaves its worst class, clients that answer 10\u00a0% of the time, at "
        "0.410 ± 0.014 "
        "accuracy, 21.0 points behind its best class. The worst class of random is at 0.560 ± "
        "0.000 (a difference beyond the spread over seeds)."
    )


def test_the_worst_class_is_that_of_the_mean_over_seeds_and_may_be_the_reliable_one():
    # The single worst value, 0.1, is of the first class; the lowest mean, 0.3, of the second.
    schemes = {"a": classed([[0.1, 0.3], [0.9, 0.3]])}
    (sentence,) = left_out(Findings("t", {"x": schemes}, class_rates=RATES))
    assert sentence == (
        "a leaves its worst class, clients that answer 90\u00a0% of the time, at 0.300 ± 0.000 "
        "accuracy, 20.0 points behind its best class."
    )


def test_without_random_the_scheme_that_leaves_out_least_is_the_measure():
    schemes = {"a": classed([[0.2, 0.8]]), "b": classed([[0.5, 0.9]]), "c": classed([[0.4, 0.9]])}
    said = describe_schemes(schemes, class_rates=RATES)[1]
    assert said.startswith(
        "a leaves its worst class, clients that answer 10\u00a0% of the time, at 0.200"
    )
    assert said.endswith(
        "The worst class of b is at 0.500 (one seed, so the difference may be chance)."
    )


def test_nothing_is_said_of_classes_that_were_not_recorded_or_have_no_samples():
    nan = float("nan")
    for one in (scheme([[0.5]]), classed([[nan, nan]])):
        assert left_out(Findings("t", {"x": {"a": one}}, class_rates=RATES)) == []
    assert left_out(Findings("t", {"x": {"a": classed([[0.5]])}}, class_rates=(0.5,))) == []
    (said,) = left_out(Findings("t", {"x": {"a": classed([[nan, 0.5]])}}, class_rates=RATES))
    assert "90\u00a0% of the time, at 0.500 accuracy, 0.0 points" in said


def test_the_worst_label_is_told_after_the_worst_class():
    labelled = replace(classed([[0.4, 0.6]]), label_accuracy=np.array([[0.9, 0.3, 0.5]]))
    other = replace(classed([[0.5, 0.6]]), label_accuracy=np.array([[0.7, 0.8, 0.6]]))
    schemes = {"a": labelled, "random": other}
    (said,) = left_out(Findings("t", {"x": schemes}, class_rates=RATES))
    assert said.endswith(
        "a leaves its worst label, 1, at 0.300 accuracy, 60.0 points behind its best label. The "
        "worst label of random is at 0.600 (one seed, so the difference may be chance)."
    )
    assert said.startswith("a leaves its worst class")
    (alone,) = left_out(Findings("t", {"x": {"a": labelled}}))
    assert alone.startswith("a leaves its worst label, 1, at 0.300 accuracy")


def test_several_kinds_of_run_are_named_where_they_stand_alone():
    findings = Findings(
        "t", {"x": {"a": classed([[0.2, 0.8]])}, "y": {"a": scheme([[0.5]])}}, class_rates=RATES
    )
    (said,) = left_out(findings)
    assert said.startswith("x: a leaves its worst class")


def test_what_is_the_same_for_all_kinds_of_run_is_said_once():
    one, other = scheme([[0.5]]), scheme([[0.7]])
    shared, own = verdict(Findings("t", {"x": {"a": one}, "y": {"a": other}}))
    assert shared == ["The success ratio of a is 0.500."]
    assert own == {
        "x": ["The final accuracy of a is 0.500."],
        "y": ["The final accuracy of a is 0.700."],
    }


def test_one_kind_of_run_keeps_all_its_sentences():
    shared, own = verdict(Findings("t", {"x": {"a": scheme([[0.5]])}}))
    assert shared == []
    assert len(own["x"]) == 2


def test_schemes_that_do_not_differ_at_all_are_not_ranked():
    same = scheme([[0.5], [0.6]], counts=[[1, 3], [2, 2]])
    said = describe_schemes({"a": same, "b": same})
    assert said[0] == "Every scheme ends at the same accuracy, 0.550 ± 0.071."
    assert said[1] == "The success ratio is the same under every scheme: 0.500 ± 0.000."
    assert said[2].startswith(
        "Fairness (Jain's index, 1 if all clients are asked equally often) is the same under every"
    )


def test_schemes_that_were_not_played_over_the_same_seeds_are_not_compared():
    others = {"b": scheme([[0.1], [0.2]], first_seed=3), "c": scheme([[0.3], [0.2]], first_seed=3)}
    said = describe_schemes({"a": scheme([[0.9], [0.8], [0.7]])} | others, (0.15,))
    assert (
        "c follows with 0.250 ± 0.071 (not compared, because they have no seed in common)"
        in said[1]
    )
    assert "The seeds cannot tell" not in said[1]


def test_schemes_are_compared_in_the_worlds_that_both_met():
    better = scheme([[0.9], [0.50], [0.71], [0.82]])
    worse = scheme(
        [[0.48], [0.70], [0.80]], first_seed=1
    )  # 0.02, 0.01 and 0.02 below in the same worlds
    assert (
        "(a difference beyond the spread over seeds)"
        in describe_schemes({"better": better, "worse": worse})[0]
    )


def test_a_run_that_has_not_come_to_the_end_has_no_final_accuracy():
    nan = float("nan")
    said = describe_schemes(
        {"a": scheme([[0.2, 0.9], [0.3, nan]]), "b": scheme([[0.1, 0.8], [0.2, 0.8]])}
    )
    assert (
        "a has the highest final accuracy, 0.900. b follows with 0.800 ± 0.000 (one seed" in said[0]
    )


def test_seeds_that_agree_to_the_last_digit_show_no_spread():
    said = describe_schemes({"a": scheme([[0.75], [0.75]]), "b": scheme([[0.5], [0.5]])})
    assert "(the same difference in every run)" in said[0]


def test_every_kind_of_run_has_its_own_targets():
    kinds = {"x": {"a": scheme([[0.1, 0.5]])}, "y": {"a": scheme([[0.1, 0.5]])}}
    _, own = verdict(Findings("t", kinds, targets={"x": (0.4,), "y": (0.6,)}))
    assert own["x"][0] == "a reached 40\u00a0% accuracy after 2.0 rounds."
    assert own["y"][0] == "No scheme reached 60\u00a0% accuracy in every run."


def test_further_schemes_that_the_seeds_cannot_tell_from_the_best_are_named_once():
    said = describe_schemes(
        {
            "best": scheme([[0.80], [0.90], [0.70]]),
            "second": scheme([[0.82], [0.80], [0.75]]),
            "third": scheme([[0.70], [0.85], [0.80]]),
        }
    )[0]
    assert "second follows with" in said
    assert said.endswith("The seeds cannot tell best from third either.")


def test_equal_schemes_are_seldom_told_apart_however_many_there_are():
    rng = np.random.default_rng(4)
    apart = 0
    for _ in range(300):
        finals = 0.5 + 0.02 * rng.normal(size=(7, 5))
        schemes = {f"s{row}": scheme(values[:, None]) for row, values in enumerate(finals)}
        apart += "beyond the spread" in describe_schemes(schemes)[0]
    # One claim in twenty, and three standard errors.
    assert apart / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_a_target_is_named_with_all_its_digits():
    said = describe_schemes({"a": scheme([[0.5, 0.7]]), "b": scheme([[0.5, 0.6]])}, (0.625, 0.95))
    assert said[0].startswith("a reached 62.5\u00a0% accuracy first")
    said = describe_schemes({"a": scheme([[0.5, 0.7]])}, (0.975,))
    assert said[0] == "No scheme reached 97.5\u00a0% accuracy in every run."
