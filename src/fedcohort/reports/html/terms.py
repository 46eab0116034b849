"""Marks the words of the glossary in a text, with their definitions.

A definition opens when the word is hovered, tapped, or reached with the tab key. Each term is
marked once in each block of text, so that a page has no more stops of the tab key than it needs.
"""

import re
from html import escape

from fedcohort.reports.glossary import Term, find_terms

MAX_WHOLE = 20  # letters of a name that is not broken: a phone has room for these
# A name such as edge-01, in text that is escaped already.
NUMBERED_NAME = re.compile(r"(?<![\w&#;-])[\w.]+-\d(?:[\w.]*\w)?")


class Marker:
    """Marks words and remembers which were used, for the list of words at the end of a page."""

    def __init__(self) -> None:
        self.used: dict[str, Term] = {}
        self._count = 0

    def mark(self, text: str, known: set[str] | None = None) -> str:
        """Return a text as HTML: escaped, the first occurrence of every term with its definition.

        Args:
            text: Any text, which may hold markup of others.
            known: Words that the block has marked already. Those marked here are added.
        """
        seen = set() if known is None else known
        html = ""
        end_of_last = 0
        for start, end, term in find_terms(text):
            if term.word in seen:
                continue
            seen.add(term.word)
            self.used[term.word] = term
            html += _plain(text[end_of_last:start]) + self._marked(text[start:end], term)
            end_of_last = end
        return html + _plain(text[end_of_last:])

    def define(self, name: str) -> None:
        """Put the terms of a name on the list of words, without marking them.

        Args:
            name: The name of a row, such as that of a scheme.
        """
        for _, _, term in find_terms(name):
            self.used[term.word] = term

    def _marked(self, word: str, term: Term) -> str:
        self._count += 1
        name = f"term-{self._count}"
        return (
            f'<span class="term" tabindex="0" aria-describedby="{name}">{escape(word)}'
            f'<span class="meaning" role="tooltip" id="{name}">{escape(term.meaning)}</span></span>'
        )


def _plain(text: str) -> str:
    """Return text as HTML in which no short name is broken between its hyphen and its number."""
    return NUMBERED_NAME.sub(_whole, escape(text))


def _whole(match: re.Match[str]) -> str:
    name = match.group()
    return f'<span class="whole">{name}</span>' if len(name) <= MAX_WHOLE else name
