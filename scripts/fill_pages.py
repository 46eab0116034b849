"""Fill the tables and numbers of hand-written pages from committed records.

A page says which table it shows, and this script copies it:

    <!-- table: figure3/figure3.md | Summary | selector; CEP | selector=random -->
    <!-- end -->

The parts are a report, relative to the page, the heading of a table in it, the columns to show
("all" for all; "CEP=updates" gives one another heading) and, if not all rows, a column with the
value that rows must have. The report may also be a record of benchmarks (.json) with the name of a
suite. A number in a sentence names what it is, and this script computes it:

    in <!--fact:study.cases-->23<!--/--> cases

`python scripts/fill_pages.py` fills all pages; a test checks that nothing changes.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import list_runs
import numpy as np
import study_facts

from fedcohort.reports.words import format_value

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "DEVIATIONS.md", *sorted((ROOT / "results").glob("*.md"))]
QUOTING = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OVERFLOW = ROOT / "results/explorations/overflow.json"
PRECISION = ROOT / "results/explorations/precision.json"
DEVICE_FIT = ROOT / "results/explorations/device-fit.json"
BLOCK = re.compile(r"<!-- table: (?P<what>[^>]+?) -->\n(?P<rows>.*?)<!-- end -->", re.DOTALL)
FACT = re.compile(r"<!--fact:(?P<name>[\w.-]+)-->(?P<text>[^<]*)<!--/-->")

Rows = list[list[str]]


@cache
def facts() -> dict[str, str]:
    """Return every number that a sentence may quote, by name."""
    found = {f"study.{name}": text for name, text in study_facts.facts().items()}
    found |= {f"runs.{name}": text for name, text in list_runs.facts().items()}
    found |= {f"overflow.{name}": text for name, text in overflow_facts().items()}
    found |= {f"precision.{name}": text for name, text in precision_facts().items()}
    return found | {f"devices.{name}": text for name, text in device_facts().items()}


def overflow_facts() -> dict[str, str]:
    """Return how often the paper's weights overflow, by sampler and learning rate."""
    found = {}
    for case in json.loads(OVERFLOW.read_text(encoding="utf-8")):
        share = f"{100 * case['share']:.1f} ± {100 * case['standard error']:.1f} %"
        found[f"{case['sampler']}-{case['eta']}"] = share
        found["seeds"] = f"{case['seeds']:,}"
    return found


def precision_facts() -> dict[str, str]:
    """Return the final accuracies of the same runs in each precision."""
    found = {}
    means = {}
    for case in json.loads(PRECISION.read_text(encoding="utf-8"))["cases"]:
        finals = [100 * final for final in case["final"]]
        means[case["precision"]] = np.array(finals)
        found[case["precision"]] = ", ".join(f"{final:.1f}" for final in finals) + " %"
    differences = means["bf16"] - means["float32"]
    error = differences.std(ddof=1) / len(differences) ** 0.5
    found["difference"] = f"{differences.mean():.1f} ± {error:.1f}".replace("-", "−")
    return found


def device_facts() -> dict[str, str]:
    """Return how the world `devices` was fitted, from the record of the fit."""
    fit = json.loads(DEVICE_FIT.read_text(encoding="utf-8"))
    fast, slow = (f"{100 * share:.0f} %" for share in fit["compute shares"])
    fast_median, slow_median = (f"{median:.1f} ms" for median in fit["compute medians"])
    fast_spread, slow_spread = (f"{spread:.3f}" for spread in fit["compute spreads"])
    return {
        "number": f"{fit['devices']:,}",
        "fast": fast,
        "slow": slow,
        "fast-median": fast_median,
        "slow-median": slow_median,
        "fast-spread": fast_spread,
        "slow-spread": slow_spread,
        "distance": f"{fit['compute distance']:.2f}",
        "one-law": f"{fit['compute distance of one law']:.2f}",
        "link": f"{fit['link median']:,.0f} kbit/s",
        "link-spread": f"{fit['link spread']:.3f}",
        "link-distance": f"{fit['link distance']:.2f}",
        "correlation": f"{fit['correlation of the logarithms']:.2f}",
    }


def read_table(path: Path, title: str) -> Rows:
    """Return the rows of a report's table, or of a suite of benchmarks, the heading row first.

    Raises:
        ValueError: If the report has no such table.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return _read_suite(path, json.loads(text), title)
    heading = f"## {title}\n"
    if heading not in text:
        raise ValueError(f"{path} must have a table called {title!r}")
    rows: Rows = []
    for line in text.split(heading, 1)[1].splitlines():
        if line.startswith("## "):
            break
        if line.startswith("|") and not line.startswith("| ---"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def _read_suite(path: Path, record: dict[str, Any], name: str) -> Rows:
    """Return the rows of a suite in a record of benchmarks."""
    if name not in record["suites"]:
        raise ValueError(f"{path} must have a suite called {name!r}")
    measured = record["suites"][name]["rows"]
    rows = [list(measured[0])]
    return rows + [[format_value(value) for value in row.values()] for row in measured]


def choose(rows: Rows, columns: str, condition: str) -> Rows:
    """Return some columns and rows of a table.

    Raises:
        ValueError: If the table has no such column, or no row is left.
    """
    head = rows[0]
    headings = {name: name for name in head}
    if columns != "all":
        headings = {}
        for column in columns.split(";"):
            name, _, heading = column.strip().partition("=")
            headings[name] = heading or name
    for name in headings:
        if name not in head:
            raise ValueError(f"columns must be some of {head}, got {name!r}")
    chosen = []
    for row in rows[1:]:
        values = dict(zip(head, row, strict=True))
        column, _, wanted = condition.partition("=")
        if not condition or values[column] == wanted:
            chosen.append([values[name] for name in headings])
    if not chosen:
        raise ValueError(f"a condition must leave rows, got {condition!r}")
    return [list(headings.values()), *chosen]


def write_table(rows: Rows) -> str:
    """Return rows as a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def fill(page: Path) -> str:
    """Return the text of a page with all its tables and numbers as the records have them.

    Raises:
        ValueError: If the page names a table or a number that is not there.
    """

    def filled(match: re.Match[str]) -> str:
        parts = [part.strip() for part in match["what"].split(" | ")]
        source, title, columns = parts[:3]
        condition = parts[3] if len(parts) > 3 else ""
        rows = choose(read_table(page.parent / source, title), columns, condition)
        return f"<!-- table: {match['what']} -->\n{write_table(rows)}<!-- end -->"

    def stated(match: re.Match[str]) -> str:
        if match["name"] not in facts():
            raise ValueError(f"{page}: fact must be one of {sorted(facts())}, got {match['name']}")
        return f"<!--fact:{match['name']}-->{facts()[match['name']]}<!--/-->"

    return FACT.sub(stated, BLOCK.sub(filled, page.read_text(encoding="utf-8")))


def fill_all() -> None:
    """Fill every page, and the numbers that the advice quotes."""
    for page in (*PAGES, *QUOTING):
        text = fill(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
    study_facts.ADVICE.write_text(study_facts.advice_text(), encoding="utf-8")


if __name__ == "__main__":
    fill_all()
