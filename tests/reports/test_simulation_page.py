import numpy as np
from page_text import chart_ids, csv_of

from fedcohort.cli.pages import load_findings
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import load_or_simulate
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.html.page import page
from fedcohort.reports.pages.simulation_answer import simulation_answer


def test_a_simulation_has_a_page_without_accuracy(tmp_path):
    config = SimulationConfig(("e3cs-0", "random"), clients=8, cohort=3, rounds=15, seeds=2)
    load_or_simulate("simulate", config, tmp_path)
    findings = load_findings(tmp_path)
    text = page(findings)
    assert chart_ids(text)[-4:] == ["success", "cep", "selections", "fairness"]
    assert csv_of(text)["fairness"][0][3] == "success ratio"
    assert findings.seeds == "0 to 1"


def scheme(successes, counts=None):
    """Return a scheme whose seeds got so many of ten answers."""
    used = np.array(successes, dtype=float)[:, None]
    return SchemeResults(range(len(used)), np.full(used.shape, 10.0), used, counts)


def test_schemes_that_the_seeds_cannot_tell_from_the_first_are_marked():
    schemes = {
        "random": scheme([5, 6, 5, 6]),
        "near": scheme([6, 6, 6, 5]),
        "far": scheme([1, 2, 1, 2]),
    }
    answer = simulation_answer(schemes, "random")
    assert [row["scheme"] for row in answer.table.rows] == ["near", "random", "far"]
    assert answer.table.marks == {0: "best", 1: "tied"}
    assert "4 seeds cannot tell that lead from chance" in answer.sentence
    assert "corrected by Holm's method for 3 pairs." in answer.table.note


def test_a_clear_lead_is_said_without_doubt():
    answer = simulation_answer({"random": scheme([5, 6, 5]), "a": scheme([9, 9, 9])}, "random")
    assert answer.sentence == (
        "a gets the most answers, 90\u00a0% of those asked for against 53\u00a0% with uniform "
        "selection; nothing was trained, so accuracy is not known."
    )
    assert answer.table.marks == {0: "best"}


def test_one_scheme_has_not_the_most_answers_and_one_seed_no_spread():
    alone = simulation_answer({"random": scheme([5, 7])}, "random")
    assert alone.sentence.startswith("random gets 60\u00a0% of the answers asked for; nothing was")
    one_seed = simulation_answer({"random": scheme([5]), "a": scheme([9])}, "random")
    assert "one seed shows no spread, and nothing was trained" in one_seed.sentence
    assert one_seed.table.marks == {0: "best"}


def test_schemes_that_get_the_same_are_not_ranked_in_the_sentence():
    answer = simulation_answer({"random": scheme([10, 10]), "a": scheme([10, 10])}, "random")
    assert answer.sentence.startswith("Every scheme gets 100\u00a0% of the answers asked for; ")


def test_who_is_left_out_is_told_for_the_first_and_for_uniform_selection():
    always = np.array([[10, 10, 0, 0]])
    even = np.array([[6, 6, 4, 4]])
    schemes = {"random": scheme([5], even), "fedcs": scheme([9], always)}
    said = simulation_answer(schemes, "random").left_out.sentences
    assert said == [
        "fedcs never asked 50\u00a0% of the clients; the half that it asked least got 0\u00a0% of "
        "its requests.",
        "random asked every client; the half that it asked least got 40\u00a0% of its requests.",
    ]
