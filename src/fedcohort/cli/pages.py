"""`fedcohort report`: find out what wrote a folder, read it, write its page."""

from pathlib import Path

from fedcohort.paper import page as reproduction
from fedcohort.reports.findings import Findings
from fedcohort.reports.html.page import NO_PAGE, write_page
from fedcohort.reports.pages import comparison, deployment, simulation


def findings(folder: Path) -> Findings:
    """Return what a folder of `compare`, `simulate`, `reproduce` or a Flower run holds; anything else is refused."""
    if not folder.is_dir():
        raise ValueError(f"runs must be a folder of results, got {folder}")
    if (folder / "settings.toml").exists():
        return comparison.findings(folder)
    if (folder / "settings.json").exists():
        return simulation.findings(folder)
    if (folder / "rounds.jsonl").exists():
        return deployment.findings(folder)
    if reproduction.is_one(folder):
        return reproduction.findings(folder)
    raise ValueError(
        f"runs must be a folder of compare, simulate, reproduce or a Flower run with rounds.jsonl, got {folder}"
    )


def write_report(folder: Path) -> str:
    """Write the page of a folder; return what to say of it."""
    path = write_page(findings(folder), folder)
    return NO_PAGE if path is None else f"Report: {path}"
