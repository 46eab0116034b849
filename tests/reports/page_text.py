"""Reads the text of a page as a browser would."""

import base64
import csv
import io
import json
import re
import zlib
from html.parser import HTMLParser

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
VOID = {"meta", "link", "input", "br", "img", "path", "use", "circle", "rect", "image"}


def csv_of(text):
    """Return the rows that each figure offers as CSV, by figure: a header, then values."""
    packed = json.loads(DATA.search(text).group(1))
    tables = {}
    for name, content in packed.items():
        plain = zlib.decompress(base64.b64decode(content)).decode()
        tables[name] = list(csv.reader(io.StringIO(plain)))
    return tables


def series_of(text, figure):
    """Return the values of a figure: columns by panel and series, numbers where they are."""
    (_, _, *columns), *rows = csv_of(text)[figure]
    found = {}
    for panel, series, *values in rows:
        data = found.setdefault(panel, {}).setdefault(series, {name: [] for name in columns})
        for name, value in zip(columns, values, strict=True):
            data[name].append(_number(value))
    return found


def _number(value):
    try:
        return float(value)
    except ValueError:
        return value or None


def chart_ids(text):
    """Return the figures of a page in their order."""
    return [given["id"] for tag, given in Tags(text).found if tag == "figure"]


class Tags(HTMLParser):
    """The start tags of a page, with their attributes, and all text that is not a script."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.words = []
        self.inside = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.inside.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.inside.pop()[0] == tag

    def handle_data(self, data):
        names = {tag for tag, _ in self.inside}
        if data.strip() and not names & {"script", "style", "title"}:
            self.words.append((data.strip(), list(self.inside)))
