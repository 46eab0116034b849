"""Fuzz everything that reads input: `python tests/fuzz/run_fuzz.py --cases 12000`.

Each surface is played by a process of its own, with a limit on its memory. A process that says
nothing for a while is ended, its case counts as a hang, and another goes on after it. A failure is
shown with the command that plays it again.
"""

import argparse
import json
import os
import resource
import selectors
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "flower"), str(HERE.parent / "data")]

from fuzz_cases import FAILURES, HANG, OUTCOMES, SECONDS_PER_CASE, SILENT, Surface, Tally, play_case  # noqa: E402

MEMORY = 12 * 2**30  # bytes of address space; PyTorch alone maps several
SILENCE = 2 * SECONDS_PER_CASE  # seconds without a word after which a process is ended
START = 300  # seconds in which a process must have prepared itself
MAX_SHOWN = 5  # failures shown in full per surface
MAX_RESTARTS = 20


def all_surfaces() -> dict[str, Surface]:
    """Return all surfaces by name."""
    import surface_checkpoints
    import surface_data
    import surface_flags
    import surface_flower
    import surface_folders

    modules = (
        surface_flags,
        surface_folders,
        surface_checkpoints,
        surface_data,
        surface_flower,
    )
    return {surface.name: surface for module in modules for surface in module.SURFACES}


def play_here(surface: Surface, numbers: range, seed: int) -> None:
    """Play cases in this process and print a line of JSON after each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory(dir=scratch_home()) as scratch:
        play = surface.prepare(Path(scratch) / "fuzz")
        print(json.dumps("ready"), file=sys.__stdout__, flush=True)
        for number in numbers:
            outcome, words = play_case(surface, play, seed, number)
            print(json.dumps([number, outcome, words[-3000:]]), file=sys.__stdout__, flush=True)


def scratch_home() -> str | None:
    """Return a folder in memory if there is one: most of the time goes into small files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def play_apart(surface: Surface, cases: int, seed: int) -> Tally:
    """Play cases in other processes; return how they ended."""
    tally = Tally()
    first = 0
    for _ in range(MAX_RESTARTS):
        if first >= cases:
            break
        first = _play_until_silence(surface, range(first, cases), seed, tally)
    return tally


def _play_until_silence(surface: Surface, numbers: range, seed: int, tally: Tally) -> int:
    """Play cases until all are played or one hangs; return the number of the next."""
    command = [
        sys.executable, __file__, "--surface", surface.name, "--seed", str(seed),
        "--first", str(numbers.start), "--cases", str(len(numbers)), "--here",
    ]  # fmt: skip
    following = numbers.start
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
    ) as worker:
        assert worker.stdout is not None
        os.set_blocking(worker.stdout.fileno(), False)
        selector = selectors.DefaultSelector()
        selector.register(worker.stdout, selectors.EVENT_READ)
        patience = START
        text = ""
        while following < numbers.stop and selector.select(patience):
            chunk = worker.stdout.read()
            if not chunk:
                break
            patience = SILENCE
            *lines, text = (text + chunk).split("\n")
            for line in lines:
                said = json.loads(line)
                if said != "ready":
                    following = said[0] + 1
                    _add(surface, tally, seed, *said)
        if following < numbers.stop:
            worker.kill()  # one that is done ends by itself, and removes its scratch folder
    if following < numbers.stop:
        _add(surface, tally, seed, following, HANG, "the process said nothing more, or died")
        following += 1
    return following


def _add(surface: Surface, tally: Tally, seed: int, number: int, outcome: str, words: str) -> None:
    tally.counts[outcome] += 1
    if outcome in FAILURES and (outcome != SILENT or surface.sealed):
        again = f"--surface '{surface.name}' --seed {seed} --first {number} --cases 1 --here"
        tally.failures.append(f"{surface.name}: {outcome}, again with {again}\n{words}")


def share_out(surfaces: dict[str, Surface], cases: int) -> dict[str, int]:
    """Return how many cases each surface gets, at least so many in all."""
    whole = sum(surface.share for surface in surfaces.values())
    return {name: -(-cases * surface.share // whole) for name, surface in surfaces.items()}


def show(tallies: dict[str, Tally], surfaces: dict[str, Surface]) -> int:
    """Print the failures and the table; return the exit code."""
    for tally in tallies.values():
        for failure in tally.failures[:MAX_SHOWN]:
            print(failure, end="\n\n")
    heads = ("surface", "cases", *OUTCOMES)
    print(" ".join(f"{head:>12}" for head in heads))
    for name, tally in tallies.items():
        note = "" if surfaces[name].sealed else "  (written without checksums)"
        row = (name, tally.cases, *tally.counts.values())
        print(" ".join(f"{cell!s:>12}" for cell in row) + note)
    sums = [sum(tally.counts[outcome] for tally in tallies.values()) for outcome in OUTCOMES]
    print(" ".join(f"{cell!s:>12}" for cell in ("all", sum(sums), *sums)))
    return int(any(tally.failures for tally in tallies.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--surface", help="only this one")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--here", action="store_true", help="in this process, as lines of JSON")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    surfaces = all_surfaces()
    if given.surface:
        surfaces = {given.surface: surfaces[given.surface]}
    if given.here:
        numbers = range(given.first, given.first + given.cases)
        play_here(surfaces[given.surface], numbers, given.seed)
        return 0

    shares = share_out(surfaces, given.cases)
    with ThreadPoolExecutor(given.processes) as pool:
        running = {
            name: pool.submit(play_apart, surface, shares[name], given.seed)
            for name, surface in surfaces.items()
        }
        tallies = {name: future.result() for name, future in running.items()}
    return show(tallies, surfaces)


if __name__ == "__main__":
    sys.exit(main())
