"""Whether the first line of a CSV file names its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gramercy.schemas.column import MISSING
from gramercy.schemas.errors import RequestError

_MONTHS = (
    "jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|jun[ei]?|jul[yi]?"
    "|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?"
)
_WORDS_OF_TIME = re.compile(
    rf"(?<=\d)(?:t(?=\d)|z$)|(?<![^\W\d_])(?:[ap]m|utc|gmt|{_MONTHS})(?![^\W\d_])", re.IGNORECASE
)


def check_header(table: str, names: Iterable[str]) -> None:
    """Refuse a first line that may be somebody's row, of which nothing may be told.

    Raises
    ------
    RequestError
        Naming the table, and none of the values.
    """
    if any(_is_value(name.strip()) for name in names):
        raise RequestError(
            f"{table}: its first line seems to be a row, not the columns' names: it holds a "
            "number, a date, a time or a word for what is missing.",
            "Write a first line that names them; or, if these are names, give them with --columns.",
        )


def _is_value(name: str) -> bool:
    """Whether it is a number, a date, a time or a word for what is missing; of no name, not."""
    try:
        float(name)  # 1e5, inf and nan, too
    except ValueError:
        bare = _WORDS_OF_TIME.sub("", name)
        digits = any(map(str.isdigit, bare))
        return (name in MISSING and name != "") or (digits and not any(map(str.isalpha, bare)))
    return True
