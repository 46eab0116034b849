import pytest
from page_text import chart_ids
from run_folders import journal_entry, write_journal

from fedcohort.cli.pages import load_findings
from fedcohort.lab.deployment import load_deployment
from fedcohort.reports.html.page import page
from fedcohort.reports.pages import deployment

ROUNDS = [
    journal_entry(1, {"a": "arrived", "b": "lost"}, {"a": 0.7, "b": 0.7, "c": 0.6}),
    journal_entry(2, {"a": "arrived", "c": "stopped"}, {"a": 1.0, "b": 0.4, "c": 0.6}),
]


def test_a_flower_run_has_a_page_with_what_came_of_each_client(tmp_path):
    write_journal(tmp_path, ROUNDS)
    (tmp_path / "run.json").write_text('{"rounds": 9, "selector": "e3cs-0.5"}')
    findings = load_findings(tmp_path)
    assert findings.outcomes == {"a": {"arrived": 2}, "b": {"lost": 1}, "c": {"stopped": 1}}
    assert "9 rounds were asked for" in findings.lead[0]
    capped = findings.allocations["this run"].capped
    assert capped.tolist() == [[False, False, False], [True, False, False]]
    assert chart_ids(page(findings)) == [
        "arrivals",
        "success",
        "cep",
        "probabilities",
        "fates",
    ]


def test_the_table_of_clients_says_what_came_of_the_others(tmp_path):
    write_journal(tmp_path, ROUNDS)
    rows = load_findings(tmp_path).tables["Clients"]
    assert rows[0] == {
        "client": "a",
        "asked": 2,
        "arrived": 2,
        "success ratio": 1.0,
        "why": "-",
    }
    assert rows[1]["why"] == "1 never answered"


def test_a_round_that_is_being_written_is_left_out_and_a_damaged_one_refused(tmp_path):
    write_journal(tmp_path, ROUNDS)
    path = tmp_path / "rounds.jsonl"
    path.write_text(path.read_text() + '{"round": 3, "sec')
    findings = deployment.findings(load_deployment(tmp_path))
    assert len(findings.kinds["this run"]["this run"].asked[0]) == 2
    path.write_text('{"round"\n' + path.read_text())
    with pytest.raises(ValueError, match=r"rounds\.jsonl must hold one round per line, got line 1"):
        load_findings(tmp_path)


def test_a_client_that_was_away_in_a_round_had_no_chance_of_being_asked(tmp_path):
    away = journal_entry(3, {"a": "arrived"}, {"a": 0.7, "b": 0.3})
    write_journal(tmp_path, [*ROUNDS, away])
    recorded = load_findings(tmp_path).allocations["this run"]
    assert recorded.inclusion[2].tolist() == [0.7, 0.3, 0.0]
    assert not recorded.capped[2].any()


def test_a_client_whose_updates_are_all_invalid_is_to_be_repaired(tmp_path):
    entries = []
    for number in range(1, 7):
        entry = journal_entry(number, {"a": "arrived", "b": "rejected", "c": "lost"})
        entry["asked"][1]["reason"] = "nan in the update"
        entries.append(entry)
    write_journal(tmp_path, entries)
    (tmp_path / "run.json").write_text('{"rounds": 6, "selector": "e3cs-0.5"}')
    findings = load_findings(tmp_path)
    assert findings.title == "Flower run: e3cs-0.5, 6 rounds, 3 clients"
    said = findings.answer.sentence
    assert said.startswith("33\u00a0% of 18 answers arrived; 6 of the 12 others ")
    assert said.endswith("repair client b, whose 6 updates were all rejected (nan in the update).")
    assert findings.answer.basis[0].startswith(f"Then run fedcohort advise {tmp_path}")
    left_out = findings.answer.left_out.sentences
    assert left_out[0] == "Came, but invalid every time: client b."
    assert left_out[1] == "Asked, but never with an update in time: client c."


def test_clients_are_listed_by_their_share_of_answers_and_those_rarely_asked_last(tmp_path):
    entries = []
    for number in range(1, 7):
        outcomes = {"good": "arrived", "poor": "arrived" if number > 4 else "lost"}
        if number == 1:
            outcomes["new"] = "failed"
        entries.append(journal_entry(number, outcomes))
    write_journal(tmp_path, entries)
    rows = load_findings(tmp_path).answer.table.rows
    assert [row["client"] for row in rows] == ["poor", "good", "new"]
    assert rows[0]["not used"] == "4"
    assert rows[0]["why"] == "4 never answered"
    assert rows[0]["success ratio"] == "33\u00a0%"


def test_long_runs_are_drawn_with_at_most_forty_points(tmp_path):
    write_journal(tmp_path, [journal_entry(one, {"a": "arrived"}) for one in range(1, 122)])
    chart = load_findings(tmp_path).answer.picture
    line = chart.panels["all"].series[0]
    assert len(line.x) == 31
    assert "means over 4 rounds" in chart.caption


def test_clients_that_were_not_waited_for_count_nowhere_as_asked(tmp_path):
    outcomes = {"a": "arrived", "b": "unneeded", "c": "unknown"}
    write_journal(tmp_path, [journal_entry(one, outcomes) for one in (1, 2)])
    findings = load_findings(tmp_path)
    assert findings.answer.sentence == "100\u00a0% of 2 answers arrived, and none was lost."
    assert findings.kinds["this run"]["this run"].success.tolist() == [1.0]
    asked = {row["client"]: row["asked"] for row in findings.tables["Clients"]}
    assert asked == {"a": 2, "b": 0, "c": 0}
    assert {row["client"]: row["asked"] for row in findings.answer.table.rows} == {
        "a": "2",
        "b": "0",
        "c": "0",
    }
    assert "Not counted as asked: 4 " in findings.answer.table.note
    assert findings.answer.picture.panels["all"].words == (
        "On average 1.0 of 1.0 answers asked for arrived."
    )


def test_nobody_is_said_to_get_through_whose_outcome_is_not_known(tmp_path):
    write_journal(tmp_path, [journal_entry(1, {"a": "arrived", "b": "unknown"})])
    said = load_findings(tmp_path).answer.left_out.sentences
    assert said[0] == "Asked, but with no outcome that counts: client b."
    assert not any(sentence.startswith("Every client") for sentence in said)


def test_a_run_that_asked_nobody_yet_or_knows_no_outcome_says_so(tmp_path):
    nobody = journal_entry(1, {"a": "arrived"}) | {"asked": [], "arrived": 0}
    write_journal(tmp_path, [nobody])
    answer = load_findings(tmp_path).answer
    assert answer.sentence == "No client was asked yet."
    assert answer.left_out is None
    assert answer.table is None
    write_journal(tmp_path, [journal_entry(1, {"a": "unknown"})])
    assert load_findings(tmp_path).answer.sentence == (
        "Clients were asked 1 time, and no outcome counts yet."
    )


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"a": "lost"}, "0\u00a0% of 1 answer arrived; it never answered"),
        ({"a": "arrived", "b": "stopped"}, "50\u00a0% of 2 answers arrived; the other one missed"),
        ({"a": "lost", "b": "lost"}, "0\u00a0% of 2 answers arrived; all of them never answered"),
        ({"a": "arrived", "b": "lost", "c": "lost"}, "arrived; all 2 others never answered"),
    ],
)
def test_one_answer_and_one_round_are_in_the_singular(tmp_path, outcomes, said):
    write_journal(tmp_path, [journal_entry(1, outcomes)])
    findings = load_findings(tmp_path)
    assert said in findings.answer.sentence
    assert findings.lead == ["1 round took 2 s."]
    assert findings.title.startswith("Flower run: 1 round, ")


def test_a_page_of_very_many_clients_stays_below_three_megabytes(tmp_path):
    outcomes = {}
    for number in range(20_000):
        outcomes[str(10**18 + number)] = ("arrived", "lost", "stopped")[number % 3]
    write_journal(tmp_path, [journal_entry(1, outcomes)])
    text = page(load_findings(tmp_path))
    assert len(text.encode()) <= 3e6
    assert "5,000 of 20,000 rows." in text
    assert "600 of 20,000 clients, evenly spread." in text
