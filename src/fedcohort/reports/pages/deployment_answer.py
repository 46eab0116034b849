"""The answer of a Flower run: what arrived, what did not and why, who is left out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.answer import Answer, LeftOut, MarkedTable
from fedcohort.reports.charts.arrivals import arrivals_over_rounds
from fedcohort.reports.words import counted, listed, percent

ARRIVED = "arrived"
REJECTED = "rejected"
NOT_COUNTED = ("unknown", "unneeded")  # neither a success nor a failure of a client
REASONS = {
    "lost": "never answered",
    "stopped": "not done at the deadline",
    "failed": "ended in an error",
    "rejected": "came, but invalid",
    "unknown": "outcome unknown",
    "unneeded": "not waited for",
}
IN_SENTENCES = {"stopped": "missed the deadline"}  # where the reason has no verb
MAX_ROWS = 20  # clients in the table of the first screen
MAX_NAMED = 5
MIN_ASKED = 5  # times a client was asked before its share of answers says something
MAX_REASON = 80  # letters of the reason of a rejection

Rounds = Sequence[Mapping[str, Any]]
Outcomes = Mapping[str, Counter[str]]


def deployment_answer(folder: Path, rounds: Rounds, outcomes: Outcomes) -> Answer:
    """Return the answer of a Flower run.

    Args:
        folder: Its run folder, named in what to do next.
        rounds: One entry of the journal per round.
        outcomes: How often each client came to each outcome.
    """
    total: Counter[str] = Counter()
    for times in outcomes.values():
        total.update(times)
    numbers = np.array([float(entry["round"]) for entry in rounds])
    asked = asked_per_round(rounds)
    arrived = np.array([float(entry["arrived"]) for entry in rounds])
    broken = _rejected(rounds, outcomes)
    return Answer(
        sentence=_sentence(total, outcomes, broken),
        basis=[
            f"Then run fedcohort advise {folder}: it computes what to change from this journal."
        ],
        picture=arrivals_over_rounds(numbers, asked, arrived),
        table=_table(rounds, outcomes) if outcomes else None,
        left_out=_left_out(outcomes, broken),
    )


def counted_asks(times: Counter[str]) -> int:
    """Return how often clients were asked, without the outcomes that count for nothing.

    Args:
        times: How often each outcome came about.
    """
    return sum(count for name, count in times.items() if name not in NOT_COUNTED)


def asked_per_round(rounds: Rounds) -> Floats:
    """Return the same for each round, [T]. The journal's success ratio rests on these numbers.

    Args:
        rounds: One entry of the journal per round.
    """
    asked = []
    for entry in rounds:
        asked.append(counted_asks(Counter(one["status"] for one in entry["asked"])))
    return np.array(asked, dtype=np.float64)


def why_not_used(times: Counter[str]) -> str:
    """Return how often a client's update was not used, by reason, the most frequent first.

    Args:
        times: How often the client came to each outcome.
    """
    others = [f"{count} {_reason(name)}" for name, count in times.most_common() if name != ARRIVED]
    return ", ".join(others) or "-"


def _rejected(rounds: Rounds, outcomes: Outcomes) -> dict[str, str]:
    """Return the clients all of whose updates were rejected, with the most frequent reason."""
    reasons: dict[str, Counter[str]] = {}
    for entry in rounds:
        for asked in entry["asked"]:
            if asked["status"] == REJECTED:
                reasons.setdefault(asked["client"], Counter())[asked.get("reason") or ""] += 1
    found = {}
    for name, of_client in reasons.items():
        if not outcomes[name][ARRIVED]:
            found[name] = _one_line(of_client.most_common(1)[0][0])
    return found


def _one_line(reason: str) -> str:
    """Return the first line of a reason, cut where it is too long for a sentence."""
    line = reason.strip().split("\n")[0].replace(". ", "; ").rstrip(".")
    return line if len(line) <= MAX_REASON else f"{line[: MAX_REASON - 1]}…"


def _sentence(total: Counter[str], outcomes: Outcomes, broken: Mapping[str, str]) -> str:
    """Say how many answers arrived, why most others did not, and whom to look after."""
    asked = counted_asks(total)
    if not total:
        return "No client was asked yet."
    if not asked:
        return f"Clients were asked {counted(total.total(), 'time')}, and no outcome counts yet."
    text = f"{percent(total[ARRIVED] / asked)} of {counted(asked, 'answer')} arrived"
    losses = Counter({name: count for name, count in total.items() if _is_loss(name)})
    if not losses:
        return f"{text}, and none was lost."
    text += f"; {_most_losses(losses, none_arrived=not total[ARRIVED])}"
    silent = _silent(outcomes)
    if broken:
        text += f": repair {_named(list(broken))}, {_all_rejected(outcomes, broken)}"
    elif silent:
        text += f": look after {_named(silent)}, who never got an update through"
    return f"{text}."


def _most_losses(losses: Counter[str], *, none_arrived: bool) -> str:
    """Say why most of the answers that did not arrive are missing."""
    ((main, most),) = losses.most_common(1)
    reason = IN_SENTENCES.get(main, _reason(main))
    total = losses.total()
    one, others, all_others = "the other one", f"the {total:,} others", f"all {total:,} others"
    if none_arrived:
        one, others, all_others = "it", "them", "all of them"
    if total == 1:
        return f"{one} {reason}"
    if most == total:
        return f"{all_others} {reason}"
    return f"{most:,} of {others} {reason}"


def _all_rejected(outcomes: Outcomes, broken: Mapping[str, str]) -> str:
    """Say that every update of these clients was rejected, and why if all share the reason."""
    number = sum(outcomes[name][REJECTED] for name in broken)
    reasons = set(broken.values())
    why = f" ({reasons.pop()})" if len(reasons) == 1 and "" not in reasons else ""
    if number == 1:
        return f"whose one update was rejected{why}"
    return f"whose {number:,} updates were all rejected{why}"


def _table(rounds: Rounds, outcomes: Outcomes) -> MarkedTable:
    """Return the clients with the smallest share of answers first."""
    seconds: dict[str, list[float]] = {}
    for entry in rounds:
        for asked in entry["asked"]:
            if asked["status"] == ARRIVED and asked.get("seconds") is not None:
                seconds.setdefault(asked["client"], []).append(float(asked["seconds"]))
    order = sorted(outcomes, key=lambda name: (*_rank(outcomes[name]), name))
    rows = []
    for name in order[:MAX_ROWS]:
        times = outcomes[name]
        asked_times = counted_asks(times)
        share = "-" if not asked_times else percent(times[ARRIVED] / asked_times)
        took = "-" if name not in seconds else f"{median(seconds[name]):.3g}"
        rows.append(
            {
                "client": name,
                "asked": f"{asked_times:,}",
                "arrived": f"{times[ARRIVED]:,}",
                "success ratio": share,
                "median seconds": took,
                "not used": f"{_losses(times):,}",
                "why": why_not_used(times),
            }
        )
    note = (
        "The smallest share of answers first; clients asked fewer than "
        f"{MIN_ASKED} times last. Median seconds: of the answers that arrived."
    )
    not_counted = sum(times.total() - counted_asks(times) for times in outcomes.values())
    if not_counted:
        note += f" Not counted as asked: {not_counted:,} without an outcome, or not waited for."
    if len(order) > MAX_ROWS:
        note += f" {MAX_ROWS} of {len(order):,} clients; more are in the tables below."
    return MarkedTable("Clients", rows, note=note)


def _rank(times: Counter[str]) -> tuple[bool, float]:
    """Return the place of a client in the table: those asked too seldom come last."""
    asked = counted_asks(times)
    return asked < MIN_ASKED, times[ARRIVED] / max(1, asked)


def _left_out(outcomes: Outcomes, broken: Mapping[str, str]) -> LeftOut | None:
    """Say who was never asked, who never answered, and whose updates count most."""
    if not outcomes:
        return None
    arrived = {name: times[ARRIVED] for name, times in outcomes.items()}
    never_asked = [name for name, times in outcomes.items() if not times.total()]
    undecided = [name for name, times in outcomes.items() if times and not counted_asks(times)]
    silent = [name for name in _silent(outcomes) if name not in broken]
    sentences = []
    if never_asked:
        sentences.append(f"Never asked: {_named(never_asked)}.")
    if broken:
        sentences.append(f"Came, but invalid every time: {_named(list(broken))}.")
    if silent:
        sentences.append(f"Asked, but never with an update in time: {_named(silent)}.")
    if undecided:
        sentences.append(f"Asked, but with no outcome that counts: {_named(undecided)}.")
    if all(arrived.values()):
        sentences.append("Every client was asked, and every client got an update through.")
    total = sum(arrived.values())
    if total and len(arrived) > 1:
        half = sorted(arrived.values())[: len(arrived) // 2]
        sentences.append(
            "The half of the clients that got the fewest updates through made "
            f"{percent(sum(half) / total)} of all updates used."
        )
    return LeftOut(sentences=sentences)


def _silent(outcomes: Outcomes) -> list[str]:
    """Return who was asked and never got an update through."""
    return [name for name, times in outcomes.items() if counted_asks(times) and not times[ARRIVED]]


def _losses(times: Counter[str]) -> int:
    return sum(count for name, count in times.items() if _is_loss(name))


def _is_loss(outcome: str) -> bool:
    return outcome != ARRIVED and outcome not in NOT_COUNTED


def _reason(outcome: str) -> str:
    return REASONS.get(outcome, outcome)


def _named(names: Sequence[str]) -> str:
    """Return clients by name, or their number if they are many."""
    if len(names) > MAX_NAMED:
        return counted(len(names), "client")
    plural = "client" if len(names) == 1 else "clients"
    return f"{plural} {listed(names)}"
