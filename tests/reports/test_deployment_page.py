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
