"""HTML pages, as a browser reads them."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser


class _Ids(HTMLParser):
    """Counts the ids of a page's elements, and collects the ids to which they refer."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter[str]()
        self.references: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.counts[str(value)] += 1
            elif name in {"href", "xlink:href"} and str(value).startswith("#"):
                self.references.add(str(value)[1:])
            elif str(value).startswith("url(#"):
                self.references.add(str(value)[5:-1])


def check_ids(page: str) -> None:
    """Fail if two elements of a page have one id, or a reference within the page has no element."""
    ids = _Ids()
    ids.feed(page)
    assert [name for name, count in ids.counts.items() if count > 1] == []
    assert ids.references - ids.counts.keys() == set()
