"""What a contract states about periods: which rows belong to which, and how many there are.

Budgets per period hold by parallel composition: every row belongs to at most one period,
independently of all other rows. Its period is decided by the file it is in, or by its own date.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from gramercy.schemas.budget import Per
from gramercy.schemas.model import Model, label, single_line
from gramercy.schemas.periods import Span, example_label, is_label
from gramercy.schemas.placeholders import PLACEHOLDERS, keeps_periods_apart, placeholders_in
from gramercy.schemas.problems import contract as problems
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
        raise problems.source_and_period_disagree(per, needed or ("none",))
    if needed and not keeps_periods_apart(source):
        raise problems.periods_not_disjoint()


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
        raise problems.date_column_not_possible()
    if period.column in columns:
        raise problems.date_column_is_published(period.column)


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
        raise problems.rows_by_period_not_possible()
    for each in rows:
        if not is_label(per, each):
            raise problems.rows_of_unknown_period(each, per, example_label(per))
