"""The columns of a table, as its files state them: headers and footers alone, and no row."""

from __future__ import annotations

from gramercy.tables.read import column_types
from gramercy.tables.source import Source

MIXED, PARTIAL = "of several types", "not in every file"
_ANY = "any"
_NUMBERS = {"whole", "double"}


def schema_of(source: Source) -> dict[str, str]:
    """Names of a table's columns, in the order of the first file, and the type of each.

    Of a CSV the header's line is read, of Parquet the schema in the footer; of folders called
    ``column=value`` the column.

    Returns
    -------
    dict
        Types as `tables.read.column_types` names them. Where files differ: ``double`` if all of
        them hold numbers, ``any`` if one of them states nothing, else `MIXED`. `PARTIAL` where a
        file lacks the column.

    Raises
    ------
    TableError
        If a file cannot be read, is empty, or names a column twice.
    """
    found: dict[str, str] = {}
    for place, file in enumerate(source.files):
        stated = column_types(source, file)
        for name in [*found, *(name for name in stated if name not in found)]:
            if place == 0:
                found[name] = stated[name]
            elif name not in found or name not in stated:
                found[name] = PARTIAL
            else:
                found[name] = _both(found[name], stated[name])
    return found


def _both(one: str, other: str) -> str:
    if one == other or one in {MIXED, PARTIAL}:
        return one
    if _ANY in {one, other}:
        return _ANY
    return "double" if {one, other} == _NUMBERS else MIXED
