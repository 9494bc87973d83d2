"""What counts of unusable cells say about a table. For the steward's terminal only.

The counts are exact functions of private data. They come from a release's internal record, after
the charge, or from a check. They never decide on a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gramercy.schemas.column import Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.problem import Notice
from gramercy.schemas.problems import warnings

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
            isinstance(contract.columns[name], Levels),
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
        yield warnings.many_lines_malformed(percentage(malformed / lines), lines)
    unreadable = [column for column in columns if column.is_unreadable and column.rows]
    if names := tuple(column.name for column in unreadable if not column.is_levels):
        yield warnings.cells_not_numbers(names)
    if names := tuple(column.name for column in unreadable if column.is_levels):
        yield warnings.cells_not_levels(names)
    readable = [column for column in columns if not column.is_unreadable]
    if named := _worst(readable, lambda column: column.missing_share, _MANY_MISSING):
        yield warnings.many_cells_missing(named)
    if named := _worst(readable, lambda column: column.clamped_share, _MANY_CLAMPED):
        yield warnings.many_cells_out_of_bounds(named)


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
