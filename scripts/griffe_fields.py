"""Docstrings as this project writes them, for the API reference: lines of `name: meaning` become a list."""

import re
from typing import Any

import griffe

FIELD = re.compile(r"^(?P<names>[a-z_]\w*(?:, [a-z_]\w*)*):\s+(?P<meaning>\S.*)$")


class Fields(griffe.Extension):
    """Turns the fields of a docstring into list items; a line that starts none goes on with the one before."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = as_list(obj.docstring.value)


def as_list(text: str) -> str:
    """Return the text with its fields as Markdown list items."""
    first, *rest = text.splitlines() or [""]
    lines, inside = [first], False
    for line in rest:
        field = FIELD.match(line)
        if field:
            lines += [] if inside else [""]
            lines.append(f"- `{field['names']}`: {re.sub(r' +', ' ', field['meaning'])}")
            inside = True
        elif inside and line.strip():
            lines.append(f"    {line.strip()}")
        else:
            inside = False
            lines.append(line)
    return "\n".join(lines)
