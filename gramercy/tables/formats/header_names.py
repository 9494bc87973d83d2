"""Whether the first line of a CSV file names its columns, or is a row of private data."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gramercy.schemas.column import MISSING

_MONTHS = (
    "jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|jun[ei]?|jul[yi]?"
    "|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?"
)
_TIME_WORDS = re.compile(
    rf"(?<=\d)(?:t(?=\d)|z$)|(?<![^\W\d_])(?:[ap]m|utc|gmt|{_MONTHS})(?![^\W\d_])", re.IGNORECASE
)


def look_like_data(names: Iterable[str]) -> bool:
    """Whether a name is a number, a date, a time or a mark for a missing value."""
    return any(_is_value(name.strip()) for name in names)


def _is_value(name: str) -> bool:
    """Whether a name is a number, date, time or missing-value mark; an empty name is not."""
    try:
        float(name)  # including 1e5, inf and nan
    except ValueError:
        bare = _TIME_WORDS.sub("", name)
        digits = any(map(str.isdigit, bare))
        return (name in MISSING and name != "") or (digits and not any(map(str.isalpha, bare)))
    return True
