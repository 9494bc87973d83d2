"""Compare the headers of a table with its contract: files, columns and types; no row is read.

All of these are public facts, and the only ones that may cause a refusal: one that depends on cells
would reveal something about them. `gramercy plan` shows what is wrong before Prefect starts; a
release checks them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import TableError
from gramercy.tables.formats.reader import column_types
from gramercy.tables.formats.source import Source, open_source

Types = Mapping[str, str]  # the columns of a file, with types as in `tables.formats.reader`

_NUMBERS, _TEXTS, _PERSONS = {"whole", "double", "any"}, {"text", "any"}, {"whole", "text", "any"}
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_MOST_NAMED = 10


def required_columns(contract: Contract) -> list[str]:
    """Columns that every file must have: those to publish, and those of persons and of dates."""
    dates = None if contract.period is None else contract.period.column
    others = (contract.person_column, dates)
    return contract.names + [name for name in others if name is not None]


def validate(contract: Contract) -> None:
    """The step of a release: see `check_table_header`."""
    check_table_header(contract)


def check_table_header(contract: Contract) -> Source:
    """Refuse a table whose files, columns or types differ from the contract."""
    source, schemas = open_source(contract.source), []
    for file, types in _distinct_schemas(source, contract):
        if any(name not in types for name in required_columns(contract)):
            raise _columns_missing(file, types, contract)
        if wrong := [name for name in contract.names if not _fits(contract, name, types[name])]:
            raise _types_differ(file, types, wrong)
        schemas.append((file, types))
    _check_persons(contract, source, schemas)
    _check_dates(contract, schemas)
    return source


def _fits(contract: Contract, name: str, stated: str) -> bool:
    levels = contract.levels(name)
    return stated in (_TEXTS if levels is not None and isinstance(levels[0], str) else _NUMBERS)


def _distinct_schemas(source: Source, contract: Contract) -> Iterator[tuple[str, Types]]:
    """The types that files state, with the name of the first file that states them.

    Files that differ in columns outside the contract only count as equal.
    """
    known: set[tuple[str | None, ...]] = set()
    for file in source.files:
        types = column_types(file)
        schema = tuple(types.get(name) for name in required_columns(contract))
        if schema not in known:  # thousands of files have one schema
            known.add(schema)
            yield file.display_name, types


def _columns_missing(file: str, types: Types, contract: Contract) -> TableError:
    """The error for missing columns; never shows the file's own names.

    Without a header, these names would be the cells of a person.
    """
    missing = [name for name in required_columns(contract) if name not in types]
    omitted = len(missing) - _MOST_NAMED
    named = (*missing[:_MOST_NAMED], *([f"and {omitted} more"] if omitted > 0 else []))
    states_types = any(kind != "any" for kind in types.values())
    if states_types or file.endswith(("parquet", "pq")):
        return families.TABLE_COLUMNS(
            "{file}: columns of the contract are missing: {columns} (the file has "
            "{count} columns).",
            "Correct 'columns' or 'privacy_unit' in the contract, or the file.",
            file=file,
            columns=named,
            count=len(types),
        )
    if separators := _separators(list(types), missing):
        return families.HEADER(
            "{file}: columns of the contract are missing: {columns}; the fields seem "
            "to be separated by {separators} instead of commas.",
            "State it in the contract, and decimal: ',' if numbers have decimal "
            "commas: source: {{path: ..., separator: ';'}}.",
            file=file,
            columns=named,
            separators=separators,
        )
    return families.TABLE_COLUMNS(
        "{file}: columns of the contract are missing: {columns} (the file has {count} columns).",
        "Correct 'columns' or 'privacy_unit' in the contract, or give the file a header line.",
        file=file,
        columns=named,
        count=len(types),
    )


def _separators(names: Sequence[str], missing: Sequence[str]) -> str:
    """What separates the fields of a header if commas do not; empty if commas seem to."""
    header = ",".join(names)  # a name may contain a comma
    for mark, words in _SEPARATORS.items():
        fields = {field.strip().strip('"') for field in header.split(mark)}
        if mark in header and (len(names) == 1 or fields.issuperset(missing)):
            return words
    return ""


def _types_differ(file: str, types: Types, wrong: Sequence[str]) -> TableError:
    """The error for columns of another type."""
    return families.TABLE_COLUMNS(
        "{file}: columns have other types than the contract declares: {columns}.",
        "Remove them from 'columns' (or, if a pattern matches them, add them to "
        "'exclude'); or store numbers as numbers, and levels that are text as text.",
        file=file,
        columns=tuple(f"{name} ({types[name]})" for name in wrong),
    )


def _check_persons(
    contract: Contract, source: Source, schemas: Sequence[tuple[str, Types]]
) -> None:
    """Refuse persons that are not identified by whole numbers or text, the same in all files.

    With whole numbers in some files and text in others, 7 and 007 could be one person.
    """
    column = contract.person_column
    if column is None:
        return
    files: dict[str, str] = {}  # each type, with the first file that states it
    for file, types in schemas:
        if types[column] not in _PERSONS:
            raise families.TABLE_COLUMNS(
                "{file}: column '{column}' identifies persons, but has the type {type}.",
                "Store it as whole numbers or text.",
                file=file,
                column=column,
                type=types[column],
            )
        files.setdefault(types[column], file)
    if "whole" in files and (not source.states_types or "text" in files):
        raise families.TABLE_COLUMNS(
            "{file}: column '{column}' has whole numbers here, but text in other files.",
            "Store it as text in all files, with the same spelling (a CSV file has text).",
            file=files["whole"],
            column=column,
        )


def _check_dates(contract: Contract, schemas: Sequence[tuple[str, Types]]) -> None:
    """Refuse a column whose type cannot hold dates; whole numbers may be years."""
    if contract.period is None:
        return
    column, years = contract.period.column, contract.budget.per == "year"
    for file, types in schemas:
        stated = types[column]
        is_date = stated.lower().startswith(("date", "timestamp"))
        if not (is_date or stated in _TEXTS or (years and stated in _NUMBERS)):
            raise families.TABLE_COLUMNS(
                "{file}: column '{column}' decides the period of each row, but has the type "
                "{type}.",
                "Store it as dates or times, or as text such as 2026-11-23.",
                file=file,
                column=column,
                type=stated,
            )
