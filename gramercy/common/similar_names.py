"""Names that a mistyped one may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHOWN = 8


def most_similar_first(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """At most eight of the known names, those most similar to `name` first.

    Returns
    -------
    tuple of str
        Similar names, then the others in their order; ``("none",)`` if there are no names.

    Examples
    --------
    >>> most_similar_first("checkups/2026", ["survey/v1-r1", "checkups/2026-r1"])
    ('checkups/2026-r1', 'survey/v1-r1')
    """
    names = list(known)
    lowered = {each.lower(): each for each in reversed(names)}
    similar = [lowered[each] for each in difflib.get_close_matches(name.lower(), lowered, _SHOWN)]
    others = [each for each in names if each not in similar]
    return tuple([*similar, *others][:_SHOWN]) or ("none",)
