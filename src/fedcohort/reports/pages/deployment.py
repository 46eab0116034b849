"""The page of a Flower run, from its journal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, TypeAlias

import numpy as np

from fedcohort.lab.deployment import Deployment
from fedcohort.lab.recorder import Allocations
from fedcohort.reports.findings import Findings, SchemeResults
from fedcohort.reports.pages.deployment_answer import (
    asked_per_round,
    counted_asks,
    deployment_answer,
    why_not_used,
)
from fedcohort.reports.words import counted

NAME = "this run"  # of the one kind and of the one scheme
ALMOST_ONE = 1 - 1e-6  # the journal has six digits
MAX_ROUNDS = 100  # in the heat map

Rounds: TypeAlias = Sequence[Mapping[str, Any]]  # one entry of the journal per round


def findings(deployment: Deployment) -> Findings:
    """Return what the page of a Flower run shows.

    Args:
        deployment: The run, loaded from its run folder.

    Raises:
        ValueError: If no round was played yet.
    """
    rounds = deployment.rounds
    if not rounds:
        raise ValueError(
            f"{deployment.folder} must hold at least one round in rounds.jsonl, got none yet"
        )
    outcomes = count_outcomes(rounds)
    clients = list(outcomes)
    return Findings(
        title=_title(deployment.about, len(rounds), len(clients)),
        kinds={NAME: {NAME: _scheme(rounds, outcomes)}},
        answer=deployment_answer(deployment.folder, rounds, outcomes),
        tables={"Clients": [_client_row(name, outcomes[name]) for name in clients]},
        allocations=_allocations(rounds, clients),
        outcomes=outcomes,
        client_names=clients,
        lead=[_lead(rounds, deployment.about)],
        settings=deployment.about,
        environment=deployment.environment,
    )


def count_outcomes(rounds: Rounds) -> dict[str, Counter[str]]:
    """Return how often each client came to each outcome, by client in alphabetical order.

    Clients that were never asked have no outcomes.

    Args:
        rounds: One entry of the journal per round.
    """
    outcomes: dict[str, Counter[str]] = {}
    for entry in rounds:
        for client in entry["probabilities"] or ():
            outcomes.setdefault(client, Counter())
        for asked in entry["asked"]:
            outcomes.setdefault(asked["client"], Counter())[asked["status"]] += 1
    return dict(sorted(outcomes.items()))


def _title(about: Mapping[str, Any], num_rounds: int, num_clients: int) -> str:
    """Name the selector, if it is known, and the size of the run."""
    selector = about.get("selector")
    who = f"{selector}, " if isinstance(selector, str) and selector else ""
    size = f"{counted(num_rounds, 'round')}, {counted(num_clients, 'client')}"
    return f"Flower run: {who}{size}"


def _lead(rounds: Rounds, about: Mapping[str, Any]) -> str:
    """Say how long the run took, and whether it is finished."""
    seconds = sum(entry["seconds"] for entry in rounds)
    text = f"{counted(len(rounds), 'round')} took {seconds:,.0f} s."
    wanted = about.get("rounds")
    if isinstance(wanted, int) and rounds[-1]["round"] < wanted:
        text += f" Not finished: {wanted:,} rounds were asked for."
    return text


def _scheme(rounds: Rounds, outcomes: Mapping[str, Counter[str]]) -> SchemeResults:
    """Return the run as one scheme with one seed."""
    times_asked = [times.total() for times in outcomes.values()]
    return SchemeResults(
        seeds=(0,),
        asked=asked_per_round(rounds)[None],
        successes=np.array([[float(entry["arrived"]) for entry in rounds]]),
        counts=np.array([times_asked], dtype=np.int64),
        seconds=np.array([[float(entry["seconds"]) for entry in rounds]]),
    )


def _client_row(name: str, outcomes: Counter[str]) -> dict[str, Any]:
    asked = counted_asks(outcomes)
    arrived = outcomes["arrived"]
    return {
        "client": name,
        "asked": asked,
        "arrived": arrived,
        "success ratio": arrived / asked if asked else nan,
        "why": why_not_used(outcomes),
    }


def _allocations(rounds: Rounds, clients: Sequence[str]) -> dict[str, Allocations]:
    """Return the probabilities of about a hundred rounds, if the selector has any.

    A client that was not there in a round has probability 0.
    """
    recorded = [entry for entry in rounds if entry["probabilities"]]
    if not recorded:
        return {}
    step = -(-len(recorded) // MAX_ROUNDS)
    shown = recorded[::step]

    inclusion = np.zeros((len(shown), len(clients)))
    for row, entry in enumerate(shown):
        inclusion[row] = [entry["probabilities"].get(client, 0.0) for client in clients]
    numbers = np.array([int(entry["round"]) - 1 for entry in shown], dtype=np.int64)
    return {NAME: Allocations(numbers, inclusion, inclusion >= ALMOST_ONE)}
