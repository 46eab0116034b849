"""The journal of a run: one JSON object for each round.

`fedcohort.lab.folder` knows the file names and reads the journal back, so that `fedcohort report`
and `fedcohort watch` work without Flower. The state from which a run resumes is in
`checkpoint.py`.
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.files import to_json_line
from fedcohort.flower.verdicts import Verdict
from fedcohort.lab import folder as run_folder
from fedcohort.metrics import jain

log = logging.getLogger("flwr.fedcohort")
# With more clients a row has a summary instead of every client's probability, so that the length of
# a line does not grow with the federation. The probabilities of those asked stand beside them.
MOST_PROBABILITIES = 200


@dataclass
class Totals:
    """Counts over all rounds so far.

    Attributes:
        asked: How often each client was asked, by name.
        sent: Number of updates that were asked for, without those that trouble of the SuperLink
            made unknown, and those that were not needed.
        arrived: Number of updates that counted.
    """

    asked: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    arrived: int = 0

    def add(self, clients: Sequence[str], verdicts: Sequence[Verdict]) -> None:
        """Count a round."""
        for name in clients:
            self.asked[name] = self.asked.get(name, 0) + 1
        self.sent += sum(verdict.status not in ("unknown", "unneeded") for verdict in verdicts)
        self.arrived += _count_arrived(verdicts)


def round_row(
    server_round: int,
    *,
    seconds: float,
    clients: Sequence[str],
    inclusion: Sequence[float],
    verdicts: Sequence[Verdict],
    known: Sequence[str],
    totals: Totals,
    probabilities: dict[str, float] | None,
    troubles: Sequence[str] = (),
    paused: float = 0.0,
    resting: Sequence[str] = (),
    error: str = "",
    deadline: float | None = None,
    late: Sequence[dict[str, Any]] = (),
    absent: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return a round as the journal holds it.

    Args:
        server_round: The round, counted from 1.
        seconds: How long the round took.
        clients: Names of the clients that were asked.
        inclusion: Their probabilities of being asked.
        verdicts: The verdicts on them.
        known: Names of all clients ever seen.
        totals: Counts over all rounds, this one included.
        probabilities: Probability of being asked for every client; None if not known. Of more than
            200 clients the row has only a summary, under "probability_summary".
        troubles: What went wrong with the SuperLink. The row has "trouble" only if something did.
        paused: Seconds that the run paused before the round; in the row only if it did.
        resting: Names of clients that were not asked because they were rejected too often; the row
            has the key "resting" only if there are any.
        error: What the strategy raised when it aggregated; the row has the key "error" only if it
            did.
        deadline: Seconds that the round might take; in the row only if rounds differ in it.
        late: What came since the last row of clients that their rounds had not waited for; in the
            row only if something did.
        absent: Names of known clients that could not be asked; in the row unless it is None. More
            than 200 are left out.
    """
    asked = []
    for name, probability, verdict in zip(clients, inclusion, verdicts, strict=True):
        asked.append(
            {
                "client": name,
                "inclusion": float(f"{probability:.6g}"),
                "status": verdict.status,
                "reason": verdict.reason,
                "seconds": verdict.seconds,
            }
        )

    counts = np.array([totals.asked.get(name, 0) for name in known], dtype=np.int64)
    fairness = float(jain(counts)) if counts.size else 1.0
    row = {
        "round": server_round,
        "seconds": round(seconds, 3),
        "asked": asked,
        "arrived": _count_arrived(verdicts),
        "cep": totals.arrived,
        "success_ratio": totals.arrived / max(1, totals.sent),
        "fairness": fairness,
        "probabilities": probabilities,
    }
    if probabilities is not None and len(probabilities) > MOST_PROBABILITIES:
        row["probabilities"] = None
        row["probability_summary"] = _summarise(list(probabilities.values()))
    if troubles:
        row["trouble"] = list(troubles)
    if paused:
        row["paused"] = round(paused, 3)
    if resting:
        row["resting"] = list(resting)
    if error:
        row["error"] = error
    if deadline is not None:
        row["deadline"] = round(deadline, 3)
    if late:
        row["late"] = list(late)
    if absent is not None and len(absent) <= MOST_PROBABILITIES:
        row["absent"] = list(absent)
    return row


def write_announcement(folder: Path | None, about: dict[str, Any]) -> None:
    """Write what will be played and with which software, if there is a folder."""
    if folder is None:
        return
    run_folder.write_about(folder, about)
    run_folder.write_environment(folder)


class Journal:
    """Appends one line for each round to the journal of a run.

    Args:
        folder: Folder of the run; None writes nothing.
        done: Number of rounds that are finished. Later lines are removed, because a resumed run
            plays those rounds again.
        repair: Whether lines of finished rounds may be damaged or missing. The damaged journal is
            set aside then, and the readable lines stay.

    Raises:
        ValueError: If lines of finished rounds are damaged or missing, and not to be repaired.
    """

    def __init__(self, folder: Path | None, done: int = 0, repair: bool = False) -> None:
        self.path: Path | None = None
        if folder is None:
            return
        self.path = run_folder.journal_path(folder)
        aside = run_folder.trim_journal(folder, done, repair)
        if aside is not None:
            log.warning("%s is damaged: lines are left out; it is kept as %s", self.path, aside)

    def write(self, row: dict[str, Any]) -> None:
        """Add a round; when this returns, the line is on disk."""
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(to_json_line(row))
                file.flush()
                os.fsync(file.fileno())


def _summarise(probabilities: list[float]) -> dict[str, float]:
    """Return how many probabilities there are, how many are above 0, and their quartiles."""
    quartiles = np.quantile(probabilities, [0.0, 0.25, 0.5, 0.75, 1.0])
    names = ("smallest", "lower_quartile", "median", "upper_quartile", "largest")
    summary: dict[str, float] = {
        "clients": len(probabilities),
        "available": int(np.count_nonzero(probabilities)),
    }
    for name, value in zip(names, quartiles.tolist(), strict=True):
        summary[name] = round(value, 6)
    return summary


def _count_arrived(verdicts: Sequence[Verdict]) -> int:
    return sum(verdict.status == "arrived" for verdict in verdicts)
