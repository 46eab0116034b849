"""Five real clients on this machine: one is slow, one is killed and returns, one sends NaNs.

    python demo.py [FOLDER]        # or, in the project's root: make flower-demo

The demonstration starts a SuperLink and five SuperNodes, runs the quickstart app on them, shows
every round, and ends every process.
"""

import signal
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from types import FrameType
from typing import Any

from local_federation import LocalFederation
from rich.console import Console

from fedcohort.lab.folder import journal_path, load_journal

APP = Path(__file__).parent
FAULTS = {"0": "", "1": "", "2": "", "3": "slow", "4": "broken"}
VICTIM = "2"
ROUNDS = 8
DEADLINE = 25.0  # seconds
COLOURS = {
    "arrived": "green",
    "stopped": "yellow",
    "rejected": "magenta",
    "lost": "red",
    "failed": "red",
    "unknown": "blue",
}
console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """Return 0 if the run completes, every round ends in time, and no process is left."""
    signal.signal(signal.SIGTERM, end_at_once)
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
    else:
        folder = Path(tempfile.mkdtemp(prefix="fedcohort-demo-"))

    with LocalFederation(folder) as federation:
        console.print(
            "A SuperLink and five SuperNodes: 3 is slow, 4 returns NaNs, "
            "2 will be killed while it trains."
        )
        federation.start_link()
        for client in FAULTS:
            start_client(federation, client)
        config = {
            "folder": str(folder / "state"),
            "num-rounds": ROUNDS,
            "deadline": DEADLINE,
            "cohort-size": 4,
        }
        run = federation.submit(APP, config)
        rows = Demonstration(federation, run, folder / "state").play()
        status = federation.status(run)

    left = federation.alive()
    late = [row["round"] for row in rows if row["seconds"] > DEADLINE + 2]
    console.print(
        f"Run {status}. Rounds later than the deadline + 2 s: {late or 'none'}. "
        f"Processes left: {left or 'none'}."
    )
    console.print(f"Journal and state: {folder / 'state'}")
    succeeded = status == "finished:completed" and not late and not left
    return 0 if succeeded else 1


def end_at_once(number: int, frame: FrameType | None) -> None:
    """Leave the `with` block of the federation, which ends all its processes."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def start_client(federation: LocalFederation, client: str) -> None:
    """Start a client's SuperNode with its fault, if it has one."""
    federation.start_node(f"client-{client}", {"client-id": client, "fault": FAULTS[client]})


class Demonstration:
    """Shows each round as it ends, kills the victim at work, and starts it again later."""

    def __init__(self, federation: LocalFederation, run: int, state: Path) -> None:
        self.federation = federation
        self.run = run
        self.state = state
        self.rows: list[dict[str, Any]] = []
        self.trainings = 0  # how often the victim has begun to train
        self.killed_after: int | None = None  # rounds that were over when the victim was killed
        self.status_asked_at = monotonic()

    def play(self) -> list[dict[str, Any]]:
        """Return the rows of the journal when the run is over."""
        print_columns(
            "round", "seconds", "probability of 0, 1, 2, 3, 4", "asked, and what came of it"
        )
        end = monotonic() + 90 + ROUNDS * (DEADLINE + 5)
        while len(self.rows) < ROUNDS and monotonic() < end and not self.is_finished():
            self.show_new_rounds()
            self.kill_or_restart_victim()
            sleep(0.5)
        self.federation.wait(self.run, 30.0)
        self.show_new_rounds()  # the last may have ended while Flower was asked for the status
        return self.rows

    def show_new_rounds(self) -> None:
        """Print the rounds that have ended since the last call."""
        if not journal_path(self.state).exists():
            return
        for row in load_journal(self.state)[len(self.rows) :]:
            self.rows.append(row)
            probabilities = [f"{row['probabilities'].get(client, 0):.2f}" for client in FAULTS]
            asked = []
            for entry in row["asked"]:
                colour = COLOURS[entry["status"]]
                asked.append(f"{entry['client']} [{colour}]{entry['status']}[/]")
            print_columns(
                str(row["round"]),
                f"{row['seconds']:.1f}",
                "  ".join(probabilities),
                ", ".join(asked),
            )

    def kill_or_restart_victim(self) -> None:
        """Kill the victim when it trains after round 2, and start it again two rounds later."""
        name = f"client-{VICTIM}"
        trainings = self.federation.log(name).count("Receiving: train message")
        is_at_work = trainings > self.trainings
        self.trainings = trainings

        if self.killed_after is None:
            if len(self.rows) >= 2 and is_at_work:
                self.federation.kill(name)
                self.killed_after = len(self.rows)
                console.print(f"[red]client {VICTIM} is killed while it trains[/]")
            return

        is_away = name not in self.federation.processes
        if is_away and len(self.rows) >= self.killed_after + 2:
            start_client(self.federation, VICTIM)
            console.print(f"[green]client {VICTIM} is started again[/]")

    def is_finished(self) -> bool:
        """Ask Flower at most every 15 s whether the run is over; each question is a process."""
        if monotonic() - self.status_asked_at < 15:
            return False
        self.status_asked_at = monotonic()
        return self.federation.status(self.run).startswith("finished")


def print_columns(round: str, seconds: str, probabilities: str, asked: str) -> None:
    """Print one line of the table."""
    console.print(f"{round:>5}  {seconds:>7}  {probabilities:<28}  {asked}")


if __name__ == "__main__":
    raise SystemExit(main())
