"""Limits on what the manifest of a hostile archive may contain, checked before it is validated."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

_MOST_VALUES = 300_000  # 5000 columns or levels have about 100,000
_MOST_DEPTH = 16
_CONTROL = {"Cc", "Cs"}
_LINES = "\t\n\r"  # a query to a database may have several lines


def within_limits(facts: Any) -> bool:
    """Whether a manifest has a size and a depth that a release can have, and no control characters.

    A terminal would execute them.
    """
    left = _MOST_VALUES
    level: list[Any] = [facts]
    for _ in range(_MOST_DEPTH):
        left -= len(level)
        if left < 0 or any(map(_has_control_characters, level)):
            return False
        level = [inner for value in level for inner in _parts(value)]
        if not level:
            return True
    return False


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    return value if isinstance(value, list) else ()


def _has_control_characters(value: Any) -> bool:
    return isinstance(value, str) and any(
        unicodedata.category(x) in _CONTROL and x not in _LINES for x in value
    )
