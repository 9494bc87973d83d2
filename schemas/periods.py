"""Periods of the data: calendar years, quarters, months, ISO weeks and days, and their labels.

A label such as ``2026-Q3`` names one period of one kind. All functions are exact and independent of
the clock: who needs the present period passes a day.
"""

from __future__ import annotations

import datetime
import re
from typing import Literal

Span = Literal["year", "quarter", "month", "week", "day"]

LABEL_PATTERNS: dict[Span, str] = {
    "year": "[0-9]{4}",
    "quarter": "[0-9]{4}-Q[1-4]",
    "month": "[0-9]{4}-(?:0[1-9]|1[0-2])",
    "week": "[0-9]{4}-W[0-9]{2}",
    "day": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
_EXAMPLES: dict[Span, str] = {
    "year": "2026",
    "quarter": "2026-Q3",
    "month": "2026-11",
    "week": "2026-W47",
    "day": "2026-11-23",
}
_ONE_DAY = datetime.timedelta(days=1)


def example_label(span: Span) -> str:
    """A label of this kind, for messages."""
    return _EXAMPLES[span]


def leading_label(span: Span, text: str) -> str | None:
    """The label of a period at the start of a text, such as a version; None if there is none.

    Weeks and days must exist: there is no ``2026-02-30``, and no ``2025-W53``.
    """
    found = re.match(f"({LABEL_PATTERNS[span]})(?![0-9])", text)
    if found is None:
        return None
    if span in ("week", "day") and days_of(span, found[1]) is None:
        return None
    return found[1]


def is_label(span: Span, text: str) -> bool:
    """Whether a text is the label of a period of this kind, and nothing else."""
    return leading_label(span, text) == text


def label_of(span: Span, day: datetime.date) -> str:
    """The label of the period that contains a day.

    Examples
    --------
    >>> import datetime
    >>> day = datetime.date(2026, 12, 31)
    >>> [label_of(span, day) for span in ("year", "quarter", "month", "week", "day")]
    ['2026', '2026-Q4', '2026-12', '2026-W53', '2026-12-31']
    """
    if span == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    if span == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return day.isoformat()[: len(_EXAMPLES[span])]


def days_of(span: Span, label: str) -> tuple[datetime.date, datetime.date] | None:
    """The first and the last day of a period; None if it does not exist.

    Parameters
    ----------
    span, label
        The kind of period, and a label of this form.
    """
    year = int(label[:4])
    try:
        if span == "week":
            monday = datetime.date.fromisocalendar(year, int(label[6:]), 1)
            return monday, monday + 6 * _ONE_DAY
        if span == "day":
            day = datetime.date.fromisoformat(label)
            return day, day
        first_month, months = 1, 12
        if span == "quarter":
            first_month, months = 3 * int(label[6]) - 2, 3
        elif span == "month":
            first_month, months = int(label[5:]), 1
        first = datetime.date(year, first_month, 1)
    except (ValueError, OverflowError):
        return None
    last_month = first_month + months - 1
    if last_month == 12:
        return first, datetime.date(year, 12, 31)
    return first, datetime.date(year, last_month + 1, 1) - _ONE_DAY


def last_complete(span: Span, today: datetime.date) -> str:
    """The label of the last period that ended before a day."""
    days = days_of(span, label_of(span, today))
    if days is None:
        raise ValueError
    return label_of(span, days[0] - _ONE_DAY)


def parts_of(span: Span, label: str) -> dict[str, str]:
    """The numbers in a label by name, each of fixed width, as placeholders in sources have them.

    Examples
    --------
    >>> parts_of("quarter", "2026-Q3"), parts_of("week", "2026-W07")
    ({'year': '2026', 'quarter': '3'}, {'year': '2026', 'week': '07'})
    """
    if span == "day":
        return {"year": label[:4], "month": label[5:7], "day": label[8:]}
    rest = label[5:].lstrip("QW")
    return {"year": label[:4]} | ({span: rest} if rest else {})
