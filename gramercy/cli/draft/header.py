"""Refuse a first line of a CSV file that may be a row of private data."""

from __future__ import annotations

from collections.abc import Iterable

from gramercy.schemas import families
from gramercy.tables.formats.csv_format import look_like_data


def check_header(table: str, names: Iterable[str]) -> None:
    """Check that the first line is not a row of private data.

    Raises
    ------
    RequestError
        Naming the table but none of the values.
    """
    if look_like_data(names):
        raise families.DRAFT(
            "The first line of {table} may be a row instead of column names: it has a number, a "
            "date, a time or a mark for a missing value.",
            "Add a first line with names; or, if these are names, list them with --columns.",
            table=table,
        )
