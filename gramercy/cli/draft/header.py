"""Refuse a first line of a CSV file that may be a row of private data."""

from __future__ import annotations

from collections.abc import Iterable

from gramercy.schemas.problems.command_line import header_looks_like_data
from gramercy.tables.header_names import look_like_data


def check_header(table: str, names: Iterable[str]) -> None:
    """Check that the first line is not a row of private data.

    Raises
    ------
    RequestError
        Naming the table but none of the values.
    """
    if look_like_data(names):
        raise header_looks_like_data(table)
