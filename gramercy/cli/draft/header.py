"""Whether the first line of a CSV file names its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gramercy.schemas.column import MISSING
from gramercy.schemas.problems.command_line import header_looks_like_data

_MONTHS = (
    "jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|jun[ei]?|jul[yi]?"
    "|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?"
)
_TIME_WORDS = re.compile(
    rf"(?<=\d)(?:t(?=\d)|z$)|(?<![^\W\d_])(?:[ap]m|utc|gmt|{_MONTHS})(?![^\W\d_])", re.IGNORECASE
)


def check_header(table: str, names: Iterable[str]) -> None:
    """Check that the first line is not a row of private data.

    Raises
    ------
    RequestError
        Naming the table but none of the values.
    """
    if any(_is_value(name.strip()) for name in names):
        raise header_looks_like_data(table)


def _is_value(name: str) -> bool:
    """Whether a name is a number, date, time or missing-value mark; an empty name is not."""
    try:
        float(name)  # including 1e5, inf and nan
    except ValueError:
        bare = _TIME_WORDS.sub("", name)
        digits = any(map(str.isdigit, bare))
        return (name in MISSING and name != "") or (digits and not any(map(str.isalpha, bare)))
    return True
