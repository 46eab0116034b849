"""What a node answers when it is asked which client it is: name, properties and clock."""

import logging
from typing import Any

from flwr.app import RecordDict

log = logging.getLogger("flwr.fedcohort")
CLOCK_DIFFERENCE = 5.0  # seconds between the clocks of a client and the server: worth a warning
LONGEST_NAME = 200  # characters
MOST_PROPERTIES = 100  # of one node


def name_in(content: RecordDict) -> str:
    """Return the name in an answer, empty if there is none that can be used."""
    record = content.config_records.get("identity")
    if not record:
        return ""
    name = str(record.get("name", ""))
    if len(name) > LONGEST_NAME or not name.isprintable():
        return ""
    return name


def properties_in(content: RecordDict) -> dict[str, Any]:
    """Return the properties in an answer: short texts and numbers by short names."""
    record = content.config_records.get("properties")
    if not record or len(record) > MOST_PROPERTIES:
        return {}
    properties = {}
    for name, value in record.items():
        is_short = len(name) <= LONGEST_NAME
        if isinstance(value, str):
            is_short = is_short and len(value) <= LONGEST_NAME and value.isprintable()
        if is_short and isinstance(value, str | int | float | bool):
            properties[name] = value
    return properties


def compare_clocks(name: str, created_at: float, elapsed: float, answered_at: float) -> None:
    """Warn if a client's clock is ahead of the server's, or behind.

    The client wrote its answer after the question and before now, by a clock like ours.

    Args:
        name: The client's name.
        created_at: When the question was written, by the server's clock.
        elapsed: Seconds from the question until now.
        answered_at: When the answer was written, by the client's clock.
    """
    ahead = answered_at - (created_at + elapsed)
    behind = created_at - answered_at
    if ahead > CLOCK_DIFFERENCE:
        log.warning(
            "client %s has a clock that is at least %.0f s ahead of the server's: it has so "
            "much less time in each round",
            name,
            ahead,
        )
    elif behind > CLOCK_DIFFERENCE:
        log.warning(
            "client %s has a clock that is at least %.0f s behind the server's: it stops so "
            "much too late, and its answer is then lost",
            name,
            behind,
        )
