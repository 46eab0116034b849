"""Play episodes until enough disturbances have happened; print and write what held.

make chaos                                             # or, with `tests` on PYTHONPATH:
python -m chaos --disturbances 100 --seed 1 --out chaos.json
python -m chaos --seed 1 --episode 3                   # play one episode again
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chaos.episode import Evidence, Player
from chaos.invariants import INVARIANTS, check
from chaos.schedule import DEADLINE, draw_episode

MOST_EPISODES = 60


def main() -> int:
    """Return 0 if every invariant held."""
    parser = argparse.ArgumentParser(prog="chaos", description="Disturb Flower runs by a seed.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disturbances", type=int, default=100, help="how many must happen")
    parser.add_argument("--first", type=int, default=0, help="number of the first episode")
    parser.add_argument("--episode", type=int, help="play this episode alone")
    parser.add_argument("--out", type=Path, default=Path("runs/chaos.json"))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that all processes are ended

    numbers = range(options.first, options.first + MOST_EPISODES)
    if options.episode is not None:
        numbers = range(options.episode, options.episode + 1)
    report = play(options.seed, numbers, options.disturbances, options.out)
    print_summary(report)
    return 0 if not any(report["violations"].values()) else 1


def play(seed: int, numbers: Iterable[int], wanted: int, out: Path) -> dict[str, Any]:
    """Play episodes until enough has happened, writing the report after each of them."""
    report: dict[str, Any] = {
        "seed": seed,
        "commit": find_commit(),
        "deadline": DEADLINE,
        "disturbances": 0,
        "kinds": {},
        "rounds": 0,
        "resumes": 0,
        "runs_ended_by_server_trouble": 0,
        "excused_late_rounds": [],
        "violations": dict.fromkeys(INVARIANTS, 0),
        "episodes": [],
    }
    for number in numbers:
        evidence = play_episode(seed, number)
        add_episode(report, evidence)
        print_episode(report["episodes"][-1])
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(report, indent=1))
        if report["disturbances"] >= wanted:
            break
    return report


def find_commit() -> str:
    """Return the commit under test, empty outside of a repository."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip()


def play_episode(seed: int, number: int) -> Evidence:
    """Play one episode in a folder of its own, which is kept if an invariant broke."""
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{seed}-{number}-"))
    evidence = Player(draw_episode(seed, number), folder).play()
    violations, _ = check(evidence)
    if any(violations.values()):
        print(f"logs of episode {number}: {folder}")
    else:
        shutil.rmtree(folder)
    return evidence


def add_episode(report: dict[str, Any], evidence: Evidence) -> None:
    """Add an episode to the report."""
    violations, excused = check(evidence)
    kinds = Counter(event["kind"] for event in evidence.events if event["done"])
    kinds += Counter(f"answer-{harm}" for _, _, harm in evidence.marks)
    causes = [attempt["ended_by"] for attempt in evidence.attempts]
    trouble = [cause for cause in causes if "stop" in cause or cause.startswith("folder")]

    report["disturbances"] += sum(kinds.values())
    report["kinds"] = dict(sorted((Counter(report["kinds"]) + kinds).items()))
    report["rounds"] += len(evidence.rows)
    report["resumes"] += len(evidence.attempts) - 1
    report["runs_ended_by_server_trouble"] += len(trouble)
    report["excused_late_rounds"] += excused
    for name, found in violations.items():
        report["violations"][name] += len(found)
    report["episodes"].append(
        {
            "number": evidence.episode.number,
            "seconds": evidence.seconds,
            "load": round(max(evidence.load, default=os.getloadavg()[0]), 1),
            "round_seconds": [row["seconds"] for row in evidence.rows],
            "arrived": [row["arrived"] for row in evidence.rows],
            "disturbances": sum(kinds.values()),
            "events": evidence.events,
            "marks": evidence.marks,
            "attempts": evidence.attempts,
            "excused": excused,
            "violations": {name: found for name, found in violations.items() if found},
            "schedule": evidence.episode.as_json(),
        }
    )


def print_episode(episode: dict[str, Any]) -> None:
    """Print a line for an episode, and its schedule if an invariant broke."""
    done = [event["kind"] for event in episode["events"] if event["done"]]
    print(
        f"episode {episode['number']:>2}: {episode['disturbances']:>2} disturbances, "
        f"{len(episode['attempts'])} starts, rounds {episode['round_seconds']} s, "
        f"arrived {episode['arrived']}, load {episode['load']:.1f}, {episode['seconds']:g} s; "
        f"{', '.join(done)}",
        flush=True,
    )
    for event in episode["events"]:
        if not event["done"]:
            print(f"    left out: {event['kind']} ({event['note']})")
    for late in episode["excused"]:
        print(f"    excused: {late}")
    if episode["violations"]:
        for name, found in episode["violations"].items():
            print(f"    VIOLATION, {name}: {found}")
        seed = episode["schedule"]["seed"]
        print(f"    again: python -m chaos --seed {seed} --episode {episode['number']}")
        print(f"    schedule: {json.dumps(episode['schedule'])}", flush=True)


def print_summary(report: dict[str, Any]) -> None:
    """Print the table."""
    about = f"seed {report['seed']}, commit {report['commit']}"
    print(f"\n{about}, deadline {report['deadline']:g} s")
    rows = [
        ("disturbances", report["disturbances"]),
        ("episodes", len(report["episodes"])),
        ("rounds", report["rounds"]),
        ("resumes", report["resumes"]),
        ("runs ended by a stopped SuperLink or a bad disk", report["runs_ended_by_server_trouble"]),
        ("late rounds excused by a stop", len(report["excused_late_rounds"])),
        *report["violations"].items(),
    ]
    for name, number in rows:
        print(f"{name:<50} {number:>6}")
    load = max(episode["load"] for episode in report["episodes"])
    print(f"{'highest load average (1 min)':<50} {load:>6}")
    print("kinds:", ", ".join(f"{kind} {number}" for kind, number in report["kinds"].items()))


if __name__ == "__main__":
    raise SystemExit(main())
