"""The columns of a data set: numbers with public bounds, or categories."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from gramercy.schemas.model import Model, Real

INTERCEPT = "(intercept)"
# Cells of a CSV that are read as missing.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?", ".")


def _known(what: str) -> BeforeValidator:
    """A value that only somebody can give, who is told so where it is empty."""

    def there(value: Any) -> Any:
        if value is None:
            raise ValueError(f"is empty; write {what}")
        return value

    return BeforeValidator(there)


Bound = Annotated[Real, _known("a bound that somebody knows, not one read off the data")]


class Column(Model):
    """Public facts about a column, declared by someone who knows the field; never read off data.

    Parameters
    ----------
    lower, upper
        Bounds, in the column's units. Cells beyond them are clamped.
    centre
        Subtracted before normalisation, and taken for a cell that is missing or not finite.
        Default: the middle of the bounds.
    scale
        Divides the centred cell, in the column's units. Default: half the range.

    Examples
    --------
    >>> column = Column(lower=4.0, upper=22.0)
    >>> column.middle, column.spread
    (13.0, 9.0)
    """

    lower: Bound
    upper: Bound
    centre: Annotated[float | None, Field(strict=True, allow_inf_nan=False)] = None
    scale: Annotated[float | None, Field(strict=True, gt=0, allow_inf_nan=False)] = None

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if not self.lower < self.upper:
            raise ValueError("'lower' must lie below 'upper'")
        if not self.lower <= self.middle <= self.upper:
            raise ValueError("'centre' must lie between 'lower' and 'upper'")
        reach = max(self.upper - self.middle, self.middle - self.lower)
        if not (self.spread > 0 and math.isfinite(reach) and math.isfinite(reach / self.spread)):
            raise ValueError("bounds and scale do not fit double precision; narrow the bounds")
        return self

    @property
    def middle(self) -> float:
        """The public centre in force."""
        return self.centre if self.centre is not None else self.lower / 2 + self.upper / 2

    @property
    def spread(self) -> float:
        """The public scale in force."""
        return self.scale if self.scale is not None else self.upper / 2 - self.lower / 2


class Levels(Model):
    """A column of categories, published as one column of zeros and ones for each level.

    Parameters
    ----------
    levels
        The categories, all texts or all numbers. A cell that is none of them is a zero in every
        one of the level's columns.
    """

    levels: Annotated[
        tuple[str | Real, ...],
        Field(min_length=1, max_length=1000),
        _known("the levels that somebody knows, such as [A, B]"),
    ]

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if len({type(x) for x in self.levels}) > 1:
            raise ValueError("'levels' must be all texts or all numbers; put the numbers in quotes")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError("'levels' names one twice")
        if any(isinstance(x, str) and (x != x.strip() or x in MISSING) for x in self.levels):
            raise ValueError("'levels' has one that is read as missing, or has blanks around it")
        return self


def _kind(column: Any) -> str:
    declared = column if isinstance(column, Mapping) else getattr(column, "__dict__", {})
    return "column-of-levels" if "levels" in declared else "column-of-numbers"


AnyColumn = Annotated[
    Annotated[Column, Tag("column-of-numbers")] | Annotated[Levels, Tag("column-of-levels")],
    Discriminator(_kind),
]


def features(name: str, levels: Iterable[str | float] | None) -> list[str]:
    """Columns of the matrix that a column of the table becomes."""
    if levels is None:
        return [name]
    return [f"{name}={x if isinstance(x, str) else format(x, '.17g')}" for x in levels]
