"""The first screen of a page: one sentence, one picture, one table, and who is left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedcohort.reports.charts.specification import Chart

BEST = "best"
TIED = "tied"
HIGHEST = "highest"  # where another row is the best choice


@dataclass(frozen=True, eq=False)
class MarkedTable:
    """A table whose first rows are the answer.

    Attributes:
        title: Its caption.
        rows: The rows, the one that matters most first. The keys of the first are the header.
        marks: `BEST`, `TIED` or `HIGHEST` for the rows that are marked, by place.
        note: What the order and the marks mean.
    """

    title: str
    rows: Sequence[Mapping[str, Any]]
    marks: Mapping[int, str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Whom a run serves worst.

    Attributes:
        title: Heading of the section.
        sentences: What was found, in words.
        picture: The same as a chart.
        table: The same in numbers.
    """

    title: str = "Who is left out"
    sentences: Sequence[str] = ()
    picture: Chart | None = None
    table: MarkedTable | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """What a reader should do or know, before anything else.

    Attributes:
        sentence: The recommendation, in one sentence.
        basis: What it rests on and how sure it is.
        picture: The one chart that shows it.
        table: The numbers, in the order of what matters.
        left_out: Whom it serves worst.
        to_paste: Settings to copy, by title.
        highlighted: Names that all figures of the page highlight, at most four.
    """

    sentence: str
    basis: Sequence[str] = ()
    picture: Chart | None = None
    table: MarkedTable | None = None
    left_out: LeftOut | None = None
    to_paste: Mapping[str, str] = field(default_factory=dict)
    highlighted: Sequence[str] = ()
