"""Placeholders for the period in a contract's source, such as ``visits-{year}-{month}.csv``.

*Claim.* Let a source satisfy `keeps_periods_apart`. Then no file matches it for two periods.

*Proof.* Without ``**`` and ``..``, each component of a path is matched by one component of the
pattern, because no other wildcard matches a slash. Two periods differ in the value of a placeholder
(`PLACEHOLDERS` determine the period), and all values of it are equally wide. Within its component,
all before it or all after it is free of wildcards, so that its distance from the start or from the
end of the component is one number for both periods. A file that matches for both would have two
values at this place.
"""

from __future__ import annotations

import glob
import re

from gramercy.schemas.periods import Span, parts_of

# A week belongs to its ISO year.
PLACEHOLDERS: dict[Span, tuple[str, ...]] = {
    "year": ("{year}",),
    "quarter": ("{year}", "{quarter}"),
    "month": ("{year}", "{month}"),
    "week": ("{year}", "{week}"),
    "day": ("{year}", "{month}", "{day}"),
}
_WIDTHS = {"{year}": 4, "{quarter}": 1, "{month}": 2, "{week}": 2, "{day}": 2}
_ANY = re.compile("|".join(map(re.escape, _WIDTHS)))


def placeholders_in(source: str) -> list[str]:
    """All placeholders of a source, in order."""
    return _ANY.findall(source)


def span_of(source: str) -> Span | None:
    """The kind of period that the placeholders of a source determine; None if there is none."""
    found = set(placeholders_in(source))
    return next((span for span, needed in PLACEHOLDERS.items() if found == set(needed)), None)


def keeps_periods_apart(source: str) -> bool:
    """Whether no file can match the source for two periods; see the claim above.

    Every placeholder must occur once. Sufficient, not necessary: ``?`` and brackets count as
    wildcards of unknown width.
    """
    found = placeholders_in(source)
    parts = source.split("/")  # in globs of fsspec, a backslash is not a separator
    if len(set(found)) < len(found) or {"..", "**"} & {*parts}:
        return False
    return all(_has_fixed_place(part, mark) for part in parts for mark in placeholders_in(part))


def _has_fixed_place(part: str, mark: str) -> bool:
    before, _, after = part.partition(mark)
    in_brackets = "[" in before and "]" in after
    return not in_brackets and not (glob.has_magic(before) and glob.has_magic(after))


def with_period(source: str, span: Span, label: str) -> str:
    """The source with the numbers of a period in place of its placeholders."""
    numbers = parts_of(span, label)
    return _ANY.sub(lambda found: numbers.get(found[0][1:-1], found[0]), source)


def glob_of_any_period(source: str) -> str:
    """The source with patterns of digits in place of its placeholders."""
    return _ANY.sub(lambda found: "[0-9]" * _WIDTHS[found[0]], source)


def without_placeholders(source: str) -> str:
    """The source without its placeholders, and the letters that labels have before some of them."""
    return _ANY.sub("", re.sub(r"[Qq](?=\{quarter\})|[Ww](?=\{week\})", "", source))
