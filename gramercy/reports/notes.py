"""Notes: the boxes at the top of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gramercy.common.notation import message_in_symbols
from gramercy.schemas.problem import Notice

_MOST_LISTED = 8

Level = Literal["good", "warning", "danger"]


@dataclass(frozen=True)
class Note:
    """A note for readers of a release.

    Parameters
    ----------
    level
        ``good`` (green), ``warning`` (orange) or ``danger`` (red).
    head, text
        A heading, and the full text.
    code
        Code of a warning, such as ``GRM-920``.
    """

    level: Level
    head: str
    text: str
    code: str = ""


def warning(head: str, notice: Notice, level: Level = "warning") -> Note:
    """A warning with this heading."""
    return Note(level, head, message_in_symbols(notice), notice.code)


def listed(names: Sequence[str]) -> str:
    """The first of these columns, and how many more there are."""
    shown = ", ".join(names[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
