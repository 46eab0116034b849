"""Measure this machine, keep the figures, and say what got slower.

    python benchmarks/run.py [SUITE...] [--quick] [--out FILE.json] [--against OLD.json]
    python benchmarks/run.py --page benchmarks/records [--against OLD.json]

Without suites all of them run; `flower` takes several minutes and needs Linux. `--page` measures
nothing: it writes docs/benchmarks-latest.md from records, or from all records of a folder.
"""

import argparse
import datetime
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import bench_suites
from bench_records import (
    Record,
    as_page,
    check_target,
    describe_changes,
    direction,
    find_records,
    has_slower,
    read_record,
    write_record,
)

from fedcohort.bench.measurement import Row, describe_hardware
from fedcohort.cli.console import print_table
from fedcohort.files import atomic_write
from fedcohort.lab.environment import git_commit

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks-latest.md"
SLOWER = 1  # exit status where something got slower
MISTAKE = 2


@dataclass(frozen=True)
class Suite:
    """Something to measure.

    Attributes:
        about: A sentence for readers of the table.
        measure: Returns the rows; the argument says whether to measure briefly.
        ratio: Whether a "higher" or a "lower" ratio (×) is better.
    """

    about: str
    measure: Callable[[bool], list[Row]]
    ratio: str


SUITES = {
    "floors": Suite(
        "What the machine can do: copies of memory and products of matrices. Other rows can be "
        "read beside them.",
        bench_suites.measure_floors,
        "higher",
    ),
    "selection": Suite(
        "Rounds of selection, by turns with a draw of `torch.multinomial`. K is the number of "
        "clients, k the size of the cohort.",
        bench_suites.measure_selection,
        "higher",
    ),
    "learning": Suite(
        "Rounds of training: on a GPU in lock-step, on a CPU by turns with a bare PyTorch script.",
        bench_suites.measure_learning,
        "higher",
    ),
    "cpu": Suite(
        "Training on a CPU: our seconds divided by those of `torch.func.vmap` or of bare "
        "processes, by turns.",
        bench_suites.measure_cpu,
        "lower",
    ),
    "rules": Suite(
        "A round with a rule that remembers updates (`fedvarp`) beside one that does not "
        "(`normalised`), by turns.",
        bench_suites.measure_rules,
        "lower",
    ),
    "report": Suite(
        "Drawing the page of a small stored run, beside reading its files.",
        bench_suites.measure_report,
        "lower",
    ),
    "flower": Suite(
        "Rounds of `CohortStrategy`, by turns with stock `FedAvg`; the clients do not train.",
        bench_suites.measure_flower,
        "lower",
    ),
    "peers": Suite(
        "A round of training in other frameworks, by turns with ours.",
        bench_suites.measure_peers,
        "higher",
    ),
}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, write, compare or draw, and return the exit status."""
    parser = make_parser()
    options = parser.parse_args(words)
    try:
        return perform(options)
    except ValueError as error:
        print(f"Error: {error}", file=sys.stderr)
        return MISTAKE


def make_parser() -> argparse.ArgumentParser:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--quick", action="store_true", help="measure briefly")
    parser.add_argument("--out", type=Path, help="write here (runs/benchmarks-DATE.json)")
    parser.add_argument("--overwrite", action="store_true", help="replace another date's file")
    parser.add_argument("--against", type=Path, help="say what got slower since this record")
    parser.add_argument(
        "--page", type=Path, nargs="+", help="write the page of these records; measure nothing"
    )
    return parser


def perform(options: argparse.Namespace) -> int:
    """Do what the options say. Files are checked first: measuring takes minutes."""
    old = None
    if options.against is not None:
        old = read_record(options.against)
    make_record = measure_and_write if options.page is None else draw_page
    record = make_record(options)
    if old is None:
        return 0
    print(describe_changes(old, record))
    return SLOWER if has_slower(old, record) else 0


def draw_page(options: argparse.Namespace) -> Record:
    """Write the page of stored records and return the last of them."""
    given = {
        "SUITE": options.suites,
        "--quick": options.quick,
        "--out": options.out,
        "--overwrite": options.overwrite,
    }
    others = [f"{name} {value}" for name, value in given.items() if value]
    if others:
        raise ValueError(
            "--page must stand without SUITE, --quick, --out and --overwrite, because it measures "
            f"nothing, got {', '.join(others)}"
        )
    records = {}
    for path in find_records(options.page):
        records[path_in_project(path)] = read_record(path)
    with atomic_write(PAGE) as draft:
        draft.write_text(as_page(records), encoding="utf-8")
    print(f"Wrote {PAGE}")
    return list(records.values())[-1]


def path_in_project(path: Path) -> str:
    """Return a path as seen from the folder of the project; outside of it, the whole path."""
    path = path.resolve()
    if path.is_relative_to(ROOT.resolve()):
        path = path.relative_to(ROOT.resolve())
    return path.as_posix()


def measure_and_write(options: argparse.Namespace) -> Record:
    """Measure the suites, write their record and return it."""
    names = list(dict.fromkeys(options.suites)) or list(SUITES)
    for name in names:
        if name not in SUITES:
            raise ValueError(f"SUITE must be one of {', '.join(SUITES)}, got {name}")
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    out = options.out or ROOT / "runs" / f"benchmarks-{date}.json"
    check_target(out, date, options.overwrite)

    record = measure(names, options.quick, date)
    write_record(out, record, options.overwrite)
    print(f"Wrote {out}")
    return record


def measure(names: Sequence[str], quick: bool, date: str) -> Record:
    """Return the record of some suites, which are printed as they end."""
    suites = {}
    for name in names:
        suite = SUITES[name]
        rows = suite.measure(quick)
        for row in rows:
            row["better"] = direction(row["unit"], suite.ratio)
        print_table(rows, f"{name}: {suite.about}")
        suites[name] = {"about": suite.about, "rows": rows}
    words = ["python benchmarks/run.py", *names]
    if quick:
        words.append("--quick")
    return {
        "date": date,
        "machine": describe_devices(),
        "commit": git_commit(ROOT / "pyproject.toml"),
        "command": " ".join(words),
        "load": os.getloadavg()[0],
        "suites": suites,
    }


def describe_devices() -> str:
    """Return the processor, the GPU if there is one, and the versions."""
    try:
        import torch
    except ImportError:
        return describe_hardware()
    words = [describe_hardware(), f"PyTorch {torch.__version__}"]
    if torch.cuda.is_available():
        words.append(torch.cuda.get_device_name())
    return ", ".join(words)


if __name__ == "__main__":
    sys.exit(main())
