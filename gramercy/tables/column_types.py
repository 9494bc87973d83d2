"""The columns of a table, as its files state them: headers and footers alone, and no row."""

from __future__ import annotations

import re

import pyarrow as pa

from gramercy.schemas.errors import TableError
from gramercy.tables import csv_reader, parquet
from gramercy.tables.parse_errors import parsing
from gramercy.tables.source import Source
from gramercy.tables.source_file import SourceFile

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
        Types as `column_types` names them. Where files differ: ``double`` if all of
        them hold numbers, ``any`` if one of them states nothing, else `MIXED`. `PARTIAL` where a
        file lacks the column.

    Raises
    ------
    TableError
        If a file cannot be read, is empty, or names a column twice.
    """
    found: dict[str, str] = {}
    for place, file in enumerate(source.files):
        stated = column_types(file)
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


def column_types(file: SourceFile) -> dict[str, str]:
    """Names of a file's columns and the type of each, as its header or schema states them.

    ``whole`` stands for integers, ``double`` for every other numeric type, ``text`` for every kind
    of text, ``any`` for the columns of a CSV, which states no types; else it is Arrow's own name of
    the type.

    Raises
    ------
    TableError
        If the file cannot be read, is empty, or names a column twice.
    """
    if file.format == "csv":
        stated = [(name, "any") for name in csv_reader.header(file)]
    else:
        with parsing(file.shown, "Parquet"), parquet.opened(file) as (_, table):
            stated = [(field.name, _kind(field.type)) for field in table.schema_arrow]
    keys = file.keys
    stated = [each for each in stated if each[0] not in keys] + [(key, "any") for key in keys]
    where: dict[str, int] = {}
    for at, (name, _) in enumerate(stated, start=1):
        if name in where:  # told by place: what stands in a header that is none may be private
            raise TableError(
                f"{file.shown}: columns {where[name]} and {at} have the same name.",
                "Rename one of them.",
            )
        where[name] = at
    return dict(stated)


def _kind(kind: pa.DataType) -> str:
    """``whole`` or ``double`` where values are numbers, ``text``, ``any``, else Arrow's own name.

    The outer name alone: what is inside a struct may be named after somebody's cell. A column
    without a type (all of it missing) passes as any, or what is in the cells would refuse.
    """
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    numeric = (
        pa.types.is_floating(inner) or pa.types.is_decimal(inner) or pa.types.is_boolean(inner)
    )
    text = (
        pa.types.is_string(inner)
        or pa.types.is_large_string(inner)
        or pa.types.is_string_view(inner)
    )
    if pa.types.is_null(inner):
        return "any"
    if pa.types.is_integer(inner):
        return "whole"
    return "double" if numeric else "text" if text else re.split(r"[<\[]", str(kind))[0]
