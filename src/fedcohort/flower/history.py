"""What earlier rounds teach about replies: their layout, and how large honest ones are."""

from collections.abc import Mapping
from math import inf
from statistics import median_low
from typing import Any

from fedcohort.flower.backoff import BackOff
from fedcohort.flower.layouts import UsualLayout

MOST_CLIENTS = 100  # whose last values are kept
LEAST_CLIENTS = 3  # fewer define no median


class RecentMedian:
    """The last value of each of the clients that were accepted last, and their median.

    Each client counts once, however often it is asked, so that no client decides alone.
    """

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def bound(self, factor: float, values: Mapping[str, float], least: float = 0.0) -> float:
        """Return a multiple of the median, infinite if too few clients have one.

        If all clients begin to take larger steps together, the median of this round is larger than
        the one before, and decides.

        Args:
            factor: The multiple.
            values: The values of this round by client.
            least: A smaller median counts as this one.
        """
        medians = []
        for known in (self.values, values):
            if len(known) >= LEAST_CLIENTS:
                medians.append(median_low(known.values()))
        if not medians or factor == inf:
            return inf
        largest = max(least, *medians)
        return inf if largest == 0 else factor * largest

    def add(self, values: Mapping[str, float], bound: float) -> None:
        """Remember the values of a round; those beyond the bound as the bound.

        Values beyond the bound are not forgotten, because honest clients may take larger steps from
        some round on. Cut to the bound, a few of them do not move the median.
        """
        for client, value in values.items():
            self.values.pop(client, None)
            self.values[client] = min(value, bound)
        for client in list(self.values)[:-MOST_CLIENTS]:
            del self.values[client]

    def state_dict(self) -> dict[str, Any]:
        """Return clients and values as plain lists."""
        return {"clients": list(self.values), "values": list(self.values.values())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the values; an empty state is that of a run without any."""
        values = map(float, state.get("values", []))
        self.values = dict(zip(map(str, state.get("clients", [])), values, strict=True))


class ReplyHistory:
    """What the server remembers of replies, from round to round.

    Attributes:
        training: The usual layout of training replies.
        evaluation: The usual layout of evaluation replies.
        norms: Distances of returned models from the model sent.
        examples: Declared numbers of examples.
        losses: Absolute values of reported losses.
        evaluation_examples: Numbers of examples that were declared with evaluations.
        evaluation_rests: Who is not asked to evaluate for a while.
    """

    def __init__(self) -> None:
        self.training = UsualLayout()
        self.evaluation = UsualLayout()
        self.norms = RecentMedian()
        self.examples = RecentMedian()
        self.losses = RecentMedian()
        self.evaluation_examples = RecentMedian()
        self.evaluation_rests = BackOff()

    def state_dict(self) -> dict[str, Any]:
        """Return all as plain values."""
        return {name: part.state_dict() for name, part in vars(self).items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore all; a checkpoint of an older version holds nothing."""
        for name, part in vars(self).items():
            part.load_state_dict(state.get(name, {}))
