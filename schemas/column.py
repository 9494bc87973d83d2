"""The columns of a data set: numbers with public bounds, or categories."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from gramercy.schemas import families, wordings
from gramercy.schemas.model import Model, Real

INTERCEPT = "(intercept)"
# Cells of a CSV that are read as missing.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?", ".")


def _required(expected: str) -> BeforeValidator:
    """A validator that refuses an empty value, and says what to write instead."""

    def check(value: Any) -> Any:
        if value is None:
            raise wordings.value_empty(expected)
        return value

    return BeforeValidator(check)


class Column(Model):
    """Public facts about a numeric column, declared from knowledge of the field, not from data.

    Parameters
    ----------
    lower, upper
        Bounds in the column's units. Cells outside them are clamped. A column may lack both, if
        requests estimate centre and scale privately (``scaling: private``).
    centre
        Value in the column's units that is subtracted before normalisation, and that replaces
        missing and non-finite cells. Default: the midpoint of the bounds.
    scale
        Value in the column's units that divides the centred cells. Default: half of the range.
    missing
        Numbers that stand for a missing value, such as ``[-9, 99]`` in a codebook. A cell with one
        of them counts as missing, within the bounds or not.

    Examples
    --------
    >>> column = Column(lower=4.0, upper=22.0)
    >>> column.effective_centre, column.effective_scale
    (13.0, 9.0)
    """

    lower: Real | None = None
    upper: Real | None = None
    centre: Annotated[float | None, Field(strict=True, allow_inf_nan=False)] = None
    scale: Annotated[float | None, Field(strict=True, gt=0, allow_inf_nan=False)] = None
    missing: Annotated[tuple[Real, ...], Field(max_length=20)] = ()

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if (self.lower is None) != (self.upper is None):
            raise families.BOUNDS(
                "One of 'lower' and 'upper' is missing.",
                "Declare both bounds, or neither if requests estimate them with 'scaling: "
                "private'.",
            )
        if not self.has_bounds:
            if self.centre is not None or self.scale is not None:
                raise families.BOUNDS(
                    "'centre' and 'scale' need 'lower' and 'upper'.",
                    "Declare the bounds, or remove centre and scale.",
                )
            return self
        lower, upper = self.limits
        if not lower < upper:
            raise families.BOUNDS(
                "'lower' must be less than 'upper'.",
                "Swap them; write decimals with a point.",
            )
        if not lower <= self.effective_centre <= upper:
            raise families.BOUNDS(
                "'centre' must be between 'lower' and 'upper'.",
            )
        centre, scale = self.effective_centre, self.effective_scale
        largest = max(upper - centre, centre - lower)
        if not (scale > 0 and math.isfinite(largest) and math.isfinite(largest / scale)):
            raise families.BOUNDS(
                "The bounds and the scale do not fit double precision.",
                "Narrow the bounds, or choose a larger scale.",
            )
        return self

    @property
    def has_bounds(self) -> bool:
        """Whether bounds are declared."""
        return self.lower is not None

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds to which cells are clamped; infinite without bounds."""
        if self.lower is None or self.upper is None:
            return -math.inf, math.inf
        return self.lower, self.upper

    @property
    def declared_limits(self) -> tuple[float, float]:
        """The bounds in the contract, outside which cells are counted for the steward."""
        return self.limits

    @property
    def effective_centre(self) -> float:
        """The declared centre, or the midpoint of the bounds; 0 without bounds."""
        if self.lower is None or self.upper is None:
            return 0.0
        return self.centre if self.centre is not None else self.lower / 2 + self.upper / 2

    @property
    def effective_scale(self) -> float:
        """The declared scale, or half of the range; 1 without bounds."""
        if self.lower is None or self.upper is None:
            return 1.0
        return self.scale if self.scale is not None else self.upper / 2 - self.lower / 2


_AnyNumber = Annotated[float, Field(allow_inf_nan=True)]


class ScaledColumn(Column):
    """A column with the constants that a release uses, whose contract has other bounds.

    Parameters
    ----------
    declared
        The bounds in the contract; infinite without bounds.
    """

    declared: tuple[_AnyNumber, _AnyNumber]

    @property
    def declared_limits(self) -> tuple[float, float]:
        """See `Column.declared_limits`."""
        return self.declared


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
            raise families.LEVELS(
                "'levels' mixes text and numbers.",
                "Put the numbers in quotes if the column is text.",
            )
        if len(set(self.levels)) < len(self.levels):
            raise families.LEVELS(
                "'levels' lists a level twice.",
                "Remove one of the two.",
            )
        if any(isinstance(x, str) and (x != x.strip() or x in MISSING) for x in self.levels):
            raise families.LEVELS(
                "'levels' has a level that is read as missing, or has blanks around it.",
                "Remove it: such cells belong to no level.",
            )
        return self


def _kind(column: Any) -> str:
    declared = column if isinstance(column, Mapping) else getattr(column, "__dict__", {})
    return "column-of-levels" if "levels" in declared else "column-of-numbers"


AnyColumn = Annotated[
    Annotated[Column, Tag("column-of-numbers")] | Annotated[Levels, Tag("column-of-levels")],
    Discriminator(_kind),
]


def level_names(levels: Iterable[str | float]) -> list[str]:
    """Levels as texts."""
    return [x if isinstance(x, str) else format(x, ".17g") for x in levels]


def matrix_columns(name: str, levels: Iterable[str | float] | None) -> list[str]:
    """The names of the matrix columns that a table column becomes."""
    return [name] if levels is None else [f"{name}={level}" for level in level_names(levels)]
