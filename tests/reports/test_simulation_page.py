from page_text import chart_ids, csv_of

from fedcohort.cli.pages import load_findings
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import load_or_simulate
from fedcohort.reports.html.page import page


def test_a_simulation_has_a_page_without_accuracy(tmp_path):
    config = SimulationConfig(("e3cs-0", "random"), clients=8, cohort=3, rounds=15, seeds=2)
    load_or_simulate("simulate", config, tmp_path)
    findings = load_findings(tmp_path)
    text = page(findings)
    assert chart_ids(text)[-4:] == ["success", "cep", "selections", "fairness"]
    assert csv_of(text)["fairness"][0][3] == "success ratio"
    assert findings.seeds == "0 to 1"
