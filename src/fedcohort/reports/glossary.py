"""The words of the page that a newcomer may not know, each with a definition.

`html.terms` marks them in every text of the page. To add a word, add a line here.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A word and what it means.

    Attributes:
        word: The word as the list of words shows it.
        meaning: One or two sentences that need no other word of this list.
        pattern: Regular expression of its forms in a text.
    """

    word: str
    meaning: str
    pattern: str


TERMS = (
    Term(
        "aggregation rule",
        "How the server combines the updates that arrived into the next model.",
        r"aggregation rules?|aggregations?",
    ),
    Term(
        "paper rule",
        "Weighs each update by its client's share of all data. Missing clients count as the "
        "current model, so steps get shorter when many fail.",
        r"paper rule",
    ),
    Term(
        "normalised rule",
        "Averages the updates that arrived, so that steps are as long as if nobody had failed.",
        r"normalised rule",
    ),
    Term(
        "uniform selection",
        "Asks clients at random, each with the same probability. The settings call it random.",
        r"uniform selection|uniform(?!ly)",
    ),
    Term(
        "E3CS",
        "The paper's selector. It learns who answers and asks them more often, but guarantees "
        "every client a share of the requests.",
        r"E3CS(?!-)",
    ),
    Term(
        "e3cs-0",
        "The paper's selector without a guaranteed share: it may stop asking clients that fail.",
        r"e3cs-0(?!\.\d)",
    ),
    Term(
        "e3cs-0.5",
        "The paper's selector with a guaranteed share: every client is sure of this part of an "
        "equal share of the requests, here one half.",
        r"e3cs-0\.\d+",
    ),
    Term(
        "e3cs-inc",
        "The paper's selector without a guaranteed share in the first quarter of the rounds, and "
        "with equal shares for all afterwards.",
        r"e3cs-inc",
    ),
    Term(
        "fedcs",
        "Asks those who are most likely to answer, always the same. It is told how likely.",
        r"fedcs",
    ),
    Term(
        "pow-d",
        "Draws some clients at random, and asks those of them that the model serves worst.",
        r"pow-d",
    ),
    Term(
        "random",
        "Asks clients at random, each with the same probability.",
        r"(?<!at )random",
    ),
    Term(
        "quota",
        "The part of a fair share of requests that every client is sure of, between 0 and 1.",
        r"quotas?",
    ),
    Term(
        "cohort",
        "The clients that the server asks to train in one round.",
        r"cohorts?",
    ),
    Term(
        "deadline",
        "The time at which a round ends at the latest. An update that comes later is dropped.",
        r"deadlines?",
    ),
    Term(
        "selector",
        "The method that decides which clients are asked in each round.",
        r"selectors?",
    ),
    Term(
        "CEP",
        "Cumulative effective participation: the number of updates used in all rounds so far.",
        r"CEP",
    ),
    Term(
        "inclusion probability",
        "The probability, before the draw, that a client is asked in a round.",
        r"inclusion probabilit(?:y|ies)|probability of being asked",
    ),
    Term(
        "capped",
        "So likely to be asked that the probability reached 1: the client is certain to be asked.",
        r"capped(?: set)?",
    ),
    Term(
        "success ratio",
        "The share of the updates asked for that arrived in time and were used.",
        r"success ratio",
    ),
    Term(
        "Jain's index",
        "How evenly clients were asked: 1 if all equally often, near 0 if always the same few.",
        r"Jain(?:'s index)?",
    ),
    Term(
        "class of clients",
        "Clients that answer about equally often.",
        r"class(?:es)? of clients|worst class|best class|by class",
    ),
    Term(
        "gap",
        "Percentage points between the class of clients that the model serves best and the one "
        "that it serves worst.",
        r"gap",
    ),
    Term(
        "iid",
        "Every client has the same kind of data, dealt at random.",
        r"(?<!non-)iid",
    ),
    Term(
        "non-iid",
        "Clients have different kinds of data, as in practice.",
        r"non-iid",
    ),
    Term(
        "primary-label",
        "Most samples of a client have one label, which differs from client to client: non-iid.",
        r"primary-label",
    ),
    Term(
        "dirichlet",
        "Labels are dealt to clients in unequal shares, drawn from a Dirichlet distribution: "
        "non-iid.",
        r"dirichlet",
    ),
    Term(
        "seed",
        "The number that fixes all chance in a run. Runs with the same seed meet the same "
        "failures.",
        r"seeds?",
    ),
    Term(
        "world",
        "Who would answer in which round, and after how long, fixed by the seed.",
        r"worlds?",
    ),
    Term(
        "client-trainings asked",
        "How often a client was asked to train, in all rounds so far, whether it answered or not.",
        r"client-trainings asked",
    ),
    Term(
        "virtual seconds",
        "Simulated time. A round lasts until its last answer, or until the deadline if one is "
        "missing.",
        r"virtual (?:seconds|time)",
    ),
    Term(
        "client-seconds",
        "Seconds of work, added up over clients.",
        r"client-seconds",
    ),
    Term(
        "p-value",
        "How often chance would make a difference at least this large if there were no difference. "
        "Below 0.05 we call a difference beyond chance.",
        r"p-values?|p(?=\s=\s)",
    ),
    Term(
        "Holm's method",
        "Makes p-values larger when many things are compared, because the best of many looks good "
        "by chance.",
        r"Holm's method",
    ),
    Term(
        "Student's t",
        "The usual test for a mean of few values, named after its inventor's pen name.",
        r"Student's t",
    ),
    Term(
        "standard deviation",
        "How far single values typically lie from their mean.",
        r"standard deviations?",
    ),
    Term(
        "95 % interval",
        "Made so that it holds the true value in 95 of 100 such cases.",
        r"95\s% intervals?",
    ),
    Term(
        "fitted world",
        "A simulation whose clients fail as those in the log did.",
        r"fitted world|world fitted to the log",
    ),
    Term(
        "resampled log",
        "The recorded rounds themselves, drawn again in another order.",
        r"resampled log|resampled",
    ),
)


def find_terms(text: str) -> list[tuple[int, int, Term]]:
    """Return where terms occur in a text: start, end and term, without overlaps.

    Where two terms could begin at the same place, the longer match counts.

    Args:
        text: Any text.

    Examples:
        >>> [(term.word, start) for start, _, term in find_terms("A cohort and its quota.")]
        [('cohort', 2), ('quota', 17)]
    """
    found = []
    for term in TERMS:
        for match in re.finditer(rf"(?<![\w-])(?:{term.pattern})(?![\w-])", text, re.IGNORECASE):
            found.append((match.start(), match.end(), term))
    found.sort(key=lambda one: (one[0], -one[1]))
    kept: list[tuple[int, int, Term]] = []
    for start, end, term in found:
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, term))
    return kept
