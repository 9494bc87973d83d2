"""The columns of a data set: numbers with public bounds, or categories."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from gramercy.schemas.model import Model, Real
from gramercy.schemas.problems import contract as problems
from gramercy.schemas.problems.keys import value_empty

INTERCEPT = "(intercept)"
# Cells of a CSV that are read as missing.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?", ".")


def _required(expected: str) -> BeforeValidator:
    """A validator that refuses an empty value, and says what to write instead."""

    def check(value: Any) -> Any:
        if value is None:
            raise value_empty(expected)
        return value

    return BeforeValidator(check)


Bound = Annotated[Real, _required("a bound from knowledge of the field, not from the data")]


class Column(Model):
    """Public facts about a numeric column, declared from knowledge of the field, not from data.

    Parameters
    ----------
    lower, upper
        Bounds in the column's units. Cells outside them are clamped.
    centre
        Value in the column's units that is subtracted before normalisation, and that replaces
        missing and non-finite cells. Default: the midpoint of the bounds.
    scale
        Value in the column's units that divides the centred cells. Default: half of the range.

    Examples
    --------
    >>> column = Column(lower=4.0, upper=22.0)
    >>> column.effective_centre, column.effective_scale
    (13.0, 9.0)
    """

    lower: Bound
    upper: Bound
    centre: Annotated[float | None, Field(strict=True, allow_inf_nan=False)] = None
    scale: Annotated[float | None, Field(strict=True, gt=0, allow_inf_nan=False)] = None

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if not self.lower < self.upper:
            raise problems.bounds_reversed()
        if not self.lower <= self.effective_centre <= self.upper:
            raise problems.centre_out_of_bounds()
        centre, scale = self.effective_centre, self.effective_scale
        largest = max(self.upper - centre, centre - self.lower)
        if not (scale > 0 and math.isfinite(largest) and math.isfinite(largest / scale)):
            raise problems.bounds_overflow()
        return self

    @property
    def effective_centre(self) -> float:
        """The declared centre, or the midpoint of the bounds."""
        return self.centre if self.centre is not None else self.lower / 2 + self.upper / 2

    @property
    def effective_scale(self) -> float:
        """The declared scale, or half of the range."""
        return self.scale if self.scale is not None else self.upper / 2 - self.lower / 2


class Levels(Model):
    """A column of categories, published as one column of zeros and ones per level.

    Parameters
    ----------
    levels
        The categories, all texts or all numbers. A cell with any other value is 0 in the columns
        of all levels.
    """

    levels: Annotated[
        tuple[str | Real, ...],
        Field(min_length=1, max_length=1000),
        _required("the levels from knowledge of the field, such as [A, B]"),
    ]

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        if len({type(x) for x in self.levels}) > 1:
            raise problems.levels_mixed()
        if len(set(self.levels)) < len(self.levels):
            raise problems.level_repeated()
        if any(isinstance(x, str) and (x != x.strip() or x in MISSING) for x in self.levels):
            raise problems.level_is_missing()
        return self


def _kind(column: Any) -> str:
    declared = column if isinstance(column, Mapping) else getattr(column, "__dict__", {})
    return "column-of-levels" if "levels" in declared else "column-of-numbers"


AnyColumn = Annotated[
    Annotated[Column, Tag("column-of-numbers")] | Annotated[Levels, Tag("column-of-levels")],
    Discriminator(_kind),
]


def matrix_columns(name: str, levels: Iterable[str | float] | None) -> list[str]:
    """The names of the matrix columns that a table column becomes."""
    if levels is None:
        return [name]
    return [f"{name}={x if isinstance(x, str) else format(x, '.17g')}" for x in levels]
