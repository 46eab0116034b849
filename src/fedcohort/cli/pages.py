"""The page of a folder, whatever wrote the folder."""

from pathlib import Path

from fedcohort.lab.comparison import load_comparison
from fedcohort.lab.deployment import load_deployment
from fedcohort.lab.folder import Kind, check_readable, detect_kind
from fedcohort.lab.simulation import load_simulation
from fedcohort.paper import page as reproduction
from fedcohort.reports.findings import Findings
from fedcohort.reports.html.page import write_page
from fedcohort.reports.pages import comparison, deployment, simulation


def load_findings(folder: Path) -> Findings:
    """Return what a page shows of a folder.

    Raises:
        ValueError: If the folder holds nothing of ours.
    """
    if not folder.is_dir():
        raise ValueError(f"runs must be a folder of results, got {folder}")
    check_readable("runs", folder)
    kind = detect_kind(folder, reproduction.FOLDERS)
    if kind is Kind.COMPARISON:
        return comparison.findings(load_comparison(folder))
    if kind is Kind.SIMULATION:
        return simulation.findings(load_simulation(folder))
    if kind is Kind.FLOWER:
        return deployment.findings(load_deployment(folder))
    if kind is Kind.REPRODUCTION:
        return reproduction.read_findings(folder)
    raise ValueError(
        "runs must be a folder of compare, simulate, reproduce or a Flower run with rounds.jsonl, "
        f"got {folder}"
    )


def write_report(folder: Path) -> str:
    """Write the page of a folder that is read again; return the line that says where it is."""
    return write_report_page(load_findings(folder), folder)


def write_report_page(findings: Findings, folder: Path) -> str:
    """Write the page of a folder; return the line that says where it is."""
    return f"Report: {write_page(findings, folder)}"
