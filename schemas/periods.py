"""Periods of the data: their labels, the files and rows that belong to them, and their rules.

A label such as ``2026-Q3`` names one period of one kind. All functions are exact and independent of
the clock: who needs the present period passes a day.

Budgets per period hold by parallel composition: every row belongs to at most one period,
independently of all other rows. Its period is decided by the file it is in, through placeholders in
the source such as ``visits-{year}-{month}.csv``, or by its own date.

*Claim.* Let a source satisfy `keeps_periods_apart`. Then no file matches it for two periods.

*Proof.* Without ``**`` and ``..``, each component of a path is matched by one component of the
pattern, because no other wildcard matches a slash. Two periods differ in the value of a placeholder
(`PLACEHOLDERS` determine the period), and all values of it are equally wide. Within its component,
all before it or all after it is free of wildcards, so that its distance from the start or from the
end of the component is one number for both periods. A file that matches for both would have two
values at this place.
"""

from __future__ import annotations

import datetime
import glob
import re
import zoneinfo
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gramercy.schemas import families
from gramercy.schemas.model import Model, label, single_line

Span = Literal["year", "quarter", "month", "week", "day"]
Per = Literal["lifetime", Span]

LABEL_PATTERNS: dict[Span, str] = {
    "year": "[0-9]{4}",
    "quarter": "[0-9]{4}-Q[1-4]",
    "month": "[0-9]{4}-(?:0[1-9]|1[0-2])",
    "week": "[0-9]{4}-W[0-9]{2}",
    "day": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
EXAMPLES: dict[Span, str] = {  # of labels, for messages
    "year": "2026",
    "quarter": "2026-Q3",
    "month": "2026-11",
    "week": "2026-W47",
    "day": "2026-11-23",
}
_ONE_DAY = datetime.timedelta(days=1)


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
    return day.isoformat()[: len(EXAMPLES[span])]


def days_of(span: Span, label: str) -> tuple[datetime.date, datetime.date] | None:
    """The first and the last day of a period; None if it does not exist."""
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
    for part in parts:
        for mark in placeholders_in(part):
            before, _, after = part.partition(mark)
            if ("[" in before and "]" in after) or all(map(glob.has_magic, (before, after))):
                return False
    return True


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


def _known(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise families.VALUE("Unknown time zone.", "Write one such as Europe/Berlin.") from None
    return name


TimeZone = Annotated[str, AfterValidator(_known)]


class DatePeriod(Model):
    """The column whose dates decide the period of each row, where files do not.

    A row's date must never change between versions of the table, because a row that moves to
    another period would spend two budgets: the day of a visit is such a date, and the day of the
    last visit is not. Rows without a readable date belong to no period, and are in no release.

    Parameters
    ----------
    column
        Name of the column: dates or times in Parquet; in text, ISO 8601 such as ``2026-11-23`` or
        ``2026-11-23T08:30:00+01:00``, or the label of a period itself, such as ``2026-Q4``.
    timezone
        Time zone in which days begin, for times that state their offset from UTC.
    """

    column: Annotated[str, Field(min_length=1), AfterValidator(single_line)]
    timezone: TimeZone = "UTC"

    def selected(self, span: Span, label: str) -> SelectedPeriod:
        """The column with the period of one version."""
        return SelectedPeriod(column=self.column, timezone=self.timezone, span=span, label=label)


class SelectedPeriod(DatePeriod):
    """A column of dates with the period of one version, which a reader of the table needs.

    `starts`: of a cumulative series, the first day of each step, of the length `span`, and the
    first day after all.
    """

    span: Span
    label: str
    starts: tuple[datetime.date, ...] = ()


def _with_text_keys(value: Any) -> Any:
    """YAML reads the key 2026 as a number, and 2026-11-23 as a date."""
    if not isinstance(value, Mapping):
        return value
    return {label(key): each for key, each in value.items()}


RowsByPeriod = Annotated[
    dict[str, Annotated[int, Field(strict=True, ge=1, le=10**12)]], BeforeValidator(_with_text_keys)
]


def check_source(source: str, per: Per, *, has_date_column: bool) -> None:
    """Refuse a source whose placeholders do not determine the period, or not for every file."""
    needed = () if per == "lifetime" or has_date_column else PLACEHOLDERS[per]
    if set(placeholders_in(source)) != set(needed):
        raise families.PERIODS(
            "'budget.per' is '{per}', so 'source' must contain these placeholders and no others: "
            "{placeholders}.",
            "Store the rows of each period in separate files, with the period in their names; or "
            "declare the column of dates that decides it, as 'period'.",
            per=per,
            placeholders=needed or ("none",),
        )
    if needed and not keeps_periods_apart(source):
        raise families.PERIODS(
            "'source' must contain each placeholder once, outside brackets, without '..' or '**', "
            "and with wildcards on one side of it only.",
            "Otherwise one file could belong to two periods.",
        )


def check_date_column(
    period: DatePeriod | None, per: Per, columns: Collection[str], *, adds_or_removes_rows: bool
) -> None:
    """Refuse a column of dates unless one row more or less changes one period only.

    Under ``replace-one`` the number of rows of each period would be public, and a row's date, which
    moves it from one period to another, would not be protected.
    """
    if period is None:
        return
    if per == "lifetime" or not adds_or_removes_rows:
        raise families.PERIODS(
            "'period' needs 'budget.per' other than 'lifetime', 'neighbours: add-remove' and "
            "'privacy_unit: row'.",
            "Remove 'period', or change the other keys: the number of rows in each period is then "
            "private.",
        )
    if period.column in columns:
        raise families.PERIODS(
            "'period.column' names '{column}', which is also one of 'columns'.",
            "Remove it from 'columns': all rows of a release have the same period.",
            column=period.column,
        )


def check_rows_by_period(rows: Mapping[str, int] | None, per: Per, *, counts_rows: bool) -> None:
    """Refuse numbers of rows for anything but periods."""
    if rows is None:
        return
    if per == "lifetime" or not counts_rows:
        raise families.PERIODS(
            "'rows_by_period' needs 'budget.per' other than 'lifetime', and 'privacy_unit: row'.",
            "Remove it: 'rows' is the number of rows of the whole table.",
        )
    for each in rows:
        if not is_label(per, each):
            raise families.PERIODS(
                "'rows_by_period' lists '{label}', which is not a {per} of the data.",
                "Write it such as {example}.",
                label=each,
                per=per,
                example=EXAMPLES[per],
            )
