"""What a node answers when it is asked which client it is: its name, and properties."""

from typing import Any

from flwr.app import RecordDict

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
