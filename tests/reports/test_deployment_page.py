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
    assert chart_ids(page(findings)) == ["success", "cep", "probabilities", "fates"]


def test_the_table_of_clients_says_what_came_of_the_others(tmp_path):
    write_journal(tmp_path, ROUNDS)
    rows = load_findings(tmp_path).tables["Clients"]
    assert rows[0] == {
        "client": "a",
        "asked": 2,
        "arrived": 2,
        "success ratio": 1.0,
        "otherwise": "-",
    }
    assert rows[1]["otherwise"] == "lost 1"


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
