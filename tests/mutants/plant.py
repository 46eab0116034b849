"""Plant one bug after the other and see whether its tests fail: `make mutants`.

Each bug is planted in a copy of `src`, which `PYTHONPATH` puts before the installed package. A bug
is caught if a test fails or runs past the time limit. Of a folder of tests only the quick ones are
run. Words on the command line choose the bugs whose name or file contains one of them.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from catalogue import MUTANTS
from mutant import ROOT, SOURCE, Mutant

PASSED = 0
FAILED = 1
INTERRUPTED = 2  # a test file could not be imported
QUICK = "not slow and not deployment and not packaging"


@dataclass(frozen=True)
class Outcome:
    """What the tests said about a bug: the test that caught it, or nothing."""

    mutant: Mutant
    caught_by: str
    seconds: float


def run_tests(tests: Sequence[str], source: Path, limit: float) -> tuple[int | None, str]:
    """Run tests against a folder of sources; the status is None if the time was up."""
    with tempfile.TemporaryDirectory() as examples:
        environment = {
            **os.environ,
            "PYTHONPATH": str(source),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": examples,
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=no"]
        command += ["-p", "no:cacheprovider", *tests]
        if any((ROOT / test).is_dir() for test in tests):  # slow tests would take too long
            command += ["-m", QUICK]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return None, ""
    return done.returncode, done.stdout + done.stderr


def try_mutant(mutant: Mutant, text: str, limit: float) -> Outcome:
    """Plant a bug, which makes its file this text, in a copy of the sources; run its tests."""
    start = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        mutant.path(source).write_text(text, encoding="utf-8")
        status, output = run_tests(mutant.tests, source, limit)
    return Outcome(mutant, _caught_by(mutant, status, output), perf_counter() - start)


def _caught_by(mutant: Mutant, status: int | None, output: str) -> str:
    """Return the test that failed, empty if none did."""
    if status is None:
        return "the time limit"
    if status == PASSED:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    if status not in (FAILED, INTERRUPTED) or found is None:
        raise SystemExit(f"{mutant.name}: pytest could not run {mutant.tests}\n{output}")
    return found[1]


def check_unchanged(mutants: Sequence[Mutant], limit: float) -> None:
    """Refuse to go on if a test fails without any bug: it would say nothing."""
    tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    status, output = run_tests(tests, SOURCE, limit)
    if status != PASSED:
        raise SystemExit(f"the tests must pass without a bug, got:\n{output}")


def choose(words: Sequence[str]) -> list[Mutant]:
    """Return the bugs whose name or file contains one of the words; all without words."""
    if not words:
        return list(MUTANTS)
    chosen = []
    for mutant in MUTANTS:
        if any(word in f"{mutant.file} {mutant.name}" for word in words):
            chosen.append(mutant)
    return chosen


def main() -> int:
    """Print a table of all chosen bugs and the share that survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of names or files; default: all bugs")
    parser.add_argument("--limit", type=float, default=300, help="seconds for the tests of a bug")
    options = parser.parse_args()
    mutants = choose(options.words)
    if not mutants:
        parser.error(f"no bug is called {' or '.join(options.words)}")

    try:
        texts = [mutant.planted() for mutant in mutants]
    except ValueError as error:
        parser.error(str(error))
    check_unchanged(mutants, limit=10 * options.limit)

    survivors = 0
    for mutant, text in zip(mutants, texts, strict=True):
        outcome = try_mutant(mutant, text, options.limit)
        survivors += not outcome.caught_by
        caught_by = outcome.caught_by or "NOBODY"
        print(f"{mutant.file}: {mutant.name} | {caught_by} | {outcome.seconds:.0f} s", flush=True)
    share = survivors / len(mutants)
    print(f"{survivors} of {len(mutants)} survive ({share:.0%})")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
