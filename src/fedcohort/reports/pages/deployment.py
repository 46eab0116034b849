"""What a page shows of a Flower run: its journal, one line per round."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.lab import folder as rundir
from fedcohort.lab.recorder import Allocations
from fedcohort.reports.findings import Findings, Scheme
from fedcohort.reports.pages.comparison import environment

CERTAIN = 1 - 1e-6  # the journal keeps six digits
ROUNDS = 100


def findings(folder: Path) -> Findings:
    """Return what the journal of a Flower run says; one without a round is refused."""
    rows = rundir.load_journal(folder)
    if not rows:
        raise ValueError(f"{folder} must hold at least one round in rounds.jsonl, got none yet")
    about, fates = rundir.read_about(folder), came_of(rows)
    names = sorted(fates)
    counts = np.array([[sum(fates[name].values()) for name in names]], dtype=np.int64)
    scheme = Scheme(
        seeds=(0,),
        asked=np.array([[float(len(row["asked"])) for row in rows]]),
        successes=np.array([[float(row["arrived"]) for row in rows]]),
        counts=counts,
        seconds=np.array([[float(row["seconds"]) for row in rows]]),
    )
    return Findings(
        title=f"Flower run: {len(rows)} rounds, {len(names)} clients",
        kinds={"this run": {"this run": scheme}},
        tables={"Clients": [_client(name, fates[name]) for name in names]},
        allocations=_allocations(rows, names),
        outcomes=fates,
        client_names=names,
        lead=[_lead(rows, about)],
        settings=about,
        environment=environment(folder),
    )


def _lead(rows: list[dict[str, Any]], about: dict[str, Any]) -> str:
    played = f"{len(rows)} rounds took {sum(row['seconds'] for row in rows):,.0f} s."
    wanted = about.get("rounds")
    unfinished = isinstance(wanted, int) and rows[-1]["round"] < wanted
    return played + (f" Not finished: {wanted} rounds were asked for." if unfinished else "")


def came_of(rows: list[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Return how often each client that was known came to what, by name; those never asked have nothing."""
    fates: dict[str, Counter[str]] = {
        name: Counter() for row in rows for name in row["probabilities"] or ()
    }
    for row in rows:
        for one in row["asked"]:
            fates.setdefault(one["client"], Counter())[one["status"]] += 1
    return dict(sorted(fates.items()))


def _client(name: str, came: Counter[str]) -> dict[str, Any]:
    asked = sum(came.values())
    rest = ", ".join(f"{word} {times}" for word, times in sorted(came.items()) if word != "arrived")
    ratio = came["arrived"] / asked if asked else float("nan")
    return {
        "client": name,
        "asked": asked,
        "arrived": came["arrived"],
        "success ratio": ratio,
        "otherwise": rest or "-",
    }


def _allocations(rows: list[dict[str, Any]], names: list[str]) -> dict[str, Allocations]:
    """Return the probabilities of about a hundred rounds, where the selector could say; 0 for a client that was not there."""
    told = [row for row in rows if row["probabilities"]]
    told = told[:: -(-len(told) // ROUNDS)] if told else []
    if not told:
        return {}
    inclusion = np.array(
        [[float(row["probabilities"].get(name, 0.0)) for name in names] for row in told]
    )
    rounds = np.array([int(row["round"]) - 1 for row in told], dtype=np.int64)
    return {"this run": Allocations(rounds, inclusion, inclusion >= CERTAIN)}
