"""Names and types of a table's columns, from headers and footers only; no row is read."""

from __future__ import annotations

import re

import pyarrow as pa

from gramercy.schemas import wordings
from gramercy.tables.formats import csv_reader, parquet_reader
from gramercy.tables.formats.parse_errors import redact_parser_errors
from gramercy.tables.formats.source import Source
from gramercy.tables.formats.source_file import COPIED, SourceFile

MIXED, PARTIAL = "of several types", "not in every file"
_ANY = "any"
_NUMBERS = {"whole", "double"}


def schema_of(source: Source) -> dict[str, str]:
    """Names of a table's columns, in the order of the first file, and their types.

    They come from the header of a CSV file, the schema of a Parquet file, a Delta table or a
    database, and the names of folders such as ``column=value``.

    Returns
    -------
    dict
        Types as in `column_types`. Where files differ: ``double`` if all of them have numbers,
        ``any`` if one of them states no type, else `MIXED`. `PARTIAL` if a file lacks the column.

    Raises
    ------
    TableError
        If a file cannot be read, is empty, or has two columns with the same name.
    """
    types: dict[str, str] = {}
    for index, file in enumerate(source.files):
        stated = column_types(file)
        for name in [*types, *(name for name in stated if name not in types)]:
            if index == 0:
                types[name] = stated[name]
            elif name not in types or name not in stated:
                types[name] = PARTIAL
            else:
                types[name] = _common_type(types[name], stated[name])
    return types


def _common_type(first: str, second: str) -> str:
    if first == second or first in {MIXED, PARTIAL}:
        return first
    if _ANY in {first, second}:
        return _ANY
    return "double" if {first, second} == _NUMBERS else MIXED


def column_types(file: SourceFile) -> dict[str, str]:
    """Names of a file's columns and their types, from its header or schema.

    Types are ``whole`` for integers, ``double`` for other numbers, ``text`` for any kind of text,
    ``any`` for the columns of a CSV file, which states no types, and otherwise Arrow's own name, or
    that of the database.

    Raises
    ------
    TableError
        If the file cannot be read, is empty, or has two columns with the same name.
    """
    if file.format == "csv":
        stated = [(name, _ANY) for name in csv_reader.read_header(file)]
    elif file.format in COPIED:
        stated = _columns_of_table(file)
    else:
        with (
            redact_parser_errors(file.display_name, "Parquet"),
            parquet_reader.open_parquet(file) as table,
        ):
            stated = [(field.name, _type_name(field.type)) for field in table.schema_arrow]
    keys = file.partition_values
    stated = [column for column in stated if column[0] not in keys] + [(key, _ANY) for key in keys]
    positions: dict[str, int] = {}
    for position, (name, _) in enumerate(stated, start=1):
        if name in positions:  # no name in the error: without a header, names are private cells
            raise wordings.column_repeated(file.display_name, positions[name], position)
        positions[name] = position
    return dict(stated)


def _columns_of_table(file: SourceFile) -> list[tuple[str, str]]:
    """The columns of a table that is copied before its rows are read."""
    if file.table is not None:
        from gramercy.tables.formats.database import (
            relation,  # imports SQLAlchemy: not for analysts
        )

        return relation.columns_of(file.table)
    from gramercy.tables.formats import delta

    return [(field.name, _type_name(field.type)) for field in delta.schema_of(file)]


def _type_name(kind: pa.DataType) -> str:
    """``whole`` or ``double`` for numbers, ``text``, ``any``, or Arrow's own name.

    Of a nested type only the outer name is given: fields of a struct may be named after private
    cells. A column whose cells are all missing has no type and counts as ``any``; otherwise its
    cells would decide whether the table is refused.
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
        return _ANY
    if pa.types.is_integer(inner):
        return "whole"
    return "double" if numeric else "text" if text else re.split(r"[<\[]", str(kind))[0]
