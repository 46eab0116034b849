"""Play one episode and gather the evidence: what was done, and what the run made of it."""

import json
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

from chaos.disturb import Disturber, NotPossible
from chaos.federation import ChaosFederation
from chaos.schedule import CLIENTS, COHORT, DEADLINE, ROUNDS, Disturbance, Episode

APP = Path(__file__).parent / "app"
WAIT = 60.0  # seconds that a run waits for its clients
HUNG = 4 * DEADLINE  # a round that takes longer will not end
LONGEST = 900.0  # seconds of an episode
MOST_ATTEMPTS = 8
MOST_SUBMISSIONS = 5
TICK = 0.25
ORPHAN_PATIENCE = 30.0  # seconds that apps whose node or SuperLink has ended have to end, too
SERVER_SIDE = ("server", "link", "folder")
# What a run says when it ends because of a disturbance of the server; killed, it says nothing.
REASONS = {
    "server": r"^$|KeyboardInterrupt|SystemExit",
    "link": r"^$|^httpx\.|^httpcore\.|Connection|Timeout|locked|SuperLink|pause must",
    "folder": r"^OSError|No space left|Read-only file system|folder must",
}
ERROR_LINE = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Trouble|Interrupt|Exit)\b.*")


@dataclass
class Evidence:
    """What an episode left to look at.

    Attributes:
        episode: The schedule.
        events: Disturbances that were carried out: kind, target, begin, end, and a note.
        marks: Harms that clients carried out, as (round, client, harm).
        rows: The journal at the end, each row with `seen_at`.
        attempts: Starts of the run: its id, how it ended, and the last lines of its log.
        hung: Rounds that did not end.
        left: Processes that nobody ended.
        state: The checkpoint at the end.
        load: The load average, sampled after each round.
        seconds: How long the episode took.
    """

    episode: Episode
    events: list[dict[str, Any]] = field(default_factory=list)
    marks: list[tuple[int, str, str]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    hung: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    state: dict[str, Any] | None = None
    load: list[float] = field(default_factory=list)
    seconds: float = 0.0


class Player:
    """Plays one episode on a federation of its own.

    Args:
        episode: The schedule.
        folder: An empty folder for logs, orders and the run folder.
    """

    def __init__(self, episode: Episode, folder: Path) -> None:
        self.episode = episode
        self.folder = folder
        self.federation = ChaosFederation(folder)
        self.disturber = Disturber(self.federation, first_newcomer=CLIENTS)
        self.evidence = Evidence(episode)
        self.pending = list(episode.disturbances)
        self.endings: list[tuple[float, dict[str, Any], Callable[[], None]]] = []
        self.seen: dict[int, float] = {}  # when a row of the journal was first seen
        self.progress_at = monotonic()
        self.orders = folder / "orders.json"
        self.marks = folder / "marks"
        self.marks.mkdir()

    def play(self) -> Evidence:
        """Return the evidence; all processes are ended."""
        start = monotonic()
        with self.federation:
            self._begin()
            self._watch_until_over(monotonic() + LONGEST)
            self._gather()
        self.evidence.left += [str(pid) for pid in self.federation.alive()]
        self.evidence.seconds = round(monotonic() - start, 1)
        return self.evidence

    def _watch_until_over(self, end: float) -> None:
        while not self._is_over():
            if monotonic() > end:
                self.evidence.hung.append(f"the episode took more than {LONGEST:g} s")
                return
            self._watch_journal()
            self._end_disturbances()
            self._begin_disturbances()
            sleep(TICK)

    # --- The run ---------------------------------------------------------------------------

    def _begin(self) -> None:
        self.orders.write_text(json.dumps(self.episode.harms))
        self.federation.start_link()
        for client in range(CLIENTS):
            self.federation.start_client(str(client))
        end = monotonic() + 2 * WAIT
        while self.federation.nodes_online(time()) < CLIENTS and monotonic() < end:
            sleep(TICK)
        self._submit(resume=False)

    def _submit(self, resume: bool) -> None:
        config = {
            "clients": CLIENTS,
            "cohort": COHORT,
            "rounds": ROUNDS,
            "deadline": DEADLINE,
            "seed": self.episode.run_seed,
            "wait": WAIT,
            "folder": str(self.federation.disk),
            "orders": str(self.orders),
            "marks": str(self.marks),
            "resume": resume,
        }
        number = self._submit_patiently(config)
        self.evidence.attempts.append(
            {"id": number, "began": time(), "status": "under way", "log": "", "ended_by": ""}
        )
        self.progress_at = monotonic() + WAIT

    def _submit_patiently(self, config: dict[str, Any]) -> int:
        """Submit the run; try again if the SuperLink is not ready for it yet."""
        for _ in range(MOST_SUBMISSIONS - 1):
            try:
                return self.federation.submit(APP, config)
            except ValueError:
                sleep(2.0)
        return self.federation.submit(APP, config)

    def _is_over(self) -> bool:
        """Return whether the run is completed or given up; start it again if it died."""
        attempt = self.evidence.attempts[-1]
        is_killed = bool(attempt["ended_by"]) and not self.federation.server_apps()
        status = self.federation.run_status(attempt["id"])
        if status == "finished:completed":
            attempt["status"] = status
            return True
        if not is_killed and not status.startswith("finished"):
            return self._is_hung()
        if self._is_server_disturbed():
            return False  # first let the disturbance end

        attempt["status"] = status
        attempt["log"] = self.federation.run_log(attempt["id"])[-3000:]
        attempt["ended_by"] = find_cause(attempt, self.evidence.events, time())
        causes = [attempt["ended_by"] for attempt in self.evidence.attempts]
        if len(causes) == MOST_ATTEMPTS or causes.count("client") == 2:
            return True  # a client that ends a run ends it again after every resume
        has_checkpoint = (self.federation.disk / "checkpoint.safetensors").exists()
        self._submit(resume=has_checkpoint or bool(self._rows()))
        return False

    def _is_hung(self) -> bool:
        if self._is_server_disturbed():
            self.progress_at = max(self.progress_at, monotonic())
        if monotonic() - self.progress_at < HUNG:
            return False
        round = len(self._rows()) + 1
        self.evidence.hung.append(f"round {round} did not end in {HUNG:g} s")
        return True

    # --- Journal ---------------------------------------------------------------------------

    def _rows(self) -> list[dict[str, Any]]:
        path = self.federation.disk / "rounds.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]]

    def _watch_journal(self) -> None:
        rows = self._rows()
        news = [row["round"] for row in rows if row["round"] not in self.seen]
        for round in list(self.seen):
            if round > len(rows):
                del self.seen[round]  # a resumed run plays it again
        for round in news:
            self.seen[round] = time()
            self.progress_at = max(self.progress_at, monotonic())
            self.evidence.load.append(os.getloadavg()[0])
        if news:  # the harness may have been busy since the last row was written
            self.seen[news[-1]] = (self.federation.disk / "rounds.jsonl").stat().st_mtime

    # --- Disturbances ----------------------------------------------------------------------

    def _begin_disturbances(self) -> None:
        for one in list(self.pending):
            if not self._is_due(one):
                continue
            is_server_side = one.kind.startswith(SERVER_SIDE)
            if is_server_side and self._is_server_disturbed():
                continue  # one at a time
            self.pending.remove(one)
            self._carry_out(one)

    def _is_due(self, one: Disturbance) -> bool:
        if one.round == 1:
            return any(self.marks.iterdir())
        previous = self.seen.get(one.round - 1)
        return previous is not None and time() >= previous + one.delay

    def _carry_out(self, one: Disturbance) -> None:
        event: dict[str, Any] = {"kind": one.kind, "target": one.target, "round": one.round}
        event |= {"begin": time(), "done": True, "note": one.skew}
        self.evidence.events.append(event)
        try:
            ending = self.disturber.begin(one)
        except NotPossible as reason:
            event |= {"done": False, "note": str(reason)}
            return
        if one.kind in ("server-kill", "server-term", "link-kill", "link-term"):
            self.evidence.attempts[-1]["ended_by"] = one.kind
        if ending is None:
            event["end"] = time()
        else:
            self.endings.append((monotonic() + one.seconds, event, ending))

    def _end_disturbances(self) -> None:
        for due in list(self.endings):
            at, event, ending = due
            if monotonic() >= at:
                self.endings.remove(due)
                ending()
                event["end"] = time()

    def _is_server_disturbed(self) -> bool:
        return any(event["kind"].startswith(SERVER_SIDE) for _, event, _ in self.endings)

    # --- Evidence --------------------------------------------------------------------------

    def _gather(self) -> None:
        from fedcohort.lab.folder import load_checkpoint
        from fedcohort.lab.folder.flower import FLOWER_CHECKPOINT_PARTS

        self._watch_journal()
        for _, event, ending in self.endings:
            if event["kind"] != "client-kill" and event["kind"] != "client-term":
                ending()
            event["end"] = time()
        self.evidence.rows = [row | {"seen_at": self.seen[row["round"]]} for row in self._rows()]
        for path in self.marks.iterdir():
            round, client, harm = path.name.split("-", 2)
            if harm != "none":
                self.evidence.marks.append((int(round), client, harm))
        self.evidence.marks.sort()
        self.evidence.state = load_checkpoint(self.federation.disk, FLOWER_CHECKPOINT_PARTS)

        end = monotonic() + 15.0
        while self.federation.server_apps() and monotonic() < end:
            sleep(TICK)
        self.evidence.left += self.disturber.left
        for pid in self.federation.server_apps():
            self.evidence.left.append(f"ServerApp {pid} after the end of the run")
            self.federation.signal(pid, signal.SIGKILL)
        self.evidence.left += self.federation.wait_for_orphans(ORPHAN_PATIENCE)


def find_cause(attempt: dict[str, Any], events: list[dict[str, Any]], now: float) -> str:
    """Return the disturbance of the server that ended a run, "client" if none can have.

    Args:
        attempt: The run: when it began, its log, and the kill that it met, if any.
        events: What was done so far.
        now: The time at which the run was found to have ended.
    """
    lines = [line for line in attempt["log"].splitlines() if ERROR_LINE.match(line)]
    reason = lines[-1] if lines else ""
    for event in reversed(events):
        family = event["kind"].partition("-")[0]
        is_recent = event["done"] and event.get("end", now) >= attempt["began"]
        if is_recent and family in REASONS and re.search(REASONS[family], reason):
            return str(event["kind"])
    return "client"
