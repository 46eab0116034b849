"""Who may take part at all: by name, by properties of the node, or by a function."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from fedcohort.flower.text import describe_error

log = logging.getLogger("flwr.fedcohort")
SCALARS = (str, bool, int, float)  # what a node's configuration holds
COLLECTIONS = (list, tuple, set, frozenset)


@dataclass(frozen=True)
class ClientInfo:
    """What the server knows of a client before it asks it.

    Attributes:
        name: The name under which the client is known.
        properties: What its node tells of its configuration, see `client_app(properties=...)`.
    """

    name: str
    properties: Mapping[str, Any] = field(default_factory=dict)


Eligible = Collection[str] | Mapping[str, Any] | Callable[[ClientInfo], bool]


class Eligibility:
    """Decides who may be asked.

    Args:
        eligible: Names, in which * stands for anything; or properties with the value that each must
            have, or a list of values of which it must have one; or a function of a `ClientInfo`.
            None lets everyone take part.

    Attributes:
        needs_properties: Whether nodes must be asked for their properties.

    Raises:
        ValueError: If it is neither.
    """

    def __init__(self, eligible: Eligible | None = None) -> None:
        if isinstance(eligible, str) or not _is_usable(eligible):
            raise ValueError(
                "eligible must be names of clients, properties of nodes with their values, or a "
                f"function, got {eligible!r}"
            )
        self.eligible = eligible
        self.needs_properties = callable(eligible) or isinstance(eligible, Mapping)
        self._reported: set[str] = set()  # clients on which the function failed

    def admits(self, client: ClientInfo) -> bool:
        """Return whether a client may be asked; one on which the function fails may not."""
        eligible = self.eligible
        if eligible is None:
            return True
        if isinstance(eligible, Mapping):
            wanted = eligible.items()
            return all(_has_value(client.properties, key, value) for key, value in wanted)
        if not callable(eligible):
            return any(fnmatchcase(client.name, pattern) for pattern in eligible)
        try:
            return bool(eligible(client))
        except Exception as error:  # it reads what clients tell, and they must not end the run
            if client.name not in self._reported:
                self._reported.add(client.name)
                reason = describe_error(error)
                log.warning("client %s is not asked: eligible fails: %s", client.name, reason)
            return False


def _has_value(properties: Mapping[str, Any], key: str, wanted: Any) -> bool:
    """Return whether a property is there and has the wanted value, or one of several."""
    if key not in properties:
        return False
    values = wanted if isinstance(wanted, COLLECTIONS) else [wanted]
    return any(properties[key] == value for value in values)


def _is_usable(eligible: Any) -> bool:
    if eligible is None or callable(eligible):
        return True
    if isinstance(eligible, Mapping):
        has_names = all(isinstance(key, str) for key in eligible)
        return len(eligible) > 0 and has_names and all(map(_is_value, eligible.values()))
    is_collection = isinstance(eligible, Collection)
    return is_collection and len(eligible) > 0 and all(isinstance(name, str) for name in eligible)


def _is_value(value: Any) -> bool:
    """Return whether a property can have this value, or one of these."""
    if isinstance(value, COLLECTIONS):
        return len(value) > 0 and all(isinstance(one, SCALARS) for one in value)
    return isinstance(value, SCALARS)
