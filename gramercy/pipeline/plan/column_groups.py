"""Patterns in a contract's columns, and the columns of the table for which they stand.

Names of columns are public, and so is what a pattern stands for: plan, manifest and ledger hold the
names, never the patterns. The first release fixes them. The order follows from the names alone, so
that a file whose columns are in another order gives the same matrix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import InvalidValue
from gramercy.tables.formats.csv_format import look_like_data
from gramercy.tables.formats.reader import schema_of
from gramercy.tables.formats.source import Source, open_source

ANY = "*"  # all columns that no other entry stands for


def with_columns_of_table(contract: Contract, path: Path) -> Contract:
    """The contract with the table's columns in place of patterns; reads headers, but no row.

    Parameters
    ----------
    contract
        The contract of one version; without patterns, it is returned as it is, and the table is
        not opened.
    path
        The contract's file, for errors.

    Raises
    ------
    ContractError
        If a pattern or an excluded name matches nothing, a column matches two patterns, the header
        may be a row of data, or a file has no header.
    TableError
        If the table cannot be opened.
    """
    if not any(ANY in name for name in contract.columns):
        return contract
    table = open_source(contract.source)
    try:
        return contract.with_columns(_resolve(contract, table))
    except InvalidValue as error:
        failure = wordings.contract_not_valid(str(path))
        failure.details = (_at(error.key or "columns", error.without_history()),)
    raise failure


def resolve_columns(contract: Contract, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The columns of a table for which each name in `columns` stands, in the order of the matrix.

    A name of a column stands for that column only, and takes precedence. Any other name with ``*``
    stands for the columns that it matches, in natural order, apart from excluded ones and those
    that identify persons or state the period of a row.

    Parameters
    ----------
    contract
        The contract, with patterns.
    names
        Names of the table's columns, in any order.

    Raises
    ------
    InvalidValue
        If a pattern or an excluded name matches nothing, or a column matches two patterns.
    """
    known = set(names)
    for name in contract.exclude:
        if not (name in known or any(map(_matcher(name), known))):
            raise _matches_nothing("exclude", name, known)
    patterns = [name for name in contract.columns if ANY in name and name not in known]
    declared = contract.columns.keys() - set(patterns)
    free = sorted(known - declared - set(_left_out(contract, known)), key=_natural)
    matched = _matches(patterns, free)
    for pattern, columns in matched.items():
        if not columns and pattern != ANY:
            raise _matches_nothing(f"columns.{pattern}", pattern, known)
    return {name: tuple(matched.get(name, (name,))) for name in contract.columns}


def _resolve(contract: Contract, table: Source) -> dict[str, tuple[str, ...]]:
    names = schema_of(table)
    patterns = [name for name in contract.columns if ANY in name and name not in names]
    if patterns and not table.states_names and look_like_data(names):  # errors would quote cells
        raise _at(
            "columns",
            families.COLUMNS(
                "'{pattern}' may match cells: a name in the first line of the table is a number, a "
                "date, a time or a mark for a missing value.",
                "Add a first line with names; or, if these are names, list them instead of the "
                "pattern.",
                pattern=patterns[0],
            ),
        )
    return resolve_columns(contract, names)


def _left_out(contract: Contract, names: set[str]) -> Iterator[str]:
    """The columns that no pattern stands for."""
    if contract.person_column is not None:
        yield contract.person_column
    if contract.period is not None:
        yield contract.period.column
    for excluded in contract.exclude:
        yield from [excluded] if excluded in names else filter(_matcher(excluded), names)


def _matches(patterns: Iterable[str], names: Iterable[str]) -> Mapping[str, list[str]]:
    """The columns for which each pattern stands, in order."""
    matched: dict[str, list[str]] = {pattern: [] for pattern in patterns}
    matchers = {pattern: _matcher(pattern) for pattern in matched if pattern != ANY}
    for name in names:
        found = [pattern for pattern, matches in matchers.items() if matches(name)]
        if len(found) > 1:
            overlap = families.COLUMNS(
                "Two patterns match the column '{column}': '{first}' and '{second}'.",
                "Declare the column by its name, which takes precedence over "
                "patterns, or exclude it.",
                column=name,
                first=found[0],
                second=found[1],
            )
            raise _at(f"columns.{found[1]}", overlap)
        if found or ANY in matched:
            matched[found[0] if found else ANY].append(name)
    return matched


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a name matches a pattern, in which only ``*`` is special."""
    compiled = re.compile(".*".join(map(re.escape, pattern.split(ANY))), re.DOTALL)
    return lambda name: compiled.fullmatch(name) is not None


def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """A key that sorts lab_2 before lab_10."""
    parts = [part.lstrip("0") for part in re.split(r"([0-9]+)", name)]
    return [(len(part) if k % 2 else 0, part) for k, part in enumerate(parts)], name


def _matches_nothing(key: str, name: str, known: Iterable[str]) -> InvalidValue:
    similar = most_similar_first(name.replace(ANY, ""), sorted(known, key=_natural))
    return _at(
        key,
        families.COLUMNS(
            "'{pattern}' does not match any column of the table that is not listed.",
            "It has columns such as: {similar}.",
            pattern=name,
            similar=similar,
        ),
    )


def _at(key: str, error: InvalidValue) -> InvalidValue:
    error.key = key
    return error
