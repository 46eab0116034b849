"""Clients that are not unreliable but broken: they answer, and every update is rejected."""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from fedcohort.advice.log import FederationLog
from fedcohort.advice.wording import printable

REJECTED = "rejected"
LEAST_ASKED = 3  # questions after which a client without a valid answer is named
MOST_NAMED = 5
LONGEST_REASON = 100  # characters


def broken_clients(log: FederationLog) -> list[int]:
    """Return the clients whose updates were all rejected, by their places in the log.

    Args:
        log: The log.
    """
    rejected = np.bincount(log.client[log.status == REJECTED], minlength=log.num_clients)
    is_broken = (rejected >= LEAST_ASKED) & (rejected == log.asked_of_client)
    return [int(place) for place in np.flatnonzero(is_broken)]


def describe_broken(log: FederationLog) -> list[str]:
    """Return a sentence for each client whose updates were all rejected; of many, for a few.

    Args:
        log: The log.
    """
    said = []
    broken = broken_clients(log)
    for client in broken[:MOST_NAMED]:
        name = printable(log.clients[client])
        reason = log.rejections.get(log.clients[client], "")
        words = f" ({reason})" if reason else ""
        times = int(log.asked_of_client[client])
        said.append(f"{name}: all {times} updates were rejected as invalid{words}: repair it.")
    if len(broken) > MOST_NAMED:
        said.append(f"So were all updates of {len(broken) - MOST_NAMED} more clients.")
    return said


def common_reasons(rows: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """Return why updates of clients were rejected, the most frequent reason of each.

    Args:
        rows: What became of each question, as a journal has it.
    """
    counts: dict[str, Counter[str]] = {}
    for asked in rows:
        reason = asked.get("reason")
        if asked["status"] == REJECTED and isinstance(reason, str) and reason:
            counts.setdefault(str(asked["client"]), Counter())[reason] += 1
    reasons = {}
    for client, of_client in counts.items():
        reason = of_client.most_common(1)[0][0][:LONGEST_REASON]
        reasons[client] = printable(" ".join(reason.split()))
    return reasons
