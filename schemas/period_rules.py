"""What a contract states about periods: which rows belong to which, and how many there are.

Budgets per period hold by parallel composition: every row belongs to at most one period,
independently of all other rows. Its period is decided by the file it is in, or by its own date.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from gramercy.schemas import families
from gramercy.schemas.budget import Per
from gramercy.schemas.model import Model, label, single_line
from gramercy.schemas.periods import Span, example_label, is_label
from gramercy.schemas.placeholders import PLACEHOLDERS, keeps_periods_apart, placeholders_in
from gramercy.schemas.time_zone import TimeZone


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
    """A column of dates with the period of one version, which a reader of the table needs."""

    span: Span
    label: str


def _with_text_keys(value: Any) -> Any:
    """YAML reads the key 2026 as a number, and 2026-11-23 as a date."""
    if not isinstance(value, Mapping):
        return value
    return {label(key): each for key, each in value.items()}


RowsByPeriod = Annotated[
    dict[str, Annotated[int, Field(strict=True, ge=1, le=10**12)]], BeforeValidator(_with_text_keys)
]


def check_source(source: str, per: Per, *, has_date_column: bool) -> None:
    """Refuse a source whose placeholders do not determine the period, or not for every file.

    Raises
    ------
    InvalidValue
        If the name of a file does not determine its period, or a file could belong to two.
    """
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

    Raises
    ------
    InvalidValue
        If not, or if the column is to be published as well.
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
    """Refuse numbers of rows for anything but periods.

    Raises
    ------
    InvalidValue
        If there are no periods, or a key is not the label of one.
    """
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
                example=example_label(per),
            )
