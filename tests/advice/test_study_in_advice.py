"""What advice says of our study is what the study's report shows."""

from pathlib import Path

from fedcohort.advice.rules import STUDY
from fedcohort.advice.text import SELECTION_STUDY

REPORT = Path(__file__).parents[2] / "results" / "study" / "volatility.md"


def totals(combination):
    """Return the cases of a combination, and in how many it is ahead and behind for certain."""
    cases = ahead = behind = 0
    for line in REPORT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8 and cells[1] == combination:
            cases += int(cells[2])
            ahead += int(cells[6])
            behind += int(cells[7])
    return cases, ahead, behind


def test_advice_quotes_the_counts_of_the_report():
    cases, ahead, behind_fedcs = totals("fedcs + normalised")
    _, ahead_oort, behind_oort = totals("oort + normalised")
    assert ahead == ahead_oort == 0
    assert cases > 0
    assert f"in any of {cases} cases" in SELECTION_STUDY
    assert f"behind in {behind_fedcs} and {behind_oort}." in SELECTION_STUDY
    assert f"in all {cases} cases" in STUDY
