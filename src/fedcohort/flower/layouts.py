"""The layout of replies: which records and metrics they hold, and which layout is usual.

Strategies can average only replies of one layout. The usual layout is the one of most replies of a
round. If most do not agree, it is the one of the rounds before. One client alone never decides
what is usual.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from flwr.app import Message, MetricRecord, RecordDict

Key = TypeVar("Key")
SINGLE = -1  # the length of a metric that is one number, not a list


@dataclass(frozen=True, order=True)
class Layout:
    """Names of the records in a reply, and its metrics.

    Attributes:
        arrays: Name of the record of arrays; empty if there is none.
        metrics: Name of the record of metrics.
        lengths: Name of each metric and the length of its list, sorted.
    """

    arrays: str
    metrics: str
    lengths: tuple[tuple[str, int], ...]


def layout_of(content: RecordDict) -> Layout:
    """Return the layout of a reply that has passed all checks."""
    (metric_name, record), *_ = content.metric_records.items()
    lengths = []
    for name, value in record.items():
        lengths.append((name, len(value) if isinstance(value, list) else SINGLE))
    return Layout(
        arrays=next(iter(content.array_records), ""),
        metrics=metric_name,
        lengths=tuple(sorted(lengths)),
    )


def arrange(content: RecordDict, layout: Layout) -> RecordDict:
    """Return a reply in a layout, with the metrics of that layout only."""
    record = next(iter(content.metric_records.values()))
    metrics = {name: record[name] for name, _ in layout.lengths}
    arranged = RecordDict(dict(content.config_records))
    for arrays in content.array_records.values():
        arranged[layout.arrays] = arrays
    arranged[layout.metrics] = MetricRecord(metrics)
    return arranged


class UsualLayout:
    """Remembers the layout that replies usually have.

    Attributes:
        usual: The layout of the last majority; None as long as no majority has agreed on one.
    """

    def __init__(self) -> None:
        self.usual: Layout | None = None

    def choose(self, layouts: Sequence[Layout]) -> Layout | None:
        """Return the layout that replies of this round must have.

        A majority replaces what was usual, so that one client with the old layout does not reject
        all others. Without a majority, and if no reply has the usual layout, None is returned: the
        replies are reduced to what they have in common, and nobody is to be rejected.

        Args:
            layouts: The layout of each valid reply of the round, one for each client.
        """
        majority = _majority(layouts)
        if majority is not None:
            self.usual = majority
        return self.usual if self.usual in layouts else None

    def state_dict(self) -> dict[str, Any]:
        """Return the usual layout as plain values."""
        if self.usual is None:
            return {}
        return {
            "arrays": self.usual.arrays,
            "metrics": self.usual.metrics,
            "names": [name for name, _ in self.usual.lengths],
            "lengths": [length for _, length in self.usual.lengths],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the usual layout; an empty state is that of a run without one."""
        self.usual = None
        if state:
            lengths = zip(map(str, state["names"]), map(int, state["lengths"]), strict=True)
            self.usual = Layout(str(state["arrays"]), str(state["metrics"]), tuple(lengths))


def arrange_replies(replies: dict[Key, Message], usual: UsualLayout) -> list[Key]:
    """Give all replies one layout; return the keys of those that do not have the usual one."""
    if not replies:
        return []
    layouts = {key: layout_of(reply.content) for key, reply in replies.items()}
    wanted = usual.choose(list(layouts.values()))
    if wanted is not None:
        return [key for key, layout in layouts.items() if layout != wanted]

    common = common_layout(layouts.values())
    for reply in replies.values():
        reply.content = arrange(reply.content, common)
    return []


def common_layout(layouts: Iterable[Layout]) -> Layout:
    """Return the layout of what all replies have in common, under the most frequent names."""
    layouts = list(layouts)
    counts = Counter(layouts)
    model = min(counts, key=lambda layout: (-counts[layout], layout))
    common = set(model.lengths)
    for layout in layouts:
        common &= set(layout.lengths)
    return Layout(model.arrays, model.metrics, tuple(sorted(common)))


def _majority(layouts: Sequence[Layout]) -> Layout | None:
    """Return the layout of more than half of the clients, at least two; None if there is none."""
    for layout, count in Counter(layouts).most_common(1):
        if count >= 2 and 2 * count > len(layouts):
            return layout
    return None
