"""Reads the text of a page as a browser would."""

import json
import re
from html.parser import HTMLParser

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(text):
    """Return the data that the page's script reads."""
    return json.loads(DATA.search(text).group(1))


def chart_ids(text):
    """Return the charts of a page in their order."""
    return [chart["id"] for chart in data_of(text)["charts"]]


def without_plotly(text):
    """Return the page without Plotly, which we did not write."""
    from plotly.offline import get_plotlyjs

    return text.replace(get_plotlyjs().replace("</script", "<\\/script"), "")


class Tags(HTMLParser):
    """The start tags of a page, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
