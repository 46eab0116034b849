"""Which source files a command passes, and how often it opens each result file for reading.

    python benchmarks/walk.py src            one table for this tree
    python benchmarks/walk.py OTHER/src src  two trees side by side

Each command runs in a process of its own. A source file counts as passed if one of its functions
is executed; module bodies and class bodies do not count.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMPARE = (
    "compare --selectors e3cs-0.5,random --seeds 1 --rounds 4 --checkpoint-every 2 --clients 12 "
    "--cohort 4 --samples-per-client 20 --mode one-by-one --out compare"
)
SIMULATE = "simulate --selectors e3cs-0.5,random --seeds 2 --rounds 20 --out simulate"
REPRODUCE = (
    "reproduce table3 --dataset digits --rounds 4 --selectors random,fedcs --partitions iid "
    "--mus 0 --seeds 1 --out reproduce"
)
COMMANDS = {
    "compare": COMPARE,
    "compare (finished)": COMPARE,
    "simulate": SIMULATE,
    "simulate (stored)": SIMULATE,
    "reproduce table3": REPRODUCE,
    "reproduce (finished)": REPRODUCE,
    "report compare": "report compare",
    "report simulate": "report simulate",
    "report reproduce": "report reproduce",
}
RESULTS = (".toml", ".json", ".npz", ".jsonl", ".safetensors", ".sha256", ".parquet")


def trace(source: Path, out: str, arguments: list[str]) -> None:
    """Run one command in this process and write what it passed."""
    package = str(source / "fedcohort") + os.sep
    executed: set[str] = set()

    def on_call(frame, event, argument):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(package):
            return
        is_body = code.co_name == "<module>" or not code.co_flags & 0x2  # CO_NEWLOCALS: function
        if not is_body:
            executed.add(code.co_filename.removeprefix(package))

    import fedcohort.cli

    assert fedcohort.cli.__file__.startswith(package), fedcohort.cli.__file__
    with counted_reads(Path.cwd()) as opened:
        sys.setprofile(on_call)
        try:
            code = run(arguments)
        finally:
            sys.setprofile(None)
    imported = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(package):
            imported.add(file.removeprefix(package))
    found = {
        "code": code,
        "executed": sorted(executed),
        "imported": sorted(imported),
        "opened": opened,
    }
    Path(out).write_text(json.dumps(found))


def run(arguments: list[str]) -> int:
    """Run a command in this process; return its exit code."""
    from fedcohort import cli

    before = sys.argv
    sys.argv = ["fedcohort", *arguments]
    try:
        cli.main()
    except SystemExit as stop:
        return stop.code
    finally:
        sys.argv = before


@contextmanager
def counted_reads(folder: Path) -> Iterator[Counter[str]]:
    """Count how often each result file of a folder is opened for reading."""
    here = folder.resolve()
    opened: Counter[str] = Counter()
    is_counting = True

    def on_event(event, arguments):
        if event != "open" or not is_counting or not isinstance(arguments[0], str | os.PathLike):
            return
        mode = arguments[1]
        is_read = mode is None and not arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if not is_read and not (isinstance(mode, str) and not set(mode) & set("wax+")):
            return
        full = Path(arguments[0]).resolve()
        if full.suffix in RESULTS and full.is_relative_to(here) and not full.name.startswith("."):
            opened[str(full.relative_to(here))] += 1

    sys.addaudithook(on_event)  # Python cannot remove it again.
    try:
        yield opened
    finally:
        is_counting = False


def walk(source: Path) -> dict[str, dict]:
    """Run all commands on a tree and return what each passed."""
    found = {}
    with tempfile.TemporaryDirectory() as home:
        for name, command in COMMANDS.items():
            out = Path(home) / "trace.out"
            environment = {**os.environ, "PYTHONPATH": str(source)}
            ended = subprocess.run(
                [sys.executable, __file__, "--trace", str(source), str(out), *command.split()],
                cwd=home,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if not out.exists():
                raise SystemExit(ended.stderr)
            found[name] = json.loads(out.read_text())
            out.unlink()
    return found


def main() -> None:
    """Print one table for each tree, side by side."""
    sources = [Path(text).resolve() for text in sys.argv[1:]]
    trees = {str(source): walk(source) for source in sources}
    heading = f"{'command':22}" + "".join(
        f"{'files executed':>16}{'imported':>10}{'opens':>7}{'most per file':>15}" for _ in sources
    )
    print(" " * 22 + "".join(f"{name:>48}" for name in trees))
    print(heading)
    for command in COMMANDS:
        line = f"{command:22}"
        for found in trees.values():
            one = found[command]
            opened = one["opened"]
            line += f"{len(one['executed']):16}{len(one['imported']):10}"
            line += f"{sum(opened.values()):7}{max(opened.values(), default=0):15}"
        print(line)
    for name, found in trees.items():
        print(f"\nread more than once in {name}:")
        for command, one in found.items():
            often = {path: times for path, times in one["opened"].items() if times > 1}
            print(f"  {command} (exit code {one['code']}): {often or '-'}")


if __name__ == "__main__":
    if sys.argv[1] == "--trace":
        trace(Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
    else:
        main()
