"""Periods of the data: their labels, the files and rows that belong to them, and their rules.

A label such as ``2026-Q3`` names one period of one kind. All functions are exact and independent of
the clock: who needs the present period passes a day.

Budgets per period hold by parallel composition: every row belongs to at most one period,
independently of all other rows. Its period is decided by the file it is in, through placeholders in
the source such as ``visits-{year}-{month}.csv``, or by its own date. Files may be of shorter
periods, if each is within one period of the budget: months and days are, and weeks are not.

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
_WITHIN: dict[Span, tuple[Span, ...]] = {  # the longer kinds that no period of a kind crosses
    "year": (),
    "quarter": ("year",),
    "month": ("quarter", "year"),
    "week": (),
    "day": ("week", "month", "quarter", "year"),
}


def spans_within(per: Per) -> tuple[Span, ...]:
    """The kinds of period of which each is within one window of a budget, the longest first."""
    return tuple(span for span in _WITHIN if per in ("lifetime", span, *_WITHIN[span]))


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


def first_day_in_name(source: str, path: str) -> datetime.date | None:
    """The first day of the period that a path has in place of the placeholders of a source.

    None if the digits there are no period that exists. The source must satisfy
    `keeps_periods_apart`, and the path must match it.

    Examples
    --------
    >>> first_day_in_name("*/{year}/visits-*-{month}.csv", "a/2026/visits-0-11.csv")
    datetime.date(2026, 11, 1)
    """
    span = span_of(source)
    if span is None:
        raise ValueError
    found: dict[str, str] = {}
    for part, own in zip(reversed(source.split("/")), reversed(path.split("/")), strict=False):
        for mark in _ANY.finditer(part):
            before, after = (
                _ANY.sub(_digits, x) for x in (part[: mark.start()], part[mark.end() :])
            )
            width = _WIDTHS[mark[0]]
            at = len(own) - len(after) - width if glob.has_magic(before) else len(before)
            found[mark[0]] = own[at : at + width]
    numbers = [found.get(mark, "") for mark in PLACEHOLDERS[span]]
    label = "-".join([numbers[0], *(_LETTERS.get(span, "") + each for each in numbers[1:])])
    days = days_of(span, label) if is_label(span, label) else None
    return None if days is None else days[0]


_LETTERS: dict[Span, str] = {"quarter": "Q", "week": "W"}


def _digits(mark: re.Match[str]) -> str:
    return "0" * _WIDTHS[mark[0]]


_YEAR = "(?P<year>(?:19|20)[0-9]{2})"
_MONTH = "(?P<mark>[-_./]?)(?P<month>0[1-9]|1[0-2])"
_IN_NAMES: dict[Span, str] = {  # how names of files have periods
    "day": f"{_YEAR}{_MONTH}(?P=mark)(?P<day>0[1-9]|[12][0-9]|3[01])",
    "week": f"{_YEAR}[-_./]?[Ww](?P<week>[0-5][0-9])",
    "quarter": f"{_YEAR}[-_./]?[Qq](?P<quarter>[1-4])",
    "month": f"{_YEAR}{_MONTH}",
    "year": _YEAR,
}


def with_placeholders(path: str) -> str | None:
    """The path of a file with placeholders in place of the period in it; None without a period.

    Examples
    --------
    >>> with_placeholders("2026/visits-2026-11.csv"), with_placeholders("labs_2026W07.parquet")
    ('2026/visits-{year}-{month}.csv', 'labs_{year}W{week}.parquet')
    """
    for pattern in _IN_NAMES.values():
        all_found = list(re.finditer(f"(?<![0-9]){pattern}(?![0-9])", path))
        if not all_found:
            continue
        marked, found = path, all_found[-1]
        for name in sorted(found.groupdict().keys() - {"mark"}, key=found.start, reverse=True):
            marked = f"{marked[: found.start(name)]}{{{name}}}{marked[found.end(name) :]}"
        return marked if keeps_periods_apart(marked) else None
    return None


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
    """The column whose dates decide the period or the step of each row, where files do not.

    A row's date must never change between versions of the table, because a row that moves to
    another period would spend two budgets: the day of a visit is such a date, and the day of the
    last visit is not. Rows without a readable date belong to no period, and are in no release of
    one.

    In a cumulative series, a row that moves once from one step to another costs at most sqrt(2)
    times the mu of the series. A date that is updated again and again, such as that of the last
    visit, costs up to 2.8 times that mu for 12 months, 5.2 times for 52 weeks and 11.9 times for
    365 days. Under ``replace-one`` the number of rows of every step is public, so dates are not
    protected: the guarantee is for a row that is replaced by another one of the same step.

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

    def selected(
        self, span: Span, label: str, starts: tuple[datetime.date, ...] = ()
    ) -> SelectedPeriod:
        """The column with the period of one version, or with the steps of a series."""
        return SelectedPeriod(
            column=self.column, timezone=self.timezone, span=span, label=label, starts=starts
        )


class SelectedPeriod(DatePeriod):
    """A column of dates with the period of one version, which a reader of the table needs.

    `starts`: of a cumulative series, the first day of each step, of the length `span`, and the
    first day after all.
    """

    span: Span
    label: str
    starts: tuple[datetime.date, ...] = ()

    @property
    def days(self) -> tuple[datetime.date, ...]:
        """The first day of each step, or of the period, and the first day after; may be empty."""
        if self.starts:
            return self.starts
        days = days_of(self.span, self.label)
        return () if days is None else (days[0], days[1] + _ONE_DAY)


# In place of a column of the table: the first day of the period that is in the name of a file.
FILES = DatePeriod(column="{date}")


def _with_text_keys(value: Any) -> Any:
    """YAML reads the key 2026 as a number, and 2026-11-23 as a date."""
    if not isinstance(value, Mapping):
        return value
    return {label(key): each for key, each in value.items()}


RowsByPeriod = Annotated[
    dict[str, Annotated[int, Field(strict=True, ge=1, le=10**12)]], BeforeValidator(_with_text_keys)
]


def check_source(source: str, per: Per, *, has_date_column: bool, is_database: bool) -> None:
    """Refuse a source whose placeholders do not determine the period, or not for every file.

    A budget for the lifetime needs none; steps of a cumulative series may need them.
    """
    by_name = () if has_date_column else spans_within(per)
    if is_database:  # whose tables are not read together
        by_name = tuple(span for span in by_name if span == per)
    needs_none = has_date_column or per == "lifetime"
    found = placeholders_in(source)
    if span_of(source) not in by_name and not (needs_none and not found):
        options = (" and ".join(PLACEHOLDERS[span]) for span in by_name)
        raise families.PERIODS(
            "'budget.per' is '{per}', so the placeholders in 'source' must be one of: "
            "{placeholders}.",
            "Store the rows of each period in separate files, with the period in their names; or "
            "declare the column of dates that decides it, as 'period', with a source without "
            "placeholders.",
            per=per,
            placeholders=(*(["none"] if needs_none else []), *options),
        )
    if found and not keeps_periods_apart(source):
        raise families.PERIODS(
            "'source' must contain each placeholder once, outside brackets, without '..' or '**', "
            "and with wildcards on one side of it only.",
            "Otherwise one file could belong to two periods.",
        )


def check_date_column(
    period: DatePeriod | None, columns: Collection[str], *, protects_rows: bool
) -> None:
    """Refuse a column of dates unless one row more or less changes one period only."""
    if period is None:
        return
    if not protects_rows:
        raise families.PERIODS(
            "'period' needs 'privacy_unit: row'.",
            "Remove 'period', or change 'privacy_unit': a date belongs to a row.",
        )
    if period.column in columns:
        raise families.PERIODS(
            "'period.column' names '{column}', which is also one of 'columns'.",
            "Remove it from 'columns': the dates decide which rows a release has.",
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
