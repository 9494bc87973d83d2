"""``gramercy convert``: a file of another program as Parquet."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gramercy.cli import terminal
from gramercy.cli.options import AsJson, check_output_file, write_errors
from gramercy.schemas import wordings
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse
from gramercy.schemas.notation import NumberNotation
from gramercy.tables.formats.conversion import (
    Reading,
    in_one_spelling,
    read_other,
    write_parquet,
)
from gramercy.tables.formats.parquet_format import ParquetTables
from gramercy.tables.formats.reader import schema_of
from gramercy.tables.formats.registry import format_of
from gramercy.tables.formats.source import open_source

_TYPES = {"whole": "whole numbers", "double": "numbers", "text": "text", "any": "no cells"}


def convert(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="File of Excel, ODS, SPSS, SAS, Stata, JSON, JSON lines or Arrow, or text.",
        ),
    ],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="Parquet file to write.")],
    sheet: Annotated[
        str | None, typer.Option(metavar="NAME", help="Sheet; default: the first visible one.")
    ] = None,
    header: Annotated[
        int | None,
        typer.Option(min=1, metavar="ROW", help="Row that names the columns; default: 1."),
    ] = None,
    names: Annotated[
        str | None, typer.Option(metavar="A,B", help="Names of the columns, if no row names them.")
    ] = None,
    numbers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns of numbers: other cells become missing."),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns of ids to spell in one way: p 07 becomes P07."),
    ] = None,
    thousands: Annotated[
        str | None, typer.Option(metavar="CHAR", help="Mark between thousands in numbers.")
    ] = None,
    decimal: Annotated[
        str | None, typer.Option(metavar="CHAR", help="Decimal mark of numbers; default: a point.")
    ] = None,
    percent: Annotated[bool, typer.Option("--percent", help="Read '12 %' as .12.")] = False,
    units: Annotated[
        str | None, typer.Option(metavar="€,kg", help="Texts to drop before or after numbers.")
    ] = None,
    accounting: Annotated[
        bool, typer.Option("--accounting", help="Read (5) and 5- as -5.")
    ] = False,
    comment: Annotated[
        str | None, typer.Option(metavar="CHAR", help="Start of lines of text to leave out.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help="Encoding of text; default: UTF-8.")
    ] = None,
    widths: Annotated[
        str | None,
        typer.Option(metavar="8,3,12", help="Characters of each column, if widths are fixed."),
    ] = None,
    codes: Annotated[
        bool, typer.Option("--codes", help="Keep the numbers of labelled values, not the labels.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Convert a file of another program to Parquet, which releases read.

    It is your own step before a contract: the output names the columns, their types and the number
    of rows. Dates become text such as 2026-11-23. Labelled values of SPSS and Stata become their
    labels. An existing file is never replaced.

    Example: gramercy convert visits.xlsx visits.parquet --sheet "Visits 2026" --header 3
    """
    if not isinstance(format_of(str(table)), ParquetTables):
        raise wordings.conversion_option(f"{table} does not end in .parquet", "Name it so.")
    check_output_file("TABLE", table)
    if table.exists():
        raise wordings.conversion_option(
            f"{table} already exists", "Move it, or choose another name."
        )
    stated = {
        "thousands": thousands,
        "decimal": decimal,
        "percent": percent,
        "units": _list(units),
        "accounting": accounting,
    }
    reading = Reading(
        sheet=sheet,
        header=header,
        names=_list(names),
        numbers=_list(numbers),
        comment=comment,
        notation=_notation(stated),
        encoding=encoding,
        widths=_widths(widths),
        codes=codes,
    )
    found = read_other(file, reading)
    converted = in_one_spelling(found.table, _list(ids))
    with write_errors("TABLE", table):
        write_parquet(converted, table)
    types, rows = schema_of(open_source(str(table))), converted.num_rows
    next_command = f"gramercy new {shlex.quote(str(table))}"
    if json:
        losses = {"left_out": dict(found.left_out), "cleared": dict(found.cleared)}
        facts = {"table": str(table), "rows": rows, "columns": types, **losses}
        terminal.print_json(facts | {"next": next_command})
        return
    terminal.say("Written: ", terminal.bold(str(table)), f" ({rows:,} rows)")
    terminal.facts_table("", {name: _TYPES.get(kind, kind) for name, kind in types.items()})
    for name, reason in found.left_out.items():
        terminal.say(f"Left out: {name} ({reason})")
    for name, count in found.cleared.items():
        terminal.say(f"--numbers: {count:,} cells of {name} are not numbers, and now missing")
    terminal.say(f"Next: {next_command}")


def _notation(stated: Mapping[str, Any]) -> NumberNotation:
    given = {name: value for name, value in stated.items() if value}
    return parse(NumberNotation, given, "Options", RequestError)


def _list(text: str | None) -> list[str]:
    return [each.strip() for each in text.split(",")] if text else []


def _widths(text: str | None) -> list[int]:
    if not all(each.isdecimal() and int(each) for each in _list(text)):
        raise wordings.conversion_option(
            "--widths must be positive whole numbers", "As in --widths 8,3,12."
        )
    return list(map(int, _list(text)))
