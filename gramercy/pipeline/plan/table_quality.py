"""What counts of unusable cells say about a table. For the steward's terminal only.

The counts are exact functions of private data. They come from a release's internal record, after
the charge, or from a check. They never decide on a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.problem import Notice

Verdict = Literal["fine", "warning", "unusable"]

# Shares above which a warning is due.
_MANY_MISSING = 0.20
_MANY_CLAMPED = 0.05
_MANY_MALFORMED = 0.05


@dataclass(frozen=True, repr=False)
class ColumnQuality:
    """Counts of a column's unusable cells. Private.

    Parameters
    ----------
    name, is_levels
        Name of the column, and whether it has levels.
    rows
        Number of rows with a cell in this column: lines that are not malformed.
    missing
        Cells that are missing, not finite, not numbers or not a declared level.
    clamped
        Cells out of bounds.
    """

    name: str
    is_levels: bool
    rows: int
    missing: int
    clamped: int = 0

    @property
    def missing_share(self) -> float:
        """Share of `missing` in all cells; 1 without rows."""
        return self.missing / self.rows if self.rows else 1.0

    @property
    def clamped_share(self) -> float:
        """Share of `clamped` in all cells."""
        return self.clamped / self.rows if self.rows else 0.0

    @property
    def is_unreadable(self) -> bool:
        """Whether no cell is a number or a declared level."""
        return self.missing >= self.rows

    @property
    def verdict(self) -> Verdict:
        """``unusable`` if no cell is a level, or a number within the bounds."""
        if self.missing + self.clamped >= self.rows:
            return "unusable"
        many = self.missing_share > _MANY_MISSING or self.clamped_share > _MANY_CLAMPED
        return "warning" if many else "fine"


def recorded_quality(record: Mapping[str, Any], contract: Contract) -> list[ColumnQuality]:
    """The counts of every column in the internal record of a release.

    Parameters
    ----------
    record
        The record; without counts if the release did not read a table.
    contract
        The contract of the release.
    """
    rows = record.get("rows", 0) - record.get("malformed_rows", 0)
    clamped = record.get("clamped_cells", {})
    return [
        ColumnQuality(
            name,
            contract.levels(name) is not None,
            rows,
            missing,
            clamped.get(name, 0),
        )
        for name, missing in record.get("filled_cells", {}).items()
    ]


def holds_nothing(columns: Sequence[ColumnQuality]) -> bool:
    """Whether no cell of any column is a number or a declared level."""
    return all(column.is_unreadable for column in columns)


def quality_notices(
    columns: Sequence[ColumnQuality], lines: int, malformed: int
) -> Iterator[Notice]:
    """Warnings about many unusable cells and lines, each with a remedy.

    Parameters
    ----------
    columns
        Counts of every column.
    lines, malformed
        Number of lines of the table without the header, and of those that are not rows.
    """
    if malformed > _MANY_MALFORMED * lines:
        yield families.UNUSABLE_LINES(
            "Many lines are not rows: {share} of {lines} are blank, malformed or of "
            "the wrong width.",
            "Write the file again with one line for each row, and quotes around "
            "fields with commas.",
            share=percentage(malformed / lines),
            lines=lines,
        )
    unreadable = [column for column in columns if column.is_unreadable and column.rows]
    if names := tuple(column.name for column in unreadable if not column.is_levels):
        yield families.UNUSABLE_COLUMNS(
            "Not one cell is a number in: {columns}.",
            "Write numbers without units and thousands separators: 1234.5, not "
            "'1.234,5 kg'. For decimal commas, state 'decimal: \",\"' under the "
            "contract's 'source', next to its 'path'. Declare categories as 'levels'.",
            columns=names,
        )
    if names := tuple(column.name for column in unreadable if column.is_levels):
        yield families.UNUSABLE_COLUMNS(
            "Not one cell is a declared level in: {columns}.",
            "Compare the spelling: a cell 2.0 is not the text '2'. Declare numbers "
            "without quotes: 'levels: [1, 2]'.",
            columns=names,
        )
    readable = [column for column in columns if not column.is_unreadable]
    if named := _worst(readable, lambda column: column.missing_share, _MANY_MISSING):
        yield families.MANY_CELLS(
            "Many cells are missing, unreadable or not a declared level: {columns}.",
            "If they should not be, correct their notation in the table, or the "
            "levels in the contract.",
            columns=named,
        )
    if named := _worst(readable, lambda column: column.clamped_share, _MANY_CLAMPED):
        yield families.MANY_CELLS(
            "Many cells are out of bounds: {columns}.",
            "Compare the unit of the cells with that of the bounds, such as grams "
            "with kilograms, or 35 with 0.35. Declare codes for missing values, such "
            "as -9, in the contract: missing: [-9].",
            columns=named,
        )


def _worst(
    columns: Sequence[ColumnQuality], share: Callable[[ColumnQuality], float], many: float
) -> tuple[str, ...]:
    """The columns with more than a share, highest first, each with its share."""
    above = sorted((column for column in columns if share(column) > many), key=share, reverse=True)
    return tuple(f"{column.name} ({percentage(share(column))})" for column in above)


def percentage(share: float) -> str:
    """A share as text; 0 % and 100 % stand for exactly none and all."""
    if 0 < share < 0.01:
        return "<1 %"
    return ">99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"
