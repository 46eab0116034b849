"""What must hold after an episode, worked out from its journal, its checkpoint and its marks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chaos.episode import Evidence
from chaos.federation import node_config
from chaos.schedule import CLIENTS, COHORT, DEADLINE, ROUNDS, UNACCEPTABLE
from fedcohort import Federation, Outcome, make_selector

SLACK = 2.0  # seconds
STOPS = ("link-stop", "link-stop-long", "server-stop")

HUNG_ROUNDS = "hung rounds"
LATE_ROUNDS = "rounds over deadline + 2 s"
BAD_UPDATES = "bad updates accepted"
HONEST_REJECTED = "honest updates rejected"
ENDED_BY_CLIENT = "runs ended by a client"
UNFINISHED = "runs not completed in the end"
PROCESSES_LEFT = "processes left"
STATE_DIFFERS = "selector states that differ from a replay"
MODEL_DIFFERS = "models that differ from the journal"
INVARIANTS = (
    HUNG_ROUNDS,
    LATE_ROUNDS,
    BAD_UPDATES,
    HONEST_REJECTED,
    ENDED_BY_CLIENT,
    UNFINISHED,
    PROCESSES_LEFT,
    STATE_DIFFERS,
    MODEL_DIFFERS,
)

Violations = dict[str, list[str]]


def check(evidence: Evidence) -> tuple[Violations, list[str]]:
    """Return the violations by invariant, and the late rounds that a stop excuses."""
    late, excused = _late_rounds(evidence)
    bad, rejected = _wrong_verdicts(evidence)
    violations = {
        HUNG_ROUNDS: evidence.hung,
        LATE_ROUNDS: late,
        BAD_UPDATES: bad,
        HONEST_REJECTED: rejected,
        ENDED_BY_CLIENT: _runs_ended_by_clients(evidence),
        UNFINISHED: _unfinished(evidence),
        PROCESSES_LEFT: evidence.left,
        STATE_DIFFERS: _as_list(replay_difference(evidence)),
        MODEL_DIFFERS: _as_list(model_difference(evidence)),
    }
    return violations, excused


def _late_rounds(evidence: Evidence) -> tuple[list[str], list[str]]:
    late = []
    excused = []
    for row in evidence.rows:
        if row["seconds"] <= DEADLINE + SLACK:
            continue
        text = f"round {row['round']} took {row['seconds']:g} s"
        begin = row["seen_at"] - row["seconds"]
        stops = _stops_during(evidence.events, begin, row["seen_at"])
        if row["seconds"] - sum(stops.values()) <= DEADLINE + SLACK:
            excused.append(f"{text}: {', '.join(stops)}")
        else:
            late.append(text)
    return late, excused


def _stops_during(events: Sequence[dict[str, Any]], begin: float, end: float) -> dict[str, float]:
    """Return how long the SuperLink or the ServerApp was stopped in a span of time, by kind."""
    stops: dict[str, float] = {}
    for event in events:
        overlap = min(event.get("end", end), end) - max(event["begin"], begin)
        if event["done"] and event["kind"] in STOPS and overlap > 0:
            stops[event["kind"]] = stops.get(event["kind"], 0.0) + overlap
    return stops


def _wrong_verdicts(evidence: Evidence) -> tuple[list[str], list[str]]:
    """Return bad updates that were accepted, and honest ones that were rejected."""
    harms: dict[tuple[int, str], str] = {}
    for round, client, harm in evidence.marks:
        harms[round, client] = harm

    bad = []
    rejected = []
    for row in evidence.rows:
        for asked in row["asked"]:
            harm = harms.get((row["round"], asked["client"]), "")
            text = f"round {row['round']}, client {asked['client']}, {harm or 'honest'}"
            if harm in UNACCEPTABLE and asked["status"] == "arrived":
                bad.append(text)
            if not harm and asked["status"] == "rejected":
                rejected.append(f"{text}: {asked['reason']}")
    return bad, rejected


def _runs_ended_by_clients(evidence: Evidence) -> list[str]:
    ended = []
    for attempt in evidence.attempts:
        if attempt["ended_by"] == "client":
            ended.append(f"run {attempt['id']} {attempt['status']}: {attempt['log'][-600:]}")
    return ended


def _unfinished(evidence: Evidence) -> list[str]:
    attempt = evidence.attempts[-1]
    if attempt["status"] == "finished:completed" and len(evidence.rows) == ROUNDS:
        return []
    return [f"{attempt['status']} after {len(evidence.rows)} rounds: {attempt['log'][-600:]}"]


def replay_difference(evidence: Evidence) -> str:
    """Return how the saved selector differs from a new one with the same outcomes."""
    state = evidence.state
    if state is None or not evidence.rows:
        return ""
    names = state["registry"]["names"]
    federation = Federation(CLIENTS, COHORT, rng=evidence.episode.run_seed, horizon=ROUNDS)
    selector = make_selector("e3cs-0.5", federation)

    for row in evidence.rows[: state["round"]]:
        newcomers = len(row["probabilities"]) - selector.num_clients
        if newcomers > 0:
            selector.join(newcomers)
        there = [name for name, probability in row["probabilities"].items() if probability > 0]
        indices = np.array([names.index(name) for name in there], dtype=np.int64)
        available = None if len(indices) == selector.num_clients else indices
        cohort = selector.select(row["round"] - 1, available)
        asked = [entry["client"] for entry in row["asked"]]
        drawn = [names[index] for index in cohort.clients.tolist()]
        if drawn != asked:
            return f"round {row['round']} asked {asked}, a replay asks {drawn}"
        if any(entry["status"] == "unknown" for entry in row["asked"]):
            continue  # the SuperLink had trouble, so the selector learns nothing
        arrived = [entry["status"] == "arrived" for entry in row["asked"]]
        selector.update(Outcome(cohort, np.array(arrived, dtype=np.bool_)))

    if not np.array_equal(state["selector"]["log_weights"], selector.log_weights):
        return f"log-weights after round {state['round']}"
    if str(state["selector"]["rng"]) != str(selector.state_dict()["rng"]):
        return f"generator after round {state['round']}"
    return ""


def model_difference(evidence: Evidence) -> str:
    """Return how the saved model differs from FedAvg by hand on those who arrived."""
    state = evidence.state
    if state is None:
        return ""
    expected = 0.0
    for row in evidence.rows[: state["round"]]:
        arrived = [entry["client"] for entry in row["asked"] if entry["status"] == "arrived"]
        configs = [node_config(client) for client in arrived]
        examples = sum(config["examples"] for config in configs)
        if configs:
            step = sum(config["number"] * config["examples"] for config in configs)
            expected += step / examples
    model = state["model"]["w"]
    if np.allclose(model, expected, rtol=2e-6, atol=0.0):
        return ""
    return f"expected {expected:.9g}, got {model.tolist()}"


def _as_list(text: str) -> list[str]:
    return [text] if text else []
