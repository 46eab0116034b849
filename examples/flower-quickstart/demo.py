"""Five real clients on this machine: one is slow, one is killed while it trains and comes back, one returns nonsense.

    python demo.py [FOLDER]        # or, in the project's root: make flower-demo

Starts a SuperLink and five SuperNodes, runs the quickstart app on them, shows every round, and ends every process.
"""

import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rich.console import Console

from fedcohort.flower.loopback import Loopback
from fedcohort.lab.folder import load_journal

APP = Path(__file__).parent
FAULTS = {"0": "", "1": "", "2": "", "3": "slow", "4": "broken"}
VICTIM, ROUNDS, DEADLINE = "2", 8, 25.0
COLOURS = {
    "arrived": "green",
    "stopped": "yellow",
    "rejected": "magenta",
    "lost": "red",
    "failed": "red",
}
console = Console(highlight=False)


def main() -> int:
    """Play the demonstration; 0 if every round ended in time and nothing is left running."""
    folder = (
        Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="fedcohort-demo-"))
    )
    with Loopback(folder) as lab:
        console.print(
            "A SuperLink and five SuperNodes: 3 is slow, 4 returns NaNs, 2 will be killed while it trains."
        )
        lab.start_link()
        for client in FAULTS:
            start(lab, client)
        config = {
            "folder": str(folder / "state"),
            "num-rounds": ROUNDS,
            "deadline": DEADLINE,
            "cohort-size": 4,
        }
        run = lab.submit(APP, config)
        rows = watch(lab, run, folder / "state" / "rounds.jsonl")
        status = lab.status(run)
    left = lab.alive()
    late = [row["round"] for row in rows if row["seconds"] > DEADLINE + 2]
    console.print(
        f"Run {status}. Rounds later than the deadline + 2 s: {late or 'none'}. Processes left: {left or 'none'}.",
        soft_wrap=True,
    )
    console.print(f"Journal and state: {folder / 'state'}", soft_wrap=True)
    return 0 if status == "finished:completed" and not late and not left else 1


def start(lab: Loopback, client: str) -> None:
    """Start a client's SuperNode with its fault, if it has one."""
    lab.start_node(f"client-{client}", {"client-id": client, "fault": FAULTS[client]})


def watch(lab: Loopback, run: int, journal: Path) -> list[dict[str, Any]]:
    """Show every round as it ends; kill the victim at work after the second round, and bring it back two rounds later."""
    rows: list[dict[str, Any]] = []
    say("round", "seconds", "probability of 0, 1, 2, 3, 4", "asked, and what came of it")
    killed_after, end = None, monotonic() + 90 + ROUNDS * (DEADLINE + 5)
    worked = 0
    while len(rows) < ROUNDS and monotonic() < end and not finished(lab, run):
        known = load_journal(journal.parent) if journal.exists() else []
        for row in known[len(rows) :]:
            rows.append(row)
            chances = "  ".join(f"{row['probabilities'].get(client, 0):.2f}" for client in FAULTS)
            fates = [
                f"{each['client']} [{COLOURS[each['status']]}]{each['status']}[/]"
                for each in row["asked"]
            ]
            say(str(row["round"]), f"{row['seconds']:.1f}", chances, ", ".join(fates))
        trained = lab.log(f"client-{VICTIM}").count("Receiving: train message")
        if killed_after is None and len(rows) >= 2 and trained > worked:
            lab.kill(f"client-{VICTIM}")
            killed_after = len(rows)
            console.print(f"[red]client {VICTIM} is killed while it trains[/]")
        elif (
            killed_after is not None
            and f"client-{VICTIM}" not in lab.processes
            and len(rows) >= killed_after + 2
        ):
            start(lab, VICTIM)
            console.print(f"[green]client {VICTIM} is started again[/]")
        worked = trained
        sleep(0.5)
    lab.wait(run, 30.0)
    return rows


def finished(lab: Loopback, run: int) -> bool:
    """Ask Flower seldom: every question is a process of its own."""
    if monotonic() - finished.asked < 15:
        return False
    finished.asked = monotonic()
    return lab.status(run).startswith("finished")


finished.asked = monotonic()


def say(round: str, seconds: str, chances: str, fates: str) -> None:
    """Print a line with columns."""
    console.print(f"{round:>5}  {seconds:>7}  {chances:<28}  {fates}", soft_wrap=True)


if __name__ == "__main__":
    raise SystemExit(main())
