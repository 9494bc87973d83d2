"""HTML pages: what a browser reads, and the structure that assistive technology depends on."""

from __future__ import annotations

import re
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


_VOID = {"meta", "link", "img", "br", "input", "image", "path", "use", "rect", "stop", "circle"}
_HEADING = re.compile("h[1-6]")


class Structure(HTMLParser):
    """Faults of a page, in words, and its links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.links: list[str] = []
        self._open: list[tuple[str, dict[str, str]]] = []
        self._headings: list[int] = []
        self._captions: list[int] = []  # of each open table, how many
        self._counts = {"main": 0, "h1": 0, "title": 0}
        self.feed(page)
        self.faults += [f"{n} of <{tag}>" for tag, n in self._counts.items() if n != 1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        if tag in self._counts and not any(name == "svg" for name, _ in self._open):
            self._counts[tag] += 1
        if tag == "html" and not known.get("lang"):
            self.faults.append("no language")
        if tag == "a":
            self.links.append(known.get("href", ""))
        if tag == "img" and "alt" not in known:
            self.faults.append("an image without a text")
        if tag == "svg" and not (
            known.get("aria-hidden") == "true"
            or (known.get("role") == "img" and known.get("aria-label"))
        ):
            self.faults.append("a drawing without a text")
        if tag == "nav" and not known.get("aria-label"):
            self.faults.append("a navigation without a name")
        if _HEADING.fullmatch(tag):
            level = int(tag[1])
            if level > (self._headings[-1] if self._headings else 0) + 1:
                self.faults.append(f"<{tag}> after <h{self._headings[-1:] or 0}>")
            self._headings.append(level)
        self._check_table(tag, known)
        if tag not in _VOID:
            self._open.append((tag, known))

    def _check_table(self, tag: str, known: dict[str, str]) -> None:
        if tag == "table":
            self._captions.append(0)
            region = self._open[-1][1]
            if region.get("tabindex") != "0" or region.get("role") != "region":
                self.faults.append("a table that cannot be scrolled by keyboard")
            if not region.get("aria-label", "").strip():
                self.faults.append("a region without a name")
        if tag == "caption":
            self._captions[-1] += 1
        if tag == "th" and known.get("scope") not in {"row", "col"}:
            self.faults.append("a header without a scope")

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self._open.pop()
        if tag == "table" and self._captions.pop() != 1:
            self.faults.append("a table without one caption")


def colour_schemes(page: str) -> dict[str, dict[str, tuple[int, int, int]]]:
    """The custom colours of a page, in light and dark schemes and in print."""
    rules = re.findall(r":root \{(.*?)\}", page, flags=re.DOTALL)
    schemes = zip(("light", "dark", "print"), rules, strict=True)
    return {
        name: {
            colour: (int(value[:2], 16), int(value[2:4], 16), int(value[4:], 16))
            for colour, value in re.findall(r"--(\w+): #([0-9a-f]{6});", rule)
        }
        for name, rule in schemes
    }


def contrast(first: tuple[int, int, int], second: tuple[int, int, int]) -> float:
    """The contrast ratio of two colours by WCAG 2.2, from 1 to 21."""

    def luminance(colour: tuple[int, int, int]) -> float:
        shares = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)
