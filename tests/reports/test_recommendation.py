"""Which scheme is recommended, in which case, and in which words."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedcohort.reports.candidates import Candidate
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.html.elements import marked_table
from fedcohort.reports.html.terms import Marker
from fedcohort.reports.pages.training_answer import order_kinds, training_answer
from fedcohort.reports.recommendation import (
    basis_sentences,
    recommend,
    recommendation_sentence,
)

UNIFORM = [0.50, 0.52, 0.48, 0.50]
AHEAD = [0.60, 0.621, 0.579, 0.600]  # a tenth more in every seed, nearly


def candidate(selector, final, rule="", kind="k", **more):
    accuracy = np.array(final, dtype=float)[:, None]
    asked = np.full(accuracy.shape, 4.0)
    scheme = SchemeResults(range(len(final)), asked, asked / 2, accuracy=accuracy)
    name = f"{selector}, {rule}" if rule else selector
    uniform = selector == "random"
    papers = selector.startswith("e3cs")
    return Candidate(
        name, selector, rule, kind, scheme, is_uniform=uniform, is_papers=papers, **more
    )


def test_a_scheme_that_is_ahead_in_every_seed_is_recommended_with_its_figures():
    found = recommend({"x data": [candidate("random", UNIFORM), candidate("e3cs-0.5", AHEAD)]})
    assert found.chosen.name == "e3cs-0.5"
    said = recommendation_sentence(found)
    assert said.startswith("On x data, use e3cs-0.5: it ends at 0.600 accuracy, 10.0 points ahead")
    # The differences are 0.1, 0.101, 0.099 and 0.1; t is 3.182 for three degrees of freedom.
    assert "ahead of uniform selection (+9.9 to +10.1; 4 seeds)" in said
    assert said.count(". ") == 0


def test_a_run_in_which_no_update_counted_says_so():
    """Nobody answered, or all that arrived was rejected: the results do not tell which."""
    silent = []
    for name in ("random", "e3cs-0.5"):
        one = candidate(name, UNIFORM)
        silence = np.zeros_like(one.scheme.asked)
        silent.append(replace(one, scheme=replace(one.scheme, successes=silence)))
    assert recommendation_sentence(recommend({"x data": silent})) == (
        "On x data, keep uniform selection (random): no update counted under any scheme, so the "
        "model never changed."
    )


def test_a_lead_within_chance_keeps_uniform_selection():
    noisy = [0.60, 0.45, 0.58, 0.40]
    found = recommend({"x data": [candidate("random", UNIFORM), candidate("e3cs-0.5", noisy)]})
    assert found.chosen.is_uniform
    assert "keep uniform selection (random)" in recommendation_sentence(found)
    said = recommendation_sentence(found)
    # The differences are 0.1, -0.07, 0.1 and -0.1: 0.0075 +- 3.182 * 0.1075 / 2.
    assert "0.7 points above its 0.500 accuracy (\u221216.4 to +17.9), which 4 seeds cannot" in said
    assert found.tied == ["random"]


def test_one_seed_decides_nothing_and_everything_is_tied():
    found = recommend({"x data": [candidate("random", [0.5]), candidate("e3cs-0", [0.9])]})
    assert found.chosen.is_uniform
    assert "one seed cannot tell that from chance" in recommendation_sentence(found)
    assert found.tied == ["random"]


def test_without_uniform_selection_the_highest_is_named_and_the_gain_is_not_known():
    found = recommend({"x data": [candidate("fedcs", UNIFORM), candidate("e3cs-0", AHEAD)]})
    assert found.chosen.name == "e3cs-0"
    assert "uniform selection was not run" in recommendation_sentence(found)


def test_the_more_schemes_are_tried_the_larger_a_lead_must_be():
    lead = [0.53, 0.53, 0.52, 0.52]  # paired differences 0.03, 0.01, 0.04, 0.02
    alone = recommend({"d": [candidate("random", UNIFORM), candidate("a", lead)]})
    # These do not lead. They are one scheme, so they show their noise once.
    others = [candidate(f"b{place}", [0.51, 0.51, 0.50, 0.48]) for place in range(9)]
    many = recommend({"d": [candidate("random", UNIFORM), candidate("a", lead), *others]})
    # Less the means of schemes and seeds, in thousandths: random -5, 25/3, -35/3, 25/3, the lead 0,
    # -20/3, 10/3, 10/3, and the others 5, -5/3, 25/3, -35/3. The squares are 600 with six degrees.
    error = (2 * 0.0001 / 4) ** 0.5
    # Holm multiplies the smallest of ten p-values by ten.
    assert many.against_uniform["a"].p_value == pytest.approx(10 * 2 * stats.t.sf(0.025 / error, 6))
    assert alone.against_uniform["a"].p_value == pytest.approx(
        2 * stats.t.sf(0.025 / (0.0005 / 12) ** 0.5, 3)
    )


def test_three_seeds_tell_a_scheme_far_behind_from_the_best():
    near = [0.51, 0.53, 0.47]
    far = [0.25, 0.31, 0.34]
    schemes = {"random": UNIFORM[:3], "near": near, "far": far, "other": near[::-1]}
    found = recommend({"d": [candidate(name, final) for name, final in schemes.items()]})
    assert "far" not in found.tied
    assert "near" in [*found.tied, found.ranked[0].name]


def test_the_hardest_case_is_where_uniform_selection_with_its_best_rule_ends_lowest():
    cases = {
        "iid data": [candidate("random", [0.9, 0.91], "r", "easy")],
        "skewed data": [
            candidate("random", [0.2, 0.2], "bad rule", "hard, bad"),
            candidate("random", [0.6, 0.61], "good rule", "hard, good"),
        ],
        "other data": [candidate("random", [0.7, 0.7], "r", "middle")],
    }
    found = recommend(cases)
    assert found.case == "skewed data"
    assert found.uniform.rule == "good rule"
    (basis,) = basis_sentences(found)
    assert "skewed data, 0.605, against 0.905 on iid data and 0.700 on other data" in basis
    kinds = {kind: {} for kind in ("easy", "middle", "hard, bad", "hard, good")}
    assert list(order_kinds(kinds, cases)) == ["hard, good", "hard, bad", "middle", "easy"]


def test_of_many_cases_the_lowest_and_the_highest_are_named():
    cases = {"hard data": [candidate("random", [0.50, 0.52])]}
    for number in range(4):
        near = [0.53 + number / 500, 0.51]  # above in one seed, below in the other
        cases[f"data {number}"] = [candidate("random", near)]
    found = recommend(cases)
    assert (found.case, len(found.near)) == ("hard data", 4)
    hardest, harder = basis_sentences(found)
    assert hardest.endswith("hard data, 0.510, against 0.520 to 0.523 in 4 others.")
    assert "hardly harder than 4 others: " in harder
    assert "data 2" not in hardest + harder


def test_the_table_begins_with_the_highest_and_marks_what_cannot_be_told_from_it():
    close = [0.61, 0.602, 0.58, 0.60]  # sometimes above, sometimes below
    cases = {
        "x data": [
            candidate("random", UNIFORM),
            candidate("close", close),
            candidate("e3cs-0.5", AHEAD),
        ]
    }
    table = training_answer(cases).table
    assert [row["scheme"] for row in table.rows] == ["e3cs-0.5", "close", "random"]
    assert table.marks == {0: "best", 1: "tied"}
    assert table.rows[0]["against uniform"].startswith("+10.0 (+")
    assert table.rows[2]["against uniform"] == "-"
    assert "with the noise of all schemes, corrected by Holm's method for 3 pairs." in table.note
    assert "ahead of uniform after Holm's method for 2 comparisons." in table.note
    assert "that of the last round" in table.note


def test_the_star_marks_the_recommended_and_a_word_the_highest():
    noisy = [0.60, 0.45, 0.58, 0.40]
    cases = {"x data": [candidate("random", UNIFORM), candidate("e3cs-0.5", noisy)]}
    answer = training_answer(cases)
    assert answer.table.marks == {0: "highest", 1: "best"}
    html = marked_table(answer.table, Marker(), {})
    name = '<span class="whole">e3cs-0.5</span>'
    assert f'<span class="mark"></span>{name} <span class="tag">highest</span></th>' in html
    assert '★</span><span class="unseen">best choice: </span>random</th>' in html


def test_uniform_selection_with_another_rule_has_its_difference_and_is_counted():
    cases = {
        "x data": [
            candidate("random", UNIFORM, "good rule"),
            candidate("random", [0.40, 0.41, 0.39, 0.40], "bad rule"),
            candidate("mine", AHEAD, "good rule"),
        ]
    }
    found = recommend(cases)
    assert found.uniform.name == "random, good rule"
    assert list(found.against_uniform) == ["mine, good rule", "random, bad rule"]
    table = training_answer(cases).table
    assert table.rows[2]["against uniform"].startswith("\u221210.0 (")
    assert "with the noise of all schemes, corrected by Holm's method for 3 pairs." in table.note
    assert "ahead of uniform after Holm's method for 2 comparisons." in table.note


def test_a_pair_counts_the_seeds_that_it_shares():
    short = candidate("e3cs-0", [0.60, 0.63, float("nan"), float("nan")])
    long = candidate("fedcs", [0.4, 0.4, 0.4, 0.41])
    found = recommend({"d": [candidate("random", UNIFORM), short, long]})
    assert found.against_uniform["e3cs-0"].seeds == 2
    assert found.against_uniform["fedcs"].seeds == 4
    assert (
        "over 2 seeds" in training_answer({"d": [candidate("random", UNIFORM), short]}).table.note
    )


def test_the_interval_of_a_difference_has_the_spread_of_all():
    rows = {"random": [0.5, 0.5, 0.5], "a": [0.51, 0.53, 0.52], "b": [0.4, 0.44, 0.42]}
    found = recommend({"d": [candidate(name, final) for name, final in rows.items()]})
    # Less the means of schemes and seeds: random 0.01, -0.01, 0, a nothing, b -0.01, 0.01, 0.
    variance = 4 * 0.0001 / 4
    margin = stats.t.ppf(0.975, 4) * (2 * variance / 3) ** 0.5
    assert found.against_uniform["a"].margin == pytest.approx(margin)
    assert found.against_uniform["b"].mean == pytest.approx(-0.08)


def test_the_picture_highlights_the_chosen_uniform_selection_and_the_best_of_the_paper():
    cases = {
        "x data": [
            candidate("random", UNIFORM),
            candidate("e3cs-0", UNIFORM),
            candidate("e3cs-0.5", AHEAD),
            candidate("mine", [value + 0.2 for value in AHEAD]),
        ]
    }
    picture = training_answer(cases).picture
    assert picture.highlighted == ("mine", "random", "e3cs-0.5")
    assert len(picture.panels["x data"].series) == 4
    assert picture.x.title == "client-trainings asked"


def test_without_a_final_accuracy_there_is_no_answer():
    nothing = candidate("random", [float("nan")])
    assert recommend({"d": [nothing]}) is None
    assert training_answer({"d": [nothing]}) is None


def test_a_case_that_is_hardly_easier_is_named():
    cases = {
        "hard data": [candidate("random", [0.50, 0.52, 0.48])],
        "near data": [candidate("random", [0.53, 0.50, 0.50])],
        "easy data": [candidate("random", [0.90, 0.93, 0.89])],
    }
    said = basis_sentences(recommend(cases))
    assert said[1].startswith("It is hardly harder than near data: ")
    del cases["near data"]
    assert len(basis_sentences(recommend(cases))) == 1


def test_a_scheme_that_equals_uniform_selection_is_not_called_the_highest():
    table = training_answer({"d": [candidate("a", UNIFORM), candidate("random", UNIFORM)]}).table
    assert [row["scheme"] for row in table.rows] == ["random", "a"]
    assert table.marks == {0: "best", 1: "tied"}


def test_without_uniform_selection_a_lead_within_chance_is_no_recommendation():
    noisy = [0.60, 0.45, 0.58, 0.40]
    cases = {"d": [candidate("fedcs", UNIFORM), candidate("e3cs-0", noisy)]}
    said = recommendation_sentence(recommend(cases))
    assert "ends highest, at 0.507 accuracy, which 4 seeds cannot tell from fedcs; uniform" in said
    assert "★ marks the highest, ≈" in training_answer(cases).table.note
    clear = {"d": [candidate("fedcs", UNIFORM), candidate("e3cs-0", AHEAD)]}
    assert "cannot tell" not in recommendation_sentence(recommend(clear))


def test_a_scheme_that_was_run_alone_is_not_called_the_highest():
    said = recommendation_sentence(recommend({"d": [candidate("fedcs", UNIFORM)]}))
    assert said == (
        "On d, fedcs ends at 0.500 accuracy; no other scheme was run, so what selection gains is "
        "not known."
    )


def test_without_uniform_selection_the_basis_says_how_the_hardest_case_was_found():
    cases = {"x": [candidate("fedcs", [0.5, 0.5])], "y": [candidate("fedcs", [0.7, 0.7])]}
    (basis,) = basis_sentences(recommend(cases))
    assert basis.startswith("Uniform selection was not run on x: ")


def test_a_lead_is_that_of_the_seeds_that_both_were_played_with():
    nan = float("nan")
    # Seed by seed 0.01 and 0.03 ahead, but the third seed of uniform selection is a bad one.
    other = candidate("a", [0.51, 0.55, nan])
    found = recommend({"d": [candidate("random", [0.50, 0.52, 0.21]), other]})
    assert "a ends 2.0 points above its 0.410 accuracy (" in recommendation_sentence(found)
    behind = candidate("a", [0.49, 0.51, nan])
    said = recommendation_sentence(
        recommend({"d": [candidate("random", [0.50, 0.52, 0.21]), behind]})
    )
    assert "a ends at 0.500 accuracy, above its 0.410, but not with the seeds that both" in said


def test_without_a_spread_the_note_speaks_of_no_interval():
    one_seed = {"d": [candidate("random", [0.5]), candidate("a", [0.6])]}
    assert "95\u00a0% interval" not in training_answer(one_seed).table.note
    several = {"d": [candidate("random", UNIFORM), candidate("a", AHEAD)]}
    assert "with a 95\u00a0% interval" in training_answer(several).table.note


def test_classes_without_test_samples_have_dashes():
    one = candidate("random", UNIFORM)
    unknown = np.full((4, 2), np.nan)
    scheme = replace(one.scheme, class_accuracy=unknown, label_accuracy=unknown)
    answer = training_answer({"d": [replace(one, scheme=scheme)]}, class_rates=(0.1, 0.9))
    assert answer.table.rows[0]["worst class"] == "-"
    assert answer.table.rows[0]["gap"] == "-"
    assert answer.left_out is None
    known = replace(one.scheme, class_accuracy=np.full((4, 2), 0.5), label_accuracy=unknown)
    left_out = training_answer({"d": [replace(one, scheme=known)]}, class_rates=(0.1, 0.9)).left_out
    assert left_out.table.rows[0]["worst label"] == "-"


def test_the_cost_is_that_of_the_seeds_that_were_played_to_the_end():
    nan = float("nan")
    accuracy = np.array([[0.1, 0.2, 0.3], [0.1, nan, nan]])
    asked = np.where(np.isnan(accuracy), nan, 4.0)
    scheme = SchemeResults([0, 1], asked, asked / 2, accuracy=accuracy)
    answer = training_answer({"d": [Candidate("a", "a", "", "k", scheme)]})
    assert answer.table.rows[0]["asked"] == "12"
    (line,) = answer.picture.panels["d"].series
    assert line.x.tolist() == [4, 8, 12]


def test_the_caption_explains_bands_and_early_ends_only_where_they_are():
    one_seed = training_answer({"d": [candidate("random", [0.5])]}).picture
    assert "bands" not in one_seed.caption
    assert "first of its seeds" not in one_seed.caption
    several = candidate("random", UNIFORM)
    seconds = np.array([[1.0], [2.0], [3.0], [4.0]])
    timed = replace(several, scheme=replace(several.scheme, seconds=seconds))
    caption = training_answer({"d": [timed]}).picture.caption
    assert "bands one standard deviation" in caption
    assert "A curve ends when the first of its seeds has no more rounds." in caption
